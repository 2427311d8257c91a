"""The gallery: every figure of pages, README and replay, with the page that explains it.

The figures are found in their folders, so that none can be forgotten. Captions are the words under
which a page shows a figure; those that no page shows have theirs here, with the page about them.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_IMAGES, _REPLAY = _ROOT / "docs" / "images", _ROOT / "experiments" / "results"
_SHOWN = re.compile(r"!\[(?P<caption>[^\]]+)\]\((?P<path>[^)\s]+)\)")
_SCHEME = re.compile(r"-(light|dark)$")
CAPTIONS = {
    "dashboard": ("The same search in Optuna's dashboard", "guides/live.md"),
    "demo": ("What make demo finds on census data, and the certified choice", "method.md"),
    "docs": ("A page of this documentation", "concepts.md"),
    "power": ("The chance to pass, by the number of calibration examples", "reference/plots.md"),
    "report-phone": ("The report of a selection on a phone", "reference/plots.md"),
    "trade-off": ("The trade-off of a study: region, front, and the certified choice", "method.md"),
    "watch-phone": ("The page of a watch on a phone", "guides/watching.md"),
}


@dataclass(frozen=True)
class Picture:
    """A figure: its file, its words, and the page that shows or explains it."""

    path: Path
    caption: str
    page: Path


def pictures() -> list[Picture]:
    """Find every figure; of a pair for light and dark pages the light one stands for both."""
    shown = _captions()
    found = []
    for path in sorted([*_IMAGES.iterdir(), *(_REPLAY / "figures").iterdir()]):
        if path.stem.endswith("-dark") and path.with_stem(light(path)).exists():
            continue
        found.append(Picture(path, *(shown.get(path) or _own_words(path))))
    return found


def light(path: Path) -> str:
    """Return the stem of the light one of a pair."""
    return path.stem.removesuffix("-dark") + "-light"


def _own_words(path: Path) -> tuple[str, Path]:
    """Return the words of a figure that no page shows, and the page that explains it."""
    caption, page = CAPTIONS[_SCHEME.sub("", path.stem)]
    return caption, _ROOT / "docs" / page


def _captions() -> dict[Path, tuple[str, Path]]:
    """Return the words under which pages show figures, and the first page that does."""
    pages = [*sorted((_ROOT / "docs").rglob("*.md")), *sorted(_REPLAY.rglob("*.md"))]
    found: dict[Path, tuple[str, Path]] = {}
    for page in pages:
        for match in _SHOWN.finditer(page.read_text(encoding="utf-8")):
            path = (page.parent / match["path"]).resolve()
            found.setdefault(path, (match["caption"], page))
    return found


def gallery() -> str:
    """Write the gallery as Markdown: drawings, screenshots, figures of the replay."""
    found = pictures()
    drawn = [one for one in found if one.path.suffix == ".svg"]
    seen = [one for one in found if one.path.parent == _IMAGES and one not in drawn]
    replayed = [one for one in found if one.path.parent != _IMAGES]
    parts = []
    for title, some in (("Drawings", drawn), ("Screens", seen), ("The replay", replayed)):
        parts += [f"## {title}", '<div class="gallery" markdown>', *map(_entry, some), "</div>"]
    return "\n\n".join(parts)


def _entry(picture: Picture) -> str:
    """Write one figure with its caption, which leads to the page that shows or explains it."""
    words = f"[{picture.caption}]({_from_gallery(picture.page)})"
    shown = f"![{picture.caption}]({_from_gallery(picture.path)})"
    return f"<div markdown>\n\n{shown}\n\n{words}\n\n</div>"


def _from_gallery(path: Path) -> str:
    """Return the way from the page of the gallery to a file as the site has it."""
    if path.is_relative_to(_REPLAY):
        return f"experiments/{path.relative_to(_REPLAY).as_posix()}"
    return os.path.relpath(path, _ROOT / "docs").replace(os.sep, "/")
