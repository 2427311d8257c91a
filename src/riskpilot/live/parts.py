"""The parts of the page below its headline: cards, and tables of trials and questions."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from riskpilot.common import exact, how_many
from riskpilot.guarantee import config_in_words
from riskpilot.live.snapshot import Snapshot
from riskpilot.live.words import as_html, gain
from riskpilot.search import has_unusual_doubt
from riskpilot.selection import left_out_in_words
from riskpilot.study import QuestionStatus, RiskStatus, Status, chance_in_words

_MOST_ROWS = 20


def cards(snapshot: Snapshot) -> str:
    """Show what is expected to pass or was chosen, what may still be gained, and each risk."""
    status = snapshot.status
    made = [_best(snapshot), _gain(snapshot), *(_risk(status, risk) for risk in status.risks)]
    shown = "".join(card for card in made if card)
    return f'<section><div class="cards">{shown}</div></section>' if shown else ""


def under_way(status: Status) -> str:
    """List the trials that workers evaluate at this moment."""
    if not status.running:
        words = "No worker evaluates a trial at this moment."
        waiting = status.states["waiting"]
        if waiting:
            words += f" {how_many(waiting, 'trial waits', 'trials wait')} for one."
        return _section("Workers", f'<p class="note">{words}</p>')
    note = (
        ""
        if status.heartbeats
        else '<p class="note">This storage has no heartbeats: trials of workers that died stay '
        "here. Start workers with a time_limit, after which they take such trials over.</p>"
    )
    rows = [
        [
            str(trial.number),
            _since(trial.seconds),
            "silent: taken over soon" if trial.is_silent else "at work",
            as_html(config_in_words(trial.config)),
        ]
        for trial in status.running[:_MOST_ROWS]
    ]
    n = len(status.running)
    heads = ["trial", "for", "worker", "configuration"]
    title = f"Workers: {how_many(n, 'trial')} under way"
    return _section(title, _table(heads, rows, n) + note)


def failures(status: Status) -> str:
    """List the last trials that failed, with their errors."""
    if not status.failures:
        return ""
    rows = [
        [
            str(trial.number),
            as_html(trial.error),
            as_html(config_in_words(trial.config)),
        ]
        for trial in reversed(status.failures[-_MOST_ROWS:])
    ]
    n = len(status.failures)
    table = _table(["trial", "error", "configuration"], rows, n)
    return _section(f"{how_many(n, 'trial')} failed", table)


def ledger(status: Status) -> str:
    """Show the questions that have been put to the calibration data."""
    if not status.questions:
        words = "Calibration data is sealed: no question has been put to it."
        return _section("The ledger", f'<p class="note">{words}</p>')
    rows = [
        [
            str(question.use),
            f"{question.spend:g}",
            _moment(question.created),
            as_html(_outcome(question)),
            as_html(question.problem),
        ]
        for question in status.questions[-_MOST_ROWS:]
    ]
    heads = ["question", "share of delta", "when", "certified", "asked"]
    words = f"{status.spent_in_words.capitalize()} has been spent."
    table = _table(heads, rows, len(status.questions))
    return _section("The ledger", f"<p>{words}</p>{table}")


def remarks(status: Status) -> str:
    """Say what races saved, and which finished trials cannot be selected."""
    words = "" if status.racing is None else f"Racing: {status.racing}. "
    words += left_out_in_words(status.left_out) if status.left_out else ""
    return f'<p class="note">{as_html(words)}</p>' if words else ""


def _best(snapshot: Snapshot) -> str:
    """Show the configuration that was chosen, or the one that is expected to pass."""
    if snapshot.best is None:
        return ""
    trial, ahead = snapshot.trials[snapshot.best], snapshot.status.outlook
    config = {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in trial.config.items()
    }
    rows = {
        "trial": str(snapshot.best),
        snapshot.status.asked["minimize"]: f"{trial.free:.4g}",
    }
    if snapshot.verdict is None and ahead is not None and ahead.free_chance is not None:
        rows["chance to pass"] = chance_in_words(ahead.free_chance)
    title = "Expected to pass" if snapshot.verdict is None else "Chosen"
    doubted = "chance to pass" in rows and _is_doubted(snapshot)
    allows = "; the chance allows for validation data that is too good" if doubted else ""
    return _card(title, [config, rows], f"on validation data{allows}")


def _is_doubted(snapshot: Snapshot) -> bool:
    """Tell whether the chance allows for risks that are higher than validation data says."""
    outline = None if snapshot.search is None else snapshot.search[1].search
    return outline is not None and has_unusual_doubt(outline.intervals)


def _gain(snapshot: Snapshot) -> str:
    """Show what one more evaluation may bring; after a verdict the search is over."""
    ahead = snapshot.status.outlook
    if ahead is None or ahead.needs is not None or snapshot.verdict is not None:
        return ""
    rows = {
        f"expected gain in {snapshot.status.asked['minimize']}": gain(snapshot),
        "best chance to pass": chance_in_words(ahead.chance),
    }
    note = "the mean over what the next evaluation may show and over what may pass"
    if not snapshot.is_guided:
        note += "; a GuidedSampler proposes it, which this study does not use so far"
    return _card("One more evaluation", [rows], note)


def _risk(status: Status, risk: RiskStatus) -> str:
    """Show how the finished trials stand to one limit."""
    finished = status.states["complete"] - len(status.left_out)
    rows = {
        "limit": "open" if risk.loss_limit is None else exact(risk.loss_limit),
        "so far": status.range_in_words(risk),
    }
    if risk.n_below_limit is not None:
        rows["within the limit"] = f"{risk.n_below_limit:,} of {finished:,}"
    if risk.loss_region is not None:
        rows["a close call"] = "{:.4g} to {:.4g}".format(*risk.loss_region)
    return _card(risk.title, [rows], "on validation data")


def _card(title: str, lists: Iterable[Mapping[str, str]], note: str) -> str:
    """Write a card with lists of named values, of which empty ones are left out."""
    written = [f"<dl>{''.join(map(_entry, rows.items()))}</dl>" for rows in lists if rows]
    return (
        f'<div class="card"><h3>{as_html(title)}</h3>{"<hr>".join(written)}'
        f'<p class="note">{note}</p></div>'
    )


def _entry(entry: tuple[str, str]) -> str:
    """Write a name and its value in a list."""
    name, value = map(as_html, entry)
    return f"<dt>{name}</dt><dd>{value}</dd>"


def _since(seconds: float) -> str:
    """Write when something began; the script of the page counts the time since."""
    began = time.time() - seconds
    moment = datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds")
    return f'<time data-began="{began:.0f}" datetime="{moment}">since {moment}</time>'


def _moment(written: str) -> str:
    """Write a moment of the ledger without its seconds."""
    moment = datetime.fromisoformat(written).astimezone(UTC)
    return f'<span class="whole">{moment:%Y-%m-%d %H:%M} UTC</span>'


def _outcome(question: QuestionStatus) -> str:
    """Write what a question led to."""
    if not question.answered:
        return "interrupted; select again"
    return "nothing" if question.config is None else config_in_words(question.config)


def _section(title: str, content: str) -> str:
    """Write a section under its title."""
    return f"<section><h2>{as_html(title)}</h2>{content}</section>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """Write a table of cells that are HTML already, and how many rows it leaves out."""
    head = "".join(f'<th scope="col" class="text">{name}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    left_out = total - len(rows)
    note = f'<p class="note">{left_out:,} more are left out here.</p>' if left_out else ""
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def _cell(content: str) -> str:
    """Write a cell of a table."""
    return f'<td class="text">{content}</td>'
