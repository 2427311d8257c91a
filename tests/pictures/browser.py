"""A headless Chromium for the tests and for the screenshots of the documentation."""

import base64
import contextlib
import gzip
import json
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HINT = "apt install chromium chromium-driver"
AXE = Path(__file__).parent / "assets" / "axe.min.js.gz"  # finds what keeps people out of a page


def find():
    """Chromium and its driver, or None where one of them is missing."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextlib.contextmanager
def opened(width=1200, height=900):
    """A browser without a network, closed at the end."""
    browser, driver = find()
    options = Options()
    options.binary_location = browser
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        f"--window-size={width},{height}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def wait(chrome, condition, seconds=30):
    return WebDriverWait(chrome, seconds, poll_frequency=0.05).until(condition)


def drawn(chrome):
    """Wait until a report has drawn its figures."""
    wait(chrome, lambda c: c.execute_script("return document.documentElement.dataset.drawn"))


def colour_scheme(chrome, name):
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": name}]},
    )


@contextlib.contextmanager
def paper(chrome, scheme):
    """What would be printed by a reader whose screen has this colour scheme."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    try:
        yield
    finally:
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def view(chrome, width, height=900, *, mobile=False):
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile},
    )


def whole_page(chrome, path, *, tallest=20_000):
    """A picture of the page from top to bottom, at the width it has."""
    size = chrome.execute_script(
        "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]"
    )
    picture = chrome.execute_cdp_cmd(
        "Page.captureScreenshot",
        {
            "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": size[0], "height": min(size[1], tallest), "scale": 1},
        },
    )
    path.write_bytes(base64.b64decode(picture["data"]))


def work(chrome):
    """Seconds of the processor that the page has taken, once Performance is enabled."""
    metrics = chrome.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")


def forget(chrome):
    """Leave the page that is open, and drop what was noted of it and of those before it."""
    chrome.get("about:blank")
    for kind in ("browser", "performance"):
        chrome.get_log(kind)


def complaints(chrome):
    """What the page wrote to the console."""
    return [entry["message"] for entry in chrome.get_log("browser")]


def requests(chrome):
    """Addresses that the page asked for, other than itself."""
    found = []
    for entry in chrome.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return [url for url in found if not url.startswith(("file:", "data:", "blob:"))]


def barriers(chrome):
    """What axe-core finds to be a serious or critical barrier in the page, with the elements."""
    chrome.execute_script(gzip.decompress(AXE.read_bytes()).decode())
    chrome.set_script_timeout(120)
    found = chrome.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations))"
    )
    return {
        one["id"]: [node["html"][:200] for node in one["nodes"]]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
