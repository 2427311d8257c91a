"""One self-contained page that shows a selection to people: the promise first, then the reasons."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from riskpilot.common import reason_of, shown_safely, write_whole
from riskpilot.errors import PlotError, raise_alone
from riskpilot.selection.report.figures import figures_of, page_data, sections
from riskpilot.selection.report.parts import choice, how_to_check, ledger_of_uses, not_covered
from riskpilot.selection.report.sentences import escaped, headline, limits, sentence
from riskpilot.selection.report.trials import table_of_trials
from riskpilot.selection.verdict import Selection

__all__ = ["write_report"]


def write_report(selection: Selection, path: str | Path) -> Path:
    """Write the page of a selection, which needs no network, and return where it is."""
    page = _page(selection)
    try:
        return write_whole(path, page)
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            PlotError(
                f"The report cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def _page(selection: Selection) -> str:
    """Write the page as HTML, with plotly and all data inside."""
    certificate, certified = selection.certificate, selection.config is not None
    figures = figures_of(selection)
    version = escaped(certificate.versions.get("riskpilot", ""))
    title = "Certified" if certified else "Nothing certified"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="riskpilot {version}">
<title>{title}: {escaped(limits(selection))}</title>
<link rel="icon" href="data:,">
<style>{asset("report.css")}</style></head>
<body class="{"certified" if certified else "none"}">
<header>
<p class="verdict">{"✓ Certified" if certified else "✗ Nothing could be certified"}</p>
<h1>{escaped(headline(selection))}</h1>
<div class="promise"><p>{escaped(sentence(selection))}</p>
<p>{escaped(certificate.promise)}</p></div>
</header>
<main>
{choice(selection)}
{sections(figures)}
{table_of_trials(selection)}
{how_to_check(selection)}
{not_covered(selection)}
{ledger_of_uses(selection)}
</main>
<footer>Made by riskpilot {version},
{escaped(certificate.created)}. Certificate {escaped(certificate.digest[:16])}…</footer>
<script type="application/json" id="page">{as_json(page_data(figures))}</script>
<script type="text/plain" id="plotly">{get_plotlyjs()}</script>
<script>{asset("report.js")}</script>
</body></html>
"""


def as_json(data: Any) -> str:
    """Write JSON that can stand inside a script element whatever names it holds."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def asset(name: str) -> str:
    """Read a file of the folder of assets."""
    return (files("riskpilot.selection.report") / "assets" / name).read_text(encoding="utf-8")
