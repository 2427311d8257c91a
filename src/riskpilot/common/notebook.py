"""How values show themselves in a notebook: a small card, legible on light and on dark paper."""

import html
from collections.abc import Iterable, Sequence

_GREEN, _RED = "#009E73", "#D55E00"
_PLAIN = "border:0;background:none;color:inherit;font-size:inherit"  # whatever the notebook's style
_CELL = f"padding:2px 14px 2px 0;text-align:left;{_PLAIN}"


def card(
    title: str,
    lines: Iterable[str] = (),
    *,
    head: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    good: bool | None = None,
) -> str:
    """A title, sentences and a table; a green or a red edge for a verdict. All text is escaped.

    >>> "&lt;b&gt;" in card("<b>")
    True
    """
    edge = "currentColor" if good is None else _GREEN if good else _RED
    said = "".join(f'<div style="margin:2px 0">{html.escape(line)}</div>' for line in lines)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    names = "".join(f'<th style="{_CELL}">{html.escape(name)}</th>' for name in head)
    table = f'<table style="margin:6px 0;{_PLAIN}"><tr>{names}</tr>{body}</table>' if body else ""
    return (
        f'<div style="border-left:4px solid {edge};padding:4px 12px;margin:4px 0">'
        f'<div style="font-weight:600">{html.escape(title)}</div>{said}{table}</div>'
    )


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f'<td style="{_CELL}">{html.escape(text)}</td>'
