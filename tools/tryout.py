"""What users do with the package once it is installed: the README, the examples, every command.

``tools.release_check`` copies this file beside the README and the examples, and runs it there with
the Python of an empty environment. All of it shares one process, because every start of the package
takes seconds; the command lines of the README alone are run by the program that users have.
"""

import json
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pages
import readme_setup
import typer
from typer.testing import CliRunner

from riskpilot.cli.app import app


def readme() -> None:
    """Run the README's code, then its command lines, each as a process of its own."""
    names = {"__name__": "page", **readme_setup.prepare()}
    blocks = list(pages.blocks_of(Path("README.md")))
    for block in blocks:
        if block.language == "python":
            print(f"README.md, line {block.line}", flush=True)
            exec(compile(block.code, "README.md", "exec"), names)
    for line in (
        line for b in blocks if b.language == "bash" for line in pages.shell_lines(b.code)
    ):
        program, *words = shlex.split(line, comments=True)
        if program == "riskpilot":
            print(line, flush=True)
            subprocess.run([Path(sys.executable).with_name(program), *words], check=True)


def examples(left_out: list[str]) -> None:
    """Run every example but those that need what is not installed."""
    for path in sorted(Path("examples").glob("*.py")):
        if path.stem not in left_out:
            print(path, flush=True)
            runpy.run_path(str(path), run_name="__main__")


def commands(calls: dict[str, tuple[list[str], int]]) -> None:
    """Call every command, with ``--help`` and with its arguments; write down which there are."""
    Path("answers.csv").write_text(
        "example,accuracy\n" + "".join(f"e{i},{int(i % 9 > 0)}\n" for i in range(900))
    )
    Path("labels.csv").write_text("error\n" + "0\n" * 50)
    for name, (arguments, code) in calls.items():
        _call([name, "--help"], 0)
        _call([name, *arguments], code)
    Path("commands.txt").write_text("\n".join(typer.main.get_command(app).commands))


def _call(words: list[str], code: int) -> None:
    """Call a command, which has to end with the given exit code and without a traceback."""
    print("riskpilot", *words, flush=True)
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code != code:
        sys.exit(f"The exit code is {result.exit_code}, not {code}.\n{result.output}")


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    readme()
    examples(task["left_out"])
    commands(task["calls"])
