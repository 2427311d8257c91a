"""Figures on a phone: panels stand below each other, and long names become short."""

import copy
from typing import Any

_LEAST = 640  # pixels: a narrower figure is drawn in its narrow form whatever it shows
_PANEL = 300  # pixels: the height of a panel in the narrow form, and what it needs side by side
_NAMES = 240  # pixels: what names of configurations need beside a panel
_ROW = 34  # pixels: the height of a row of an axis of names
_TO_LEGEND = 62  # pixels: room for ticks and title of the lowest axis


def narrow_form(layout: dict[str, Any]) -> dict[str, Any]:
    """Return the layout of a figure for a narrow page.

    ``below``: the width in pixels from which on it is used. ``plot``: the height of what lies
    between the margins, which depend on how many lines the legend takes. A figure whose axis has
    long names holds short ones in ``layout.meta``.
    """
    made = copy.deepcopy(layout)
    panels = [axis for axis in _axes(made, "x") if made[axis].get("domain", [0, 1]) != [0, 1]]
    meta = made.get("meta")
    short = meta.get("short_names", []) if isinstance(meta, dict) else []
    height = max(_ROW * len(short), 180) if short else _PANEL
    rows = len({tuple(made[axis].get("domain", ())) for axis in _axes(made, "y")})
    plot = height * len(panels) if panels else height if rows <= 1 else 170 * rows
    if panels:
        _stack(made, panels, gap=70 / plot)
    for axis in _axes(made, "y") if short else ():
        names = made["yaxis"]["categoryarray"][::-1]
        made[axis] |= {"tickvals": names, "ticktext": short}
        made[axis]["title"] = {"text": "number in the test"}
    if "coloraxis" in made:
        lying = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "thickness": 10}
        made["coloraxis"]["colorbar"] = {**made["coloraxis"].get("colorbar", {}), **lying}
    made["legend"] = {**made.get("legend", {}), "y": -_TO_LEGEND / plot}
    made["margin"] = {"l": 48, "r": 10, "t": 20, "b": 40}
    made["dragmode"] = False  # a finger scrolls the page
    wide = _PANEL * len(panels) + (_NAMES if short else 0)
    return {"layout": made, "plot": plot, "below": max(_LEAST, wide)}


def _axes(layout: dict[str, Any], letter: str) -> list[str]:
    """List the axes of a layout by name, in the order of their numbers."""
    start = f"{letter}axis"
    return sorted((key for key in layout if key.startswith(start)), key=lambda key: (len(key), key))


def _stack(layout: dict[str, Any], panels: list[str], gap: float) -> None:
    """Place panels that stand side by side below each other, each with its own numbers."""
    height = (1 - gap * (len(panels) - 1)) / len(panels)
    for i, across in enumerate(panels):
        up = f"yaxis{across.removeprefix('xaxis')}"
        top = 1 - i * (height + gap)
        layout[across]["domain"] = [0, 1]
        title = layout.get("yaxis", {}).get("title", {})
        place = {"domain": [max(top - height, 0), top], "showticklabels": True, "title": title}
        layout[up] = {**layout.get(up, {}), **place}
