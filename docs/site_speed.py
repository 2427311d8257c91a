"""How large the pages are, and how soon they show something: ``python -m docs.site_speed``.

It builds the site, serves it from this machine and opens pages in Chromium with an empty cache. The
figures go to docs/site.json, and from there into the table of the documentation. ``--all`` opens
every page instead and names those whose code is clipped or that scroll sideways.
"""

import argparse
import contextlib
import functools
import http.server
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "site.json"
PAGES = {
    "index": "start",
    "concepts": "concepts, with drawings",
    "guides/thresholds": "a guide with code",
    "experiments/index": "experiments: the claims",
    "experiments/tasks/fairness": "experiments: one task",
    "compares": "how it compares",
    "gallery": "gallery: every figure",
    "reference/selecting": "reference: selecting",
    "reference/command-line": "reference: command line",
}
WIDE, PHONE = 1400, 390
# So many seconds a page may take until its scripts have laid it out.
_PATIENCE = 5.0
LOADS = 5
# Bytes of the page and of all that it loads, requests, milliseconds to the first paint.
_LOADED = """
const [page] = performance.getEntriesByType('navigation');
const others = performance.getEntriesByType('resource');
const paint = performance.getEntriesByName('first-contentful-paint')[0];
if (!paint || !others.some((each) => each.name.includes('search_index'))) return null;
return {html: page.encodedBodySize, requests: 1 + others.length, paint: paint.startTime,
        bytes: others.reduce((sum, each) => sum + each.encodedBodySize, page.encodedBodySize)};
"""
_LAID_OUT = """
const wide = (each) => each.scrollWidth > each.clientWidth + 1;
return {height: document.documentElement.scrollHeight,
        sideways: wide(document.documentElement),
        clipped: [...document.querySelectorAll('.md-typeset pre > code')].filter(wide).length};
"""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on this machine and return its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def loaded(chrome: Any, address: str) -> dict[str, float]:
    """Open a page several times with an empty cache; medians of what it loaded and took."""
    from tests.pictures import browser  # only who measures needs a browser

    chrome.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    found = []
    for _ in range(LOADS):
        chrome.get(address)
        found.append(browser.wait(chrome, lambda c: c.execute_script(_LOADED), 60))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def laid_out(chrome: Any, address: str, width: int) -> dict[str, Any]:
    """Open a page at a width, and tell its height and whether anything is too wide.

    What is too wide at first is looked at again: scripts of the page may still be at work.
    """
    from tests.pictures import browser

    browser.view(chrome, width, mobile=width == PHONE)
    chrome.get(address)
    too_wide, enough = "sideways" if width == PHONE else "clipped", time.monotonic() + _PATIENCE
    while True:
        found: dict[str, Any] = chrome.execute_script(_LAID_OUT)
        if not found[too_wide] or time.monotonic() > enough:
            return found
        time.sleep(0.05)


def complaints(chrome: Any, site: Path, address: str) -> Iterator[str]:
    """Name every page whose code is clipped at 1,400 pixels or that scrolls sideways on a phone."""
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        if laid_out(chrome, f"{address}/{page}", WIDE)["clipped"]:
            yield f"{page}: code is clipped at {WIDE} pixels"
        if laid_out(chrome, f"{address}/{page}", PHONE)["sideways"]:
            yield f"{page}: it scrolls sideways at {PHONE} pixels"


def table() -> str:
    """Write the figures as a table in Markdown."""
    lines = [
        "| page | the page itself | with all it loads | requests | first paint "
        f"| height at {WIDE:,} px | at {PHONE} px |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for page, row in json.loads(FIGURES.read_text(encoding="utf-8")).items():
        lines.append(
            f"| [{PAGES[page]}]({_source(page)}) | {row['html'] / 1000:,.0f} kB "
            f"| {row['bytes'] / 1000:,.0f} kB | {row['requests']:.0f} | {row['paint']:.0f} ms "
            f"| {row['wide']:,} px | {row['phone']:,} px |"
        )
    return "\n".join(lines)


def _source(page: str) -> str:
    """Return the file that a page is made from."""
    return "experiments/README.md" if page == "experiments/index" else f"{page}.md"


def main() -> int:
    from tests.pictures import browser

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="check the layout of every page")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, browser.opened(WIDE) as chrome:
        site = Path(folder)
        build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder]
        subprocess.run(build, cwd=ROOT, check=True)
        with served(site) as address:
            if asked.all:
                found = list(complaints(chrome, site, address))
                print("\n".join(found) or "No code is clipped, and no page scrolls sideways.")
                return bool(found)
            rows: dict[str, dict[str, float]] = {}
            for page in PAGES:
                heights = {
                    name: laid_out(chrome, f"{address}/{page}.html", width)["height"]
                    for name, width in (("phone", PHONE), ("wide", WIDE))
                }
                rows[page] = {**loaded(chrome, f"{address}/{page}.html"), **heights}
    FIGURES.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
