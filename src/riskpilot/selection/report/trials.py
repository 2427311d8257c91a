"""The table of every configuration."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.guarantee import p_in_words
from riskpilot.plots import validation_points
from riskpilot.selection.report.sentences import escaped, plain
from riskpilot.selection.verdict import Selection
from riskpilot.selection.words import foretold_in_words

# More rows than this help nobody; the candidates come first, and the page says what it left out.
MOST_ROWS = 1000

# The column that marks what a race ended; it is there where one ended anything.
EVALUATED = "validation examples evaluated"


def table_of_trials(selection: Selection) -> str:
    """Write the table; the script of the page lets readers sort and search it."""
    order, n = selection.plan.order, len(selection.validation.free)
    tested = set(order)
    rows = list(range(n))
    if n > MOST_ROWS:
        rows = [*order, *(row for row in rows if row not in tested)][:MOST_ROWS]
    configs, values = _configs(selection, rows), validation_points(selection.validation)
    params = list(dict.fromkeys(name for config in configs for name in config))
    position = {row: i for i, row in enumerate(order)}
    lines = [
        _line(selection, row, config, values[row], params, position.get(row))
        for row, config in zip(rows, configs, strict=True)
    ]
    left_out = (
        f'<p class="note">{n - len(rows):,} of {n:,} configurations '
        f"{'is' if n - len(rows) == 1 else 'are'} left out of the table; "
        f"those that were tested come first.</p>"
        if len(rows) < n
        else ""
    )
    return (
        '<section><h2>Every configuration</h2><div class="tools">'
        '<label>Search <input id="search" type="search" autocomplete="off" '
        'placeholder="such as: chosen"></label><span id="count" class="note" role="status">'
        '</span><span id="more" class="note" hidden>Scroll the table sideways for more columns →'
        '</span></div><div class="wide" tabindex="0" role="region" '
        'aria-label="Every configuration"><table id="trials"><thead><tr>'
        f"{_head(selection, params)}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f"{left_out}{_foretold(selection)}</section>"
    )


def _foretold(selection: Selection) -> str:
    """Say where some of the validation losses are foretold; nothing where none is."""
    words = foretold_in_words(selection.certificate)
    if not words:
        return ""
    mark = f"The column {EVALUATED} says which these are."
    return f'<p class="note">{escaped(words)} {mark}</p>'


def _head(selection: Selection, params: list[str]) -> str:
    """Write the heads of the columns, each a button that sorts by it."""
    titles = [risk.title for risk in selection.plan.problem.risks]
    heads = [("trial", ""), ("verdict", "text"), *((param, "text") for param in params)]
    heads += [(f"{name}, validation", "") for name in (*titles, selection.plan.problem.minimize)]
    if selection.certificate.evaluated:
        heads.append((EVALUATED, ""))
    heads += [("tested as", ""), *((f"{name}, calibration", "") for name in titles)]
    heads.append(("p-value", ""))
    return "".join(
        f'<th scope="col" class="{kind}"><button>{escaped(name)}</button></th>'
        for name, kind in heads
    )


def _line(
    selection: Selection,
    row: int,
    config: Mapping[str, Any],
    values: npt.NDArray[np.float64],
    params: list[str],
    at: int | None,
) -> str:
    """Write one configuration; ``at`` is its position in the test, None if it was not tested."""
    risks = selection.plan.problem.risks
    number = selection.background.numbers[row] if len(selection.background.numbers) else row
    verdict = _verdict(selection, at)
    cells = [_number(float(number), f"{number}"), f'<td class="text">{verdict}</td>']
    cells += [_cell(config.get(name, "")) for name in params]
    cells += [_number(float(value)) for value in values]
    if selection.certificate.evaluated:
        cells.append(_evaluated(selection, row))
    if at is None:
        cells += ["<td></td>"] * (len(risks) + 2)
    else:
        cells.append(_number(at + 1, str(at + 1)))
        cells += [_number(float(selection.result.means[at, i])) for i in range(len(risks))]
        log_p = float(selection.result.worst_log_p[at])
        cells.append(_number(max(log_p, -1e300), p_in_words(log_p, selection.plan.aims[at])))
    mark = ' class="chosen"' if verdict == "chosen" else ""
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _configs(selection: Selection, rows: list[int]) -> list[Mapping[str, Any]]:
    """Find the configurations of rows; those that were not tested may not be known."""
    if len(selection.background.configs):
        return [selection.background.configs[row] for row in rows]
    known = {c["row"]: c["config"] for c in selection.certificate.candidates}
    return [known.get(row, {}) for row in rows]


def _evaluated(selection: Selection, row: int) -> str:
    """Write of how many validation examples one configuration was evaluated."""
    most = selection.certificate.n_validation
    n = selection.certificate.evaluated.get(row, most)
    return _number(n, "all" if n == most else f"{n:,} of {most:,}, ended")


def _verdict(selection: Selection, at: int | None) -> str:
    """Say in a word or two what the test said."""
    if at is None:
        return "not tested"
    if at == selection.certificate.chosen:
        return "chosen"
    return "certified" if selection.result.passed[at] else "not certified"


def _number(value: float, text: str | None = None) -> str:
    """Write a cell that is sorted by a number."""
    return f'<td data-v="{value!r}">{escaped(f"{value:.4g}" if text is None else text)}</td>'


def _cell(value: Any) -> str:
    """Write the value of a parameter, sorted as a number where it is one."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f'<td class="text" data-v="{float(value)!r}">{escaped(plain(value))}</td>'
    return f'<td class="text">{escaped(value)}</td>'
