"""What the command line shows: tables on terminals, plain text in pipes, errors in one message."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from riskpilot.guarantee import RiskPlan
from riskpilot.selection import Selection

_WIDE = 200  # a pipe has no width; tables are as wide as their text up to here


def output() -> Console:
    return _console(stderr=False)


def errors() -> Console:
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width, console.soft_wrap = _WIDE, True
    return console


def show_error(message: str) -> None:
    """One message in red, whatever brackets it holds."""
    errors().print(Text.assemble(("Error: ", "bold red"), (message, "red")))


def show_verdict(console: Console, text: str, *, good: bool) -> None:
    """A verdict whose first line stands out."""
    first, _, rest = text.partition("\n")
    console.print(Text(first, style="bold green" if good else "bold yellow"))
    if rest:
        console.print(Text(rest))


def show_table(console: Console, title: str, heads: Sequence[str], rows: Iterable[Any]) -> None:
    """A table; ``rows`` are sequences of cells, or pairs of cells and a style."""
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
    )
    for i, head in enumerate(heads):
        last = i == len(heads) - 1
        table.add_column(head, justify="left" if i == 0 or last else "right", overflow="fold")
    for cells, style in rows:
        table.add_row(*(Text(str(cell)) for cell in cells), style=style)
    console.print(table)
    console.print()


def progress() -> Progress:
    """A bar on standard error, so that what is piped stays clean; nothing where none can see it."""
    console = errors()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def show_plans(console: Console, plans: Sequence[RiskPlan], delta: float) -> None:
    """What can pass, one row per risk and number of examples; then the same in words."""
    with_power = any(plan.power is not None for plan in plans)
    heads = ["risk", "test", "examples", "largest value that passes", "fewest examples"]
    if with_power:
        heads += ["true risk", "power", f"examples for {plans[0].target_power:g}"]
    rows = []
    for plan in plans:
        cells = [
            str(plan.risk),
            plan.family.replace("_", "-"),
            f"{plan.n_calibration:,}",
            "none" if plan.largest_mean is None else f"{plan.largest_mean:.5g}",
            f"{plan.fewest:,}",
        ]
        if with_power:
            cells += [
                "" if plan.true_risk is None else f"{plan.true_risk:g}",
                "" if plan.power is None else f"{plan.power:.3f}",
                "" if plan.needed is None else f"{plan.needed:,}",
            ]
        rows.append((cells, None if plan.largest_mean is not None else "yellow"))
    show_table(console, f"What calibration data can show at delta = {delta:g}", heads, rows)
    for plan in plans:
        console.print(Text(str(plan)))


def show_candidates(console: Console, selection: Selection, most: int = 12) -> None:
    """The tested configurations in testing order; of a long list those around the choice."""
    chosen = selection.certificate.chosen
    total = len(selection.candidates)
    start = 0 if chosen is None else max(0, min(chosen - most // 2, total - most))
    heads = ["verdict", "p-value"]
    for risk in selection.problem.risks:
        heads += [f"{risk.title}, calibration", f"{risk.title}, validation"]
    heads += [f"{selection.problem.minimize}, validation", "configuration"]
    rows = []
    for i in range(start, min(start + most, total)):
        passed = bool(selection.result.passed[i])
        verdict = "chosen" if i == chosen else "passed" if passed else "-"
        cells = [verdict, f"{selection.p_values[i]:.2g}"]
        for j in range(len(selection.problem.risks)):
            cells += [f"{selection.result.means[i, j]:.4g}", f"{selection.plan.risks[i][j]:.4g}"]
        cells += [f"{selection.plan.free[i]:.4g}", short_config(selection.candidates[i])]
        rows.append((cells, "bold green" if i == chosen else None if passed else "dim"))
    shown = "" if total <= most else f" ({len(rows)} of {total} shown)"
    show_table(console, f"Tested configurations, in testing order{shown}", heads, rows)


def short_config(config: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    )
