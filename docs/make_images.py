"""Screenshots of report, watch, live page, dashboard and docs, light and dark, into docs/images/.

    python -m docs.make_images

Needs Chromium and its driver (apt install chromium chromium-driver), no network.
"""

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import optuna

import riskpilot
from riskpilot import dashboard, demo, live
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


def running(study, folder):
    """The address of a search that is still running: a study before its selection, and a trial."""
    storage = f"sqlite:///{folder}/income.db"
    copy = optuna.create_study(
        storage=storage, study_name="income", directions=["minimize"] * len(study.directions)
    )
    for name, value in study.user_attrs.items():
        if not name.startswith("riskpilot:ledger"):
            copy.set_user_attr(name, value)
    copy.set_metric_names(study.metric_names)
    copy.add_trials(study.trials)
    copy.ask(study.trials[-1].distributions)
    return storage


def served(serve, what):
    """A page in a thread of its own, as the function that serves it describes it."""
    started, box = threading.Event(), []

    def ready(server):
        box.append(server)
        started.set()

    serving = {"port": 0, "ready": ready}
    threading.Thread(target=serve, args=(what,), kwargs=serving, daemon=True).start()
    started.wait()
    return box[0]


def live_page(chrome, storage):
    """The live page of a search, wide, light and dark."""
    page = served(live.serve, riskpilot.load_study(storage=storage))
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1100)
        chrome.get(page.address)
        browser.drawn(chrome)
        browser.whole_page(chrome, IMAGES / f"live-{scheme}.png", tallest=1250)
    page.stop()


def optunas_dashboard(chrome, storage):
    """Optuna's dashboard of the same search."""
    server = served(dashboard.serve, storage)
    figure = "user-defined-plot:riskpilot-trade-off"
    for scheme in SCHEMES:
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, 1300, 1900)
        chrome.get(f"http://127.0.0.1:{server.server_port}/dashboard/studies/1")
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
    server.shutdown()


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
        storage = running(demo.run(demo.QUICK).study, folder)
        live_page(chrome, storage)
        optunas_dashboard(chrome, storage)
        site(chrome, folder)


if __name__ == "__main__":
    main()
