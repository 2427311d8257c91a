"""Screenshots of report, watch, live page and docs, light and dark, into docs/images/.

    python -m docs.make_images

Needs Chromium and its driver (apt install chromium chromium-driver), no network.
"""

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import optuna

from riskpilot import dashboard
from riskpilot.demo import run as demo
from riskpilot.plots import power_curves, save_figure
from tests.pictures import browser

IMAGES = Path(__file__).parent / "images"
SCHEMES = ("light", "dark")


def report(chrome, page):
    """The first screens of the report, wide and on a phone."""
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1100)
        chrome.get(page.as_uri())
        browser.drawn(chrome)
        browser.whole_page(chrome, IMAGES / f"report-{scheme}.png", tallest=2600)
    browser.view(chrome, 390, mobile=True)
    chrome.get(page.as_uri())
    browser.drawn(chrome)
    browser.whole_page(chrome, IMAGES / "report-phone.png", tallest=3200)


def watch(chrome, folder):
    """The page of a watch, of the example's month, wide and on a phone."""
    example = Path(__file__).parent.parent / "examples" / "watch_month.py"
    subprocess.run([sys.executable, str(example)], cwd=folder, check=True)
    page = Path(folder) / "watch.html"
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1100)
        chrome.get(page.as_uri())
        browser.drawn(chrome)
        browser.whole_page(chrome, IMAGES / f"watch-{scheme}.png", tallest=2200)
    browser.view(chrome, 390, mobile=True)
    chrome.get(page.as_uri())
    browser.drawn(chrome)
    browser.whole_page(chrome, IMAGES / "watch-phone.png", tallest=2600)


def live(chrome, study, folder):
    """The dashboard of a search that is still running."""
    storage = f"sqlite:///{folder}/income.db"
    optuna.copy_study(
        from_study_name=study.study_name,
        from_storage=study._storage,
        to_storage=storage,
        to_study_name="income",
    )
    optuna.load_study(study_name=None, storage=storage).ask()  # one more trial has begun
    started, box = threading.Event(), []

    def ready(server):
        box.append(server)
        started.set()

    serving = {"port": 0, "ready": ready}
    threading.Thread(target=dashboard.serve, args=(storage,), kwargs=serving, daemon=True).start()
    started.wait()
    figure = "user-defined-plot:riskpilot-trade-off"
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1300, 1900)
        chrome.get(f"http://127.0.0.1:{box[0].server_port}/dashboard/studies/1")
        found = f"return document.getElementById('{figure}')?.querySelector('.gtitle') !== null"
        browser.wait(chrome, lambda c, found=found: c.execute_script(found), 60)
        browser.wait(
            chrome,
            lambda c: (
                c.execute_script(
                    "return document.querySelectorAll('.js-plotly-plot .main-svg').length"
                )
                >= 10
            ),
            60,
        )
        browser.whole_page(chrome, IMAGES / f"dashboard-{scheme}.png", tallest=2300)
    box[0].shutdown()


def site(chrome, folder):
    """A page of the documentation, as it is built."""
    pages = Path(folder) / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(pages)]
    subprocess.run(command, check=True, cwd=IMAGES.parents[1])
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1200)
        chrome.get((pages / "concepts.html").as_uri())
        chrome.execute_script("localStorage.clear()")  # the theme keeps the scheme it saw first
        chrome.refresh()
        browser.whole_page(chrome, IMAGES / f"docs-{scheme}.png", tallest=1800)


def main():
    IMAGES.mkdir(exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = demo.run()
    figure = made.selection.figure()
    curves = power_curves(made.problem, n_calibration=demo.FULL.calibration)
    save_figure(figure, IMAGES / "demo.png", scale=1.5)
    for scheme in SCHEMES:
        save_figure(figure, IMAGES / f"trade-off-{scheme}.png", scale=1.5, theme=scheme)
        save_figure(curves, IMAGES / f"power-{scheme}.png", scale=1.5, theme=scheme)
    with tempfile.TemporaryDirectory() as folder, browser.opened() as chrome:
        report(chrome, made.selection.report(Path(folder) / "report.html"))
        watch(chrome, folder)
        live(chrome, made.study, folder)
        site(chrome, folder)


if __name__ == "__main__":
    main()
