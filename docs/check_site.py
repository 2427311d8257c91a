"""Check the built site: nothing comes from a network, and every internal link has its target.

Run it after a build: ``python docs/check_site.py site``. Exit code 1 names what is wrong.
"""

import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Tags whose address the browser fetches by itself; a link is fetched only when it is clicked.
_FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
    "link": "href",
}
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)")
_IN_SCRIPT = re.compile(
    r"https?://[\w.-]*(?:unpkg|jsdelivr|cdnjs|cloudflare|googleapis|gstatic)[\w./@-]*"
)


class Page(HTMLParser):
    """What a page fetches, what it links to, and the places that it offers to links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.places.add(values["id"])
        if tag == "a":
            self.links.append(values.get("href", ""))
        elif tag in _FETCHED and values.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(values.get(_FETCHED[tag], ""))
        if "mermaid" in values.get("class", "").split():
            self.fetched.append("https: a diagram that needs mermaid")


def problems(site: Path) -> Iterator[str]:
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.fetched:
            if re.match(r"(https?:|//)", address):
                yield f"{name} fetches {address}"
        for link in page.links:
            yield from _broken(site, pages, path, link)
    for path in sorted([*site.rglob("*.css"), *pages]):
        for address in _IN_STYLE.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} fetches {address}"
    for path in sorted(site.rglob("*.js")):
        for address in _IN_SCRIPT.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} may fetch {address}"


def _broken(site: Path, pages: dict[Path, Page], path: Path, link: str) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or path.name == "404.html":
        return
    target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
    if target not in pages and target.is_dir():
        target /= "index.html"
    if target not in pages and not target.exists():
        yield f"{path.relative_to(site)} links to {link}, which does not exist"
    elif parts.fragment and target in pages and parts.fragment not in pages[target].places:
        yield f"{path.relative_to(site)} links to {link}, which has no such place"


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    if not (folder / "index.html").is_file():
        sys.exit(f"There is no built site in {str(folder)!r}. Build it first: make docs")
    found = list(problems(folder))
    print(
        "\n".join(found) or f"{folder}: nothing comes from a network, and all links have targets."
    )
    sys.exit(bool(found))
