"""The page as HTML: words that a script swaps when the study changes, and its figures."""

from riskpilot.live import parts, words
from riskpilot.live.figures import figures_of
from riskpilot.live.snapshot import Snapshot
from riskpilot.plots import figure_data, sections


def write_live_page(snapshot: Snapshot, name: str) -> str:
    """Write the page of a snapshot; ``name``: the name of its state, which changes with it."""
    status, figures = snapshot.status, figures_of(snapshot)
    first, second = words.sentences(snapshot)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{words.as_html(f"{words.headline(snapshot)}: {status.study}")}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css"><link rel="stylesheet" href="live.css">
<noscript><meta http-equiv="refresh" content="10"></noscript>
</head>
<body class="{words.mood(snapshot)}" data-version="{name}">
<p id="lost" role="alert" hidden></p>
<header id="above">
<p class="verdict" role="status">{words.as_html(words.state(snapshot))}</p>
<h1>{words.as_html(words.headline(snapshot))}</h1>
<div class="promise"><p>{words.as_html(first)}</p>
<p>{words.as_html(second)}</p></div>
</header>
<main>
<div id="cards">{parts.cards(snapshot)}</div>
<div id="figures">{sections(figures)}</div>
<div id="below">
{parts.under_way(status)}
{parts.failures(status)}
{parts.ledger(status)}
{parts.remarks(status)}
</div>
</main>
<footer><p id="link"></p>Study {words.as_html(status.study)}, shown by riskpilot.</footer>
<p id="spoken" class="unseen" role="status"></p>
<script type="application/json" id="page">{figure_data(figures)}</script>
<script src="plotly.js"></script>
<script src="figures.js"></script>
<script src="points.js"></script>
<script src="live.js"></script>
</body></html>
"""
