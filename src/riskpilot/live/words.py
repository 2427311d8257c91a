"""What the page says of a search: its state, its headline, and what may be expected."""

import html

from riskpilot.errors import visible
from riskpilot.live.snapshot import Snapshot
from riskpilot.study import chance_in_words, counts_in_words, gain_in_words

_SEALED = "Calibration data is sealed, so that looking as often as one likes costs nothing."


def as_html(text: str) -> str:
    """Write somebody's words for the page, which shows all of them and obeys none of them.

    >>> as_html("<b>\\x1b[31m")
    '&lt;b&gt;\\\\x1b[31m'
    """
    return html.escape(visible(text))


def mood(snapshot: Snapshot) -> str:
    """Name the colours of the page: certified, none for nothing certified, or searching."""
    verdict = snapshot.verdict
    if verdict is None:
        return "searching"
    return "none" if verdict.config is None else "certified"


def state(snapshot: Snapshot) -> str:
    """Say in a line whether the search goes on, or what its test said."""
    status, verdict = snapshot.status, snapshot.verdict
    counts = counts_in_words(status.states)
    if verdict is not None:
        said = "✗ Nothing could be certified" if verdict.config is None else "✓ Certified"
        return f"{said} · {counts}"
    return f"{'● Searching' if status.running else '○ Nothing is running'} · {counts}"


def headline(snapshot: Snapshot) -> str:
    """Write what matters most at this moment."""
    status, verdict = snapshot.status, snapshot.verdict
    free = status.asked["minimize"]
    if verdict is not None and verdict.config is None:
        return "No configuration is shown to keep every limit"
    if verdict is not None:
        best = None if snapshot.best is None else snapshot.trials[snapshot.best]
        value = "" if best is None else f"; {free} is {best.free:.4g} on validation data"
        return f"A configuration is certified{value}"
    if not snapshot.trials:
        return "No trial has finished yet"
    ahead = status.outlook
    if ahead is None and _is_open(snapshot):
        return "What will pass hangs on limits that are open"
    if ahead is None:
        return "It is too early to say what will pass"
    if ahead.needs is not None:
        return "Nothing can pass with so few calibration examples"
    if ahead.free is None:
        return "Nothing is expected to pass so far"
    return f"{free} {ahead.free:.4g} is expected to pass"


def _is_open(snapshot: Snapshot) -> bool:
    """Tell whether a limit is still open."""
    return any(risk.loss_limit is None for risk in snapshot.status.risks)


def sentences(snapshot: Snapshot) -> tuple[str, str]:
    """Explain the headline, then say what it rests on."""
    verdict = snapshot.verdict
    if verdict is not None:
        assert verdict.promise is not None
        return verdict.promise, f"Question {verdict.use} to the calibration data: {verdict.problem}"
    return f"{_expected(snapshot)} {_ahead(snapshot)}".strip(), (
        f"{snapshot.status.problem} {_SEALED}"
    )


def gain(snapshot: Snapshot) -> str:
    """Write the expected gain of one more evaluation."""
    ahead = snapshot.status.outlook
    assert ahead is not None
    return gain_in_words(ahead)


def _expected(snapshot: Snapshot) -> str:
    """Say what is expected to pass now, and with what chance."""
    status = snapshot.status
    ahead = status.outlook
    if not snapshot.trials:
        return "This page renews itself when the first one has."
    if ahead is None and _is_open(snapshot):
        return "Limits of this problem are still open; the search learns the whole trade-off."
    if ahead is None:
        return "The first trials are spread over all configurations; a forecast follows them."
    if ahead.needs is not None:
        return f"It takes at least {ahead.needs:,}, however long the search goes on."
    if ahead.free is None or ahead.free_chance is None:
        best = chance_in_words(ahead.chance)
        return f"No trial is more likely to pass the test than not; the best chance is {best}."
    return (
        f"Trial {ahead.trial} would pass the test on calibration data with a chance of "
        f"{chance_in_words(ahead.free_chance)}."
    )


def _ahead(snapshot: Snapshot) -> str:
    """Say what one more evaluation is expected to bring."""
    ahead = snapshot.status.outlook
    if ahead is None or ahead.needs is not None:
        return ""
    free = snapshot.status.asked["minimize"]
    which = "" if snapshot.is_guided else " that a GuidedSampler proposes"
    return f"One more evaluation{which} is expected to lower {free} by {gain(snapshot)}."
