"""The parts of the page that are text: the choice, the way to check it, what is not covered."""

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any

from riskpilot.common import how_many
from riskpilot.guarantee import p_in_words, upper_bounds
from riskpilot.problem import Risk
from riskpilot.selection.needed import examples_behind
from riskpilot.selection.report.sentences import (
    amount,
    bound_amount,
    escaped,
    limit_amount,
    percent,
    plain,
    short,
)
from riskpilot.selection.verdict import Selection
from riskpilot.selection.words import ended_rows, first_examples


def choice(selection: Selection) -> str:
    """Show the choice, or the closest candidate, and its risks against the limits."""
    plan, result, at = selection.plan, selection.result, selection.closest
    certified = selection.config is not None
    bounds = upper_bounds(plan, result, [at])[0]
    params = "".join(
        f"<dt>{escaped(k)}</dt><dd>{escaped(plain(v))}</dd>"
        for k, v in selection.candidates[at].items()
    )
    free = f"<dt>{escaped(plan.problem.minimize)}</dt><dd>{plan.free[at]:.4g}</dd>"
    about_free = "; made as small as the limits allow, and not part of the promise"
    cards = [
        f'<div class="card"><h3>{"Chosen" if certified else "Closest"} '
        f'configuration</h3><dl>{params}</dl><hr><dl>{free}</dl><p class="note">on validation '
        f"data{_foretold_after(selection)}{about_free if certified else ''}</p></div>"
    ]
    for i, risk in enumerate(plan.problem.risks):
        cards.append(_risk_card(selection, i, risk, float(bounds[i])))
    words = short(selection, selection.message)
    reason = "" if certified else f'<pre class="wrapped">{escaped(words)}</pre>'
    return (
        f"<h2>The {'choice' if certified else 'closest candidate'}, and its risks "
        f'against the limits</h2><div class="cards">{"".join(cards)}</div>'
        f'<p class="note">Dark bar: the value on calibration data. Light bar: up to the smallest '
        f"limit that this configuration would have passed. Line: the limit."
        f"{' The promise is about the limit.' if certified else ''}</p>{reason}"
    )


def _foretold_after(selection: Selection) -> str:
    """Say after how many examples the evaluation of the shown candidate was ended, if it was."""
    certificate = selection.certificate
    n = certificate.evaluated.get(selection.plan.order[selection.closest])
    if n is None:
        return ""
    return f", of which {n:,} of {how_many(certificate.n_validation, 'example')} were evaluated"


def _risk_card(selection: Selection, i: int, risk: Risk, bound: float) -> str:
    """Show one risk of the closest candidate on a scale, and its numbers."""
    result, at = selection.result, selection.closest
    mean = float(result.means[at, i])
    n, smallest = examples_behind(selection.plan, result, i, at)
    assert risk.limit is not None
    low = risk.bottom
    if low < 0:  # a difference lies near 0, far from the ends of its range
        least = min(0.0, mean, risk.limit)
        low = max(low, least - 0.25 * (max(risk.limit, mean) - least))
    top = min(max(1.25 * risk.limit - 0.25 * low, 1.05 * bound - 0.05 * low), risk.top)

    def place(value: float) -> str:
        share = (value - low) / (top - low)
        return f"{100 * min(max(share, 0.0), 1.0):.2f}%"

    passed = result.log_p[at, i] < math.log(selection.plan.problem.delta)
    known = math.isfinite(bound)
    bar = f'<span class="bound" style="width:{place(bound)}"></span>' if known else ""
    rows = {
        "limit": limit_amount(risk, risk.limit),
        "on calibration data": amount(risk, mean) if result.n[at, i] else "no example counts",
        "upper bound": bound_amount(risk, bound) if known else "not known",
        "calibration examples": f"{n:,}{smallest}",
        "p-value": p_in_words(float(result.log_p[at, i]), selection.plan.aims[at]),
        "test": selection.plan.families[risk.name].replace("_", "-"),
    }
    listed = "".join(f"<dt>{k}</dt><dd>{escaped(v)}</dd>" for k, v in rows.items())
    return (
        f'<div class="card"><h3>{escaped(risk.title)}</h3>'
        f'<div class="scale{"" if passed else " broken"}" role="img" '
        f'aria-label="{escaped(risk.title)}: {escaped(rows["on calibration data"])}, limit '
        f'{escaped(rows["limit"])}">{bar}'
        f'<span class="mean" style="width:{place(mean)}"></span>'
        f'<span class="limit" style="left:{place(risk.limit)}"></span></div>'
        f"<dl>{listed}</dl></div>"
    )


def how_to_check(selection: Selection) -> str:
    """Say how to repeat the test, with the certificate to save."""
    text = selection.certificate.to_json() + "\n"
    data = base64.b64encode(text.encode()).decode()
    certificate = selection.certificate
    smoothed = (
        ""
        if certificate.estimates is None
        else " It goes by risks that were smoothed over neighbouring configurations; they are "
        "computed again from validation losses and configurations."
    )
    origin = (
        "known beforehand"
        if certificate.known_order
        else f"fixed from {how_many(certificate.n_validation, 'validation example')}"
    )
    if certificate.evaluated:
        origin += (
            f" (of {ended_rows(certificate)} only the first {first_examples(certificate)} were "
            f"evaluated, and a race foretold the losses of the others)"
        )
    return f"""<section><h2>How to check it</h2>
<p>The test can be repeated by anybody who has the losses. Save the
<a class="save" download="certificate.json" 
href="data:application/json;base64,{data}">certificate</a>
as <code>certificate.json</code>, and run</p>
<pre tabindex="0">riskpilot verify certificate.json --losses LOSSES</pre>
<p>where LOSSES is the table of losses, or the storage of the study. It reports every difference.
The order of {how_many(len(certificate.candidates), "candidate")}, out of
{how_many(certificate.n_configs, "configuration")}, was {origin} before the
{how_many(certificate.n_calibration, "calibration example was", "calibration examples were")}
opened; the procedure is
{escaped(str(certificate.procedure["name"]).replace("_", " "))}.{smoothed}</p>
<details><summary>The certificate</summary>
<pre tabindex="0">{escaped(text)}</pre></details></section>"""


def not_covered(selection: Selection) -> str:
    """Say what the promise does not cover, or what it does not mean that there is none."""
    if selection.config is None:
        return _not_shown()
    level = percent(selection.certificate.level)
    free = escaped(selection.plan.problem.minimize)
    return f"""<section><h2>What the promise does not cover</h2><ul>
<li><b>Other data.</b> It holds for data that comes about as the calibration data did. Where the
world shifts, a limit can be broken without any sign of it here.</li>
<li><b>Every single case.</b> A limit is on a number made of many examples, not on each of them, nor
on groups among them other than those that a limit names.</li>
<li><b>The other {level}.</b> Of many selections made this way, a share of up to {level} may break
a limit: the calibration data can be unrepresentative by chance.</li>
<li><b>{free}.</b> It was made small on validation data; its value on new data is not bounded.</li>
<li><b>Data that was used before.</b> The calibration examples must not have served for training,
for tuning or for an earlier choice. A further question to the same examples is written to the
ledger; the promise holds for each question on its own, for all at once only where delta was split
between them.</li></ul></section>"""


def _not_shown() -> str:
    """Say what it does not mean that nothing was certified."""
    return """<section><h2>What this does not say</h2><ul>
<li><b>That a limit is broken.</b> No configuration was shown to keep every limit. One of them may
keep them all the same; few calibration examples show little.</li>
<li><b>That the same examples may be asked until something passes.</b> A further question to them is
written to the ledger, and its promise holds for that question on its own.</li></ul></section>"""


def ledger_of_uses(selection: Selection) -> str:
    """Show the questions that have been put to the calibration data."""
    use = selection.certificate.use
    others = ", ".join(f"question {o['use']} of study {o['study']}" for o in use["elsewhere"])
    entries: Iterable[Mapping[str, Any]] = selection.background.ledger
    rows = "".join(
        f"<tr{' class=chosen' if entry['digest'] == use['ledger'] else ''}>"
        f"<td>{escaped(entry['use'])}</td>"
        f'<td class="text">{escaped(entry["problem"])}</td><td>{escaped(entry["spend"])}</td>'
        f'<td class="text">{escaped(entry["created"]).replace("T", "T<wbr>")}</td></tr>'
        for entry in entries
    )
    words = (
        f"This is question {use['number']} to this calibration data; it may spend "
        f"{percent(float(use['spend']))} of delta."
        f"{f' Other studies asked before: {escaped(others)}.' if others else ''}"
    )
    table = (
        '<table class="wrapped"><thead><tr><th scope="col">question</th><th scope="col" '
        'class="text">asked</th><th scope="col">share of delta</th><th scope="col" class="text">'
        f"when</th></tr></thead><tbody>{rows}</tbody></table>"
        if rows
        else f'<p class="note">{_no_entries(use["ledger"])}</p>'
    )
    return f"<section><h2>The ledger</h2><p>{words}</p>{table}</section>"


def _no_entries(entry: str | None) -> str:
    """Say where questions are counted that the page does not list; ``entry``: that of this one."""
    if entry is None:
        return "No ledger was kept: whoever asks again must count."
    return "The questions are listed in the ledger beside the table of losses."
