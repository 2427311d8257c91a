"""What commands share on a terminal: tables, verdicts, bars, JSON, and errors in one message."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from riskpilot.common import for_programs
from riskpilot.errors import visible

Row = tuple[Sequence[object], str | None]
"""The cells of a row, and its style."""

logger = logging.getLogger("riskpilot")

_WIDE = 200  # a pipe has no width; tables are as wide as their text up to here
_UNBOUNDED = 1_000_000


class ExitCode(IntEnum):
    """What a command's exit says to scripts; 0 is success: certified, or the certificate holds."""

    DOES_NOT_HOLD = 1
    BAD_INPUT = 2
    NOTHING_CERTIFIED = 3
    GO_ON = 4
    CLOSED_PIPE = 141  # 128 and the number of SIGPIPE, as other tools exit


def output() -> Console:
    """Open standard output."""
    return _console(stderr=False)


def errors() -> Console:
    """Open standard error, for all that is not the answer."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Open a stream; without a terminal behind it, lines are not wrapped."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width, console.soft_wrap = _WIDE, True
    return console


def text(words: object, style: str = "") -> Text:
    """Make a text for a terminal of whatever was given.

    Brackets in it are no markup, and control characters, with which a name could colour, move or
    link what the terminal shows, are written as their codes.
    """
    return Text(visible(str(words)), style=style)


def say(console: Console, words: object = "", style: str = "") -> None:
    """Show a line, or several."""
    console.print(text(words, style))


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say on standard error what is going on, for as long as it does; with a log, there."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", words)
        yield
        return
    with errors().status(text(words)):
        yield


def show_error(message: str) -> None:
    """Show one message in red."""
    errors().print(Text("Error: ", style="bold red") + text(message, "red"))


def show_verdict(console: Console, text: str, *, good: bool) -> None:
    """Show a verdict; its first line stands out."""
    first, _, rest = text.partition("\n")
    say(console, first, "bold green" if good else "bold yellow")
    if rest:
        say(console, rest)


def show_table(console: Console, title: str, heads: Sequence[str], rows: Iterable[Row]) -> None:
    """Show a table under a title; where it is too narrow for one, every field in its own line.

    Lines are broken between words alone, so that a number is never cut.
    """
    written = [([text(cell) for cell in cells], style) for cells, style in rows]
    table = Table(
        title=text(title, "bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
    )
    for i, head in enumerate(heads):
        last = i == len(heads) - 1
        table.add_column(text(head), justify="left" if i == 0 or last else "right", overflow="fold")
    for cells, style in written:
        table.add_row(*cells, style=style)
    columns = zip([text(head) for head in heads], *(cells for cells, _ in written), strict=True)
    if _fit(console, table, list(columns)):
        console.print(table)
    else:
        _show_fields(console, title, heads, written)
    console.print()


def _fit(console: Console, table: Table, columns: Sequence[Sequence[Text]]) -> bool:
    """Give every column a width that cuts no word; say whether there is room for that."""
    free = console.options.update(width=_UNBOUNDED)
    sizes = [[Measurement.get(console, free, cell) for cell in cells] for cells in columns]
    least = [max(size.minimum for size in column) for column in sizes]
    most = [max(size.maximum for size in column) for column in sizes]
    around = Measurement.get(console, free, table).maximum - sum(most)
    spare, wish = console.width - around - sum(least), sum(most) - sum(least)
    if spare < 0:
        return False
    for column, low, high in zip(table.columns, least, most, strict=True):
        column.width = low + (high - low) * min(spare, wish) // max(wish, 1)
    return True


def _show_fields(
    console: Console,
    title: str,
    heads: Sequence[str],
    rows: Sequence[tuple[Sequence[Text], str | None]],
) -> None:
    """Show the rows of a table one after another, every field that is not empty in a line."""
    say(console, title, "bold")
    for cells, style in rows:
        console.print()
        for head, cell in zip(heads, cells, strict=True):
            if cell.plain:
                console.print(text(f"{head}: " if head else "") + cell, style=style)


def progress() -> Progress:
    """Make a progress bar on standard error; it is silent where no terminal shows it."""
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


def show_files(console: Console, files: Mapping[str, Path | None]) -> None:
    """Say where each file was written, if it was."""
    for name, path in files.items():
        if path is not None:
            say(console, f"{name + ':':<13}{path}")


def print_json(data: Mapping[str, Any], schema: str | None = None) -> None:
    """Print data for programs, as strict JSON.

    ``schema``: the name and version of its form, where the data does not carry one itself.
    """
    named = data if schema is None else {"schema": schema, **data}
    typer.echo(json.dumps(for_programs(named), indent=2, allow_nan=False))
