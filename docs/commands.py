"""The page of every command of the command line, written from the program itself."""

import re
from collections.abc import Iterator

import typer

from riskpilot.cli import app

_NOTE = re.compile(r"\s\s\[(?P<note>[^\]]*)\]$")  # such as "  [default: 0; x>=0]"


def table() -> str:
    """Write a section for every command: what it does, its arguments and options, examples."""
    group = typer.main.get_command(app)
    return "\n".join(
        line
        for name, command in sorted(group.commands.items())
        for line in _section(name, command, typer.Context(command))
    )


def _section(name: str, command: typer.core.TyperCommand, context: typer.Context) -> Iterator[str]:
    yield f"## riskpilot {name}\n\n{_plain(command.help or '')}\n"
    yield "| argument or option | what it says | default |\n|---|---|---|"
    for parameter in command.params:
        option, words = parameter.get_help_record(context) or ("", "")
        note = _NOTE.search(words)
        default = "" if note is None else note["note"].removeprefix("default: ")
        yield f"| {_code(option)} | {_cell(_NOTE.sub('', words))} | {_cell(default)} |"
    yield f"\n{_examples(command.epilog or '')}\n"


def _examples(epilog: str) -> str:
    """Show the lines of an epilog that are commands as code, and the others as text."""
    shown = []
    for part in filter(None, _plain(epilog).split("\n\n")):
        command = part.startswith("riskpilot ")
        shown.append(f"```text\n{part}\n```" if command else part)
    return "\n\n".join(shown)


def _plain(words: str) -> str:
    """Take out the marks of rich, which are for terminals."""
    return re.sub(r"\[/?bold\]", "", words).replace("\\[", "[")


def _cell(words: str) -> str:
    return _plain(words).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _code(words: str) -> str:
    return f"<code>{_cell(words)}</code>"
