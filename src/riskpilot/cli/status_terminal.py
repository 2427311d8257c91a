"""Where a study stands, for people at a terminal."""

from rich.console import Console
from rich.text import Text

from riskpilot.cli.terminal import short_config, show_table
from riskpilot.selection import left_out_in_words
from riskpilot.study import QuestionStatus, Status

_MOST_FAILURES = 10
_MOST_RUNNING = 5


def show_status(console: Console, status: Status) -> None:
    """Trials and budget in two lines, then tables of risks, failures and questions."""
    states = ", ".join(f"{n} {name}" for name, n in status.states.items() if n) or "none yet"
    console.print(Text(f"Study {status.study}", style="bold"))
    console.print(Text(status.problem))
    console.print(Text(f"Trials: {states}; {_duration(status.seconds)} of evaluation"))
    if status.left_out:
        console.print(Text(left_out_in_words(status.left_out)))
    console.print(
        Text(
            f"Examples: {_count(status.n_validation)} validation, "
            f"{_count(status.n_calibration)} calibration"
        )
    )
    for line in _running(status):
        console.print(Text(line))
    console.print()
    if status.risks:
        rows = [
            (
                [
                    risk.title,
                    "open" if risk.limit is None else f"{risk.limit:g}",
                    f"{risk.lowest:.4g} to {risk.highest:.4g}",
                    "" if risk.n_below_limit is None else risk.n_below_limit,
                    "" if risk.region is None else f"{risk.region[0]:.4g} to {risk.region[1]:.4g}",
                ],
                None,
            )
            for risk in status.risks
        ]
        heads = ["risk", "limit", "on validation so far", "trials below", "region of interest"]
        show_table(console, "Risks", heads, rows)
    if status.failures:
        last = status.failures[-_MOST_FAILURES:]
        shown = "" if len(last) == len(status.failures) else f" (the last {len(last)} shown)"
        heads = ["trial", "error", "configuration"]
        cells = [([f.number, f.error, short_config(f.config)], "yellow") for f in last]
        show_table(console, f"{len(status.failures)} failed{shown}", heads, cells)
    if not status.questions:
        console.print(Text("Ledger: calibration is sealed; nothing has been selected yet."))
        return
    heads = ["question", "share of delta", "when", "asked", "certified"]
    questions = [
        ([q.use, f"{q.spend:g}", q.created, q.problem, _certified(q)], _style(q))
        for q in status.questions
    ]
    show_table(console, f"Ledger: {status.spent:g} of delta spent", heads, questions)


def _running(status: Status) -> list[str]:
    if not status.running:
        return []
    told = ", ".join(
        f"{t.number} for {_duration(t.seconds)}" for t in status.running[:_MOST_RUNNING]
    )
    left = len(status.running) - _MOST_RUNNING
    lines = [f"Running: trial {told}{f' and {left} more' if left > 0 else ''}"]
    if not status.heartbeats:
        lines.append(
            "This storage has no heartbeats: trials of workers that died stay here as running. "
            "Start workers with a time_limit, after which they take such trials over."
        )
    return lines


def _certified(question: QuestionStatus) -> str:
    if not question.answered:
        return "interrupted; select again"
    return "nothing" if question.config is None else short_config(question.config)


def _style(question: QuestionStatus) -> str | None:
    return "green" if question.config is not None else "yellow"


def _count(n: int | None) -> str:
    return "unknown" if n is None else f"{n:,}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
