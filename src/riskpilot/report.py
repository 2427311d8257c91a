"""One self-contained page that shows a selection to people."""

import html
import math
from pathlib import Path

from riskpilot.certificate import Certificate
from riskpilot.losses import ValidationLosses
from riskpilot.plan import TestPlan, TestResult
from riskpilot.plots import Search, p_value_sequence, trade_off

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --line: #d5d5d5; --soft: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181b; --line: #3a3f45; --soft: #202429; }
  .plot { background: #fff; border-radius: 6px; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
.promise { background: var(--soft); border-left: 5px solid #009E73; padding: 1rem; }
.promise.none { border-color: #D55E00; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; }
pre { background: var(--soft); padding: 1rem; overflow-x: auto; font-size: .85rem; }
"""


def write_report(
    path: str | Path,
    *,
    message: str,
    certificate: Certificate,
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    search: Search | None,
) -> Path:
    """Write the page; it needs no network. Returns where it is."""
    path = Path(path)
    figure = trade_off(plan, result, validation, certificate.chosen, search)
    sequence = p_value_sequence(plan, result)
    certified = certificate.chosen is not None
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>riskpilot: {"certified" if certified else "nothing certified"}</title>
<style>{_STYLE}</style></head><body>
<h1>{"A certified configuration" if certified else "Nothing could be certified"}</h1>
<div class="promise{"" if certified else " none"}"><p>{html.escape(certificate.promise)}</p></div>
<pre>{html.escape(message)}</pre>
<h2>Trade-off</h2><div class="plot">{figure.to_html(full_html=False, include_plotlyjs=True)}</div>
<h2>The test</h2><div class="plot">{sequence.to_html(full_html=False, include_plotlyjs=False)}</div>
<h2>Tested configurations</h2><div class="wide">{_table(certificate)}</div>
<h2>How to check it</h2>
<p>Save the certificate below as <code>certificate.json</code>, and run
<code>riskpilot verify certificate.json --losses LOSSES</code> with the table of losses or the
storage of the study.</p>
<h2>What is not promised</h2>
<ul><li>Nothing about data that is distributed otherwise than the calibration data.</li>
<li>The promise is over the draw of the calibration data: of many selections made this way, a share
of up to {certificate.level:g} may break a limit.</li>
<li>This is question {certificate.use["number"]} to this calibration data. Choosing among the
answers to several questions weakens the promise, unless delta was split between them.</li></ul>
<details><summary>Certificate</summary><pre>{html.escape(certificate.to_json())}</pre></details>
</body></html>
"""
    path.write_text(page, encoding="utf-8")
    return path


def _table(certificate: Certificate) -> str:
    names = [risk["name"] for risk in certificate.problem["risks"]]
    free = certificate.problem["minimize"]
    heads = ["", "configuration", f"{free} (validation)"]
    for name in names:
        heads += [f"{name} (validation)", f"{name} (calibration)", f"p of {name}"]
    heads.append("verdict")
    rows = []
    for i, candidate in enumerate(certificate.candidates):
        cells = [str(i + 1), str(candidate["config"]), f"{candidate['free']:.4g}"]
        for name in names:
            cells += [
                f"{candidate['validation'][name]:.4g}",
                f"{certificate.calibration_means[i][name]:.4g}",
                f"{math.exp(certificate.log_p[i][name]):.2g}",
            ]
        chosen = i == certificate.chosen
        cells.append("chosen" if chosen else "passed" if certificate.passed[i] else "not certified")
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
