"""One self-contained page that shows a selection to people: the promise first, then the reasons."""

from importlib.resources import files
from pathlib import Path

from riskpilot.plots import sections, web_page, write_page
from riskpilot.selection.report.figures import figures_of
from riskpilot.selection.report.parts import choice, how_to_check, ledger_of_uses, not_covered
from riskpilot.selection.report.sentences import escaped, headline, limits, sentence, short
from riskpilot.selection.report.trials import table_of_trials
from riskpilot.selection.verdict import Selection

__all__ = ["write_report"]


def write_report(selection: Selection, path: str | Path) -> Path:
    """Write the page of a selection, which needs no network, and return where it is."""
    return write_page(path, _page(selection), "report")


def _page(selection: Selection) -> str:
    """Write the page as HTML, with plotly and all data inside."""
    certificate, certified = selection.certificate, selection.config is not None
    figures = figures_of(selection)
    version = certificate.versions.get("riskpilot", "")
    return web_page(
        title=f"{'Certified' if certified else 'Nothing certified'}: {limits(selection)}",
        good=certified,
        version=version,
        body=f"""<header>
<p class="verdict">{"✓ Certified" if certified else "✗ Nothing could be certified"}</p>
<h1>{escaped(headline(selection))}</h1>
<div class="promise"><p>{escaped(sentence(selection))}</p>
<p>{escaped(short(selection, certificate.promise))}</p></div>
</header>
<main>
{choice(selection)}
{sections(figures)}
{table_of_trials(selection)}
{how_to_check(selection)}
{not_covered(selection)}
{ledger_of_uses(selection)}
</main>
<footer>Made by riskpilot {escaped(version)},
{escaped(certificate.created)}. Certificate {escaped(certificate.digest[:16])}…</footer>""",
        figures=figures,
        script=(files("riskpilot.selection.report") / "assets" / "trials.js").read_text("utf-8"),
    )
