"""One self-contained page that shows a selection to people: the promise first, then the reasons."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from riskpilot.common import told
from riskpilot.errors import PlotError
from riskpilot.guarantee import Certificate, TestPlan, TestResult
from riskpilot.losses import ValidationLosses
from riskpilot.plots import Background, Search
from riskpilot.selection.report.figures import figures_of, page_data, sections
from riskpilot.selection.report.parts import choice, how_to_check, ledger_of_uses, not_covered
from riskpilot.selection.report.story import Story, escaped, headline, limits, sentence
from riskpilot.selection.report.trials import table_of_trials

__all__ = ["write_report"]


def write_report(
    path: str | Path,
    *,
    message: str,
    certificate: Certificate,
    plan: TestPlan,
    result: TestResult,
    validation: ValidationLosses,
    search: Search | None,
    background: Background | None = None,
) -> Path:
    """Write the page; it needs no network. Returns where it is."""
    story = Story(
        message, certificate, plan, result, validation, search, background or Background()
    )
    page = _page(story)
    try:
        place = Path(path)
        place.write_text(page, encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        raise PlotError(
            f"The report cannot be written to {told(path)}: {error}. "
            f"Check that the folder exists and can be written."
        ) from error
    return place


def _page(story: Story) -> str:
    certified = story.chosen is not None
    figures = figures_of(story)
    version = escaped(story.certificate.versions.get("riskpilot", ""))
    title = "Certified" if certified else "Nothing certified"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="riskpilot {version}">
<title>{title}: {escaped(limits(story))}</title>
<link rel="icon" href="data:,">
<style>{asset("report.css")}</style></head>
<body class="{"certified" if certified else "none"}">
<header>
<p class="verdict">{"✓ Certified" if certified else "✗ Nothing could be certified"}</p>
<h1>{escaped(headline(story))}</h1>
<div class="promise"><p>{escaped(sentence(story))}</p>
<p>{escaped(story.certificate.promise)}</p></div>
</header>
<main>
{choice(story)}
{sections(figures)}
{table_of_trials(story)}
{how_to_check(story)}
{not_covered(story)}
{ledger_of_uses(story)}
</main>
<footer>Made by riskpilot {version},
{escaped(story.certificate.created)}. Certificate {escaped(story.certificate.digest[:16])}…</footer>
<script type="application/json" id="page">{as_json(page_data(figures))}</script>
<script type="text/plain" id="plotly">{get_plotlyjs()}</script>
<script>{asset("report.js")}</script>
</body></html>
"""


def as_json(data: Any) -> str:
    """JSON that can stand inside a script element whatever names it holds."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def asset(name: str) -> str:
    return (files("riskpilot.selection.report") / "assets" / name).read_text(encoding="utf-8")
