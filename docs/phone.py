"""Tables that fit: on a phone, rows of sentences become cards, and columns of numbers scroll."""

import html
import re

_TABLE = re.compile(r"<table>(?P<inside>.*?)</table>", re.S)
_ROW = re.compile(r"<tr[^>]*>.*?</tr>", re.S)
_HEAD = re.compile(r"<th[ >].*?</th>", re.S)
_CELL = re.compile(r"<td(?P<attributes>[^>]*)>(?P<words>.*?)(?=</td>)", re.S)
_TAG = re.compile(r"<[^>]+>")
WIDE = 3  # columns that do not fit side by side where one of them holds sentences
LONG = 40  # letters of a cell that must break into lines
SHORT = 28  # letters of cells that stay in one line beside names that break


def with_labels(page: str) -> str:
    """Name the column in every cell of tables that become cards, and mark those of numbers."""
    return _TABLE.sub(_table, page)


def _table(match: re.Match[str]) -> str:
    names = [plain(head) for head in _HEAD.findall(match["inside"])]
    rows = [
        [len(plain(cell["words"])) for cell in _CELL.finditer(row)]
        for row in _ROW.findall(match["inside"])
    ]
    longest = max((max(row) for row in rows if row), default=0)
    beside = max((max(row[1:]) for row in rows if row[1:]), default=0)
    if len(names) < WIDE:
        return match[0]
    if longest < LONG:
        return f"<table data-numbers>{match['inside']}</table>"
    if beside < SHORT:  # columns of numbers under long names
        return f"<table data-numbers data-names>{match['inside']}</table>"
    inside = _ROW.sub(lambda row: _row(row[0], names), match["inside"])
    return f"<table data-cards>{inside}</table>"


def _row(row: str, names: list[str]) -> str:
    columns = iter(names)

    def cell(match: re.Match[str]) -> str:
        label = html.escape(next(columns, ""), quote=True)
        return f'<td{match["attributes"]} data-label="{label}">{match["words"]}'

    return _CELL.sub(cell, row)


def plain(words: str) -> str:
    """Take out tags and entities.

    >>> plain("<th>limit &lt; <code>1</code></th>")
    'limit < 1'
    """
    return html.unescape(_TAG.sub("", words)).strip()
