"""The table of every configuration."""

import math
from collections.abc import Mapping
from typing import Any

from riskpilot.guarantee import p_in_words
from riskpilot.selection.report.story import Story, escaped, plain

# More rows than this help nobody; the candidates come first, and the page says what it left out.
MOST_ROWS = 1000


def table_of_trials(story: Story) -> str:
    """Sortable and searchable; the script of the page sees to that."""
    order, n = story.plan.order, len(story.validation.free)
    tested = set(order)
    rows = list(range(n))
    if n > MOST_ROWS:
        rows = [*order, *(row for row in rows if row not in tested)][:MOST_ROWS]
    configs = _configs(story, rows)
    params = list(dict.fromkeys(name for config in configs for name in config))
    position = {row: i for i, row in enumerate(order)}
    lines = [
        _line(story, row, config, params, position.get(row))
        for row, config in zip(rows, configs, strict=True)
    ]
    left_out = (
        f'<p class="note">{n - len(rows):,} of {n:,} configurations are left out of the table; '
        f"those that were tested come first.</p>"
        if len(rows) < n
        else ""
    )
    return (
        '<section><h2>Every configuration</h2><div class="tools">'
        '<label>Search <input id="search" type="search" autocomplete="off" '
        'placeholder="such as: chosen"></label><span id="count" class="note" role="status">'
        '</span></div><div class="wide" tabindex="0"><table id="trials"><thead><tr>'
        f"{_head(story, params)}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f"{left_out}</section>"
    )


def _head(story: Story, params: list[str]) -> str:
    titles = [risk.title for risk in story.plan.problem.risks]
    heads = [("trial", ""), ("verdict", "text"), *((param, "text") for param in params)]
    heads += [(f"{name}, validation", "") for name in (*titles, story.plan.problem.minimize)]
    heads += [("tested as", ""), *((f"{name}, calibration", "") for name in titles)]
    heads.append(("p-value", ""))
    return "".join(
        f'<th scope="col" class="{kind}"><button>{escaped(name)}</button></th>'
        for name, kind in heads
    )


def _line(
    story: Story, row: int, config: Mapping[str, Any], params: list[str], at: int | None
) -> str:
    """One configuration; ``at`` is its position in the test, None where it was not tested."""
    risks = story.plan.problem.risks
    number = story.background.numbers[row] if len(story.background.numbers) else row
    verdict = _verdict(story, at)
    cells = [_number(float(number), f"{number}"), f'<td class="text">{verdict}</td>']
    cells += [_cell(config.get(name, "")) for name in params]
    cells += [_number(float(value)) for value in story.values[row]]
    if at is None:
        cells += ["<td></td>"] * (len(risks) + 2)
    else:
        cells.append(_number(at + 1, str(at + 1)))
        cells += [_number(float(story.result.means[at, i])) for i in range(len(risks))]
        log_p = float(story.result.worst_log_p[at])
        cells.append(_number(max(log_p, -1e300), p_in_words(log_p)))
    mark = ' class="chosen"' if verdict == "chosen" else ""
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _configs(story: Story, rows: list[int]) -> list[Mapping[str, Any]]:
    if len(story.background.configs):
        return [story.background.configs[row] for row in rows]
    known = {c["row"]: c["config"] for c in story.certificate.candidates}
    return [known.get(row, {}) for row in rows]


def _verdict(story: Story, at: int | None) -> str:
    if at is None:
        return "not tested"
    if at == story.chosen:
        return "chosen"
    return "certified" if story.result.passed[at] else "not certified"


def _number(value: float, text: str | None = None) -> str:
    return f'<td data-v="{value!r}">{escaped(f"{value:.4g}" if text is None else text)}</td>'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f'<td class="text" data-v="{float(value)!r}">{escaped(plain(value))}</td>'
    return f'<td class="text">{escaped(value)}</td>'
