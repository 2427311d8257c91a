"""``riskpilot status``: where a study stands; calibration stays sealed."""

from rich.console import Console

from riskpilot.cli import terminal
from riskpilot.cli.options import JsonOption, StorageArgument, StudyNameOption, examples
from riskpilot.common import exact
from riskpilot.guarantee import config_in_words
from riskpilot.problem import Problem
from riskpilot.selection import left_out_in_words
from riskpilot.study import (
    QuestionStatus,
    RiskStatus,
    Status,
    ahead_in_words,
    open_study,
    study_status,
)

SCHEMA = "riskpilot-status/1"

EXAMPLES = examples(
    "riskpilot status sqlite:///study.db",
    "riskpilot status study.log --study-name adult --json",
)

_MOST_FAILURES = 10
_MOST_RUNNING = 5


def status(
    storage: StorageArgument,
    study_name: StudyNameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a study stands: trials, failures, budget, ledger; calibration stays sealed."""
    found = study_status(open_study(storage, study_name))
    if as_json:
        terminal.print_json(found.to_json(), schema=SCHEMA)
    else:
        show_status(terminal.output(), found)


def show_status(console: Console, status: Status) -> None:
    """Show trials and budget in a few lines, then tables of risks, failures and questions."""
    states = ", ".join(f"{n} {name}" for name, n in status.states.items() if n) or "none yet"
    terminal.say(console, f"Study {status.study}", "bold")
    terminal.say(console, status.problem)
    terminal.say(console, f"Trials: {states}; {_duration(status.seconds)} in trials")
    if status.left_out:
        terminal.say(console, left_out_in_words(status.left_out))
    terminal.say(
        console,
        f"Examples: {_count(status.n_validation)} validation, "
        f"{_count(status.n_calibration)} calibration",
    )
    for line in (*_running(status), *_raced(status), *_ahead(status)):
        terminal.say(console, line)
    terminal.say(console)
    _show_risks(console, status)
    _show_failures(console, status)
    _show_ledger(console, status)


def _raced(status: Status) -> list[str]:
    """Say what races saved."""
    return [] if status.racing is None else [f"Racing: {status.racing}"]


def _ahead(status: Status) -> list[str]:
    """Say what is likely to pass now, and what one more evaluation may bring.

    Nothing is ahead once a configuration was certified for the study's own problem.
    """
    ahead = status.outlook
    own = [one for one in status.questions if one.asked == status.asked]
    if ahead is None or any(one.config is not None for one in own):
        return []
    return [f"Ahead: {ahead_in_words(ahead, Problem.from_dict(status.asked))}"]


def _show_risks(console: Console, status: Status) -> None:
    """Show the limits, and how the trials stand to them on validation data."""
    if status.risks:
        heads = ["risk", "limit", "on validation so far", "trials below", "region of interest"]
        rows = [(_cells(status, risk), None) for risk in status.risks]
        terminal.show_table(console, "Risks", heads, rows)


def _cells(status: Status, risk: RiskStatus) -> list[object]:
    """Write how the trials stand to one limit."""
    return [
        risk.title,
        "open" if risk.loss_limit is None else exact(risk.loss_limit),
        status.range_in_words(risk),
        "" if risk.n_below_limit is None else risk.n_below_limit,
        "" if risk.loss_region is None else "{:.4g} to {:.4g}".format(*risk.loss_region),
    ]


def _show_failures(console: Console, status: Status) -> None:
    """Show the last trials that failed, with their errors."""
    if status.failures:
        last = status.failures[-_MOST_FAILURES:]
        shown = "" if len(last) == len(status.failures) else f" (the last {len(last)} shown)"
        heads = ["trial", "error", "configuration"]
        rows = [([f.number, f.error, config_in_words(f.config)], "yellow") for f in last]
        terminal.show_table(console, f"{len(status.failures)} failed{shown}", heads, rows)


def _show_ledger(console: Console, status: Status) -> None:
    """Show the questions that have been put to the calibration data."""
    if not status.questions:
        terminal.say(console, "Ledger: calibration is sealed; nothing has been selected yet.")
        return
    heads = ["question", "share of delta", "when", "asked", "certified"]
    rows = [
        ([q.use, f"{q.spend:g}", q.created, q.problem, _certified(q)], _style(q))
        for q in status.questions
    ]
    terminal.show_table(console, f"Ledger: {status.spent_in_words} spent", heads, rows)


def _running(status: Status) -> list[str]:
    """Say which trials are running, and since when."""
    if not status.running:
        return []
    trials = ", ".join(
        f"{t.number} for {_duration(t.seconds)}" for t in status.running[:_MOST_RUNNING]
    )
    left = len(status.running) - _MOST_RUNNING
    lines = [f"Running: trial {trials}{f' and {left} more' if left > 0 else ''}"]
    if not status.heartbeats:
        lines.append(
            "This storage has no heartbeats: trials of workers that died stay here as running. "
            "Start workers with a time_limit, after which they take such trials over."
        )
    return lines


def _certified(question: QuestionStatus) -> str:
    """Write what a question led to."""
    if not question.answered:
        return "interrupted; select again"
    return "nothing" if question.config is None else config_in_words(question.config)


def _style(question: QuestionStatus) -> str | None:
    """Colour a question by whether anything was certified."""
    return "green" if question.config is not None else "yellow"


def _count(n: int | None) -> str:
    """Write a number of examples."""
    return "unknown" if n is None else f"{n:,}"


def _duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
