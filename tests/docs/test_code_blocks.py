"""Every code block of the README and the documentation runs, page by page, in order."""

import ast
import re
import shlex
import tomllib
import warnings

import pytest
import readme_setup
from pages import PAGES, ROOT, Block, blocks_of, name_of, shell_lines
from typer.testing import CliRunner

# These would run for minutes or forever; that they exist and explain themselves is checked.
_LONG_RUNNING = {"demo", "dashboard", "live", "bench"}
_KNOWN = {"python", "bash", "pycon", "text", "json", "setup"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_of_a_page_runs_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    if page.name == "README.md":
        namespace |= readme_setup.prepare()
    printed = ""
    for block in blocks_of(page):
        assert block.language in _KNOWN, f"line {block.line}: fences name one of {_KNOWN}"
        if block.is_output:
            where = f"{name_of(page)}:{block.line}"
            assert _shows(block.code, printed), f"{where}: this is printed now:\n{printed}"
        elif block.language in ("python", "setup"):
            _run_python(page, block, namespace)
            printed = "".join(capsys.readouterr())
        elif block.language == "bash":
            commands = shell_lines(block.code)
            where = f"{name_of(page)}:{block.line}"
            printed = "".join(_run_command(where, command) for command in commands)


def test_a_block_shows_what_was_printed_in_any_lines_and_with_parts_left_out():
    printed = "Chosen: {'a': 1, 'b': 2}\n2 of 3 passed.\n"
    assert _shows("Chosen: {'a': 1, ...}\n2 of\n3 passed.\n", printed)
    assert not _shows("Chosen: {'a': 1, ...}\n1 of 3 passed.\n", printed)


def test_start_page_certifies_in_under_25_lines():
    first = next(b for b in blocks_of(ROOT / "docs" / "index.md") if b.language == "python")
    assert len(first.code.splitlines()) < 25


def test_a_block_may_stand_in_a_list_and_a_setup_is_hidden(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- setup:\na = 1\n-->\n\n1. Look:\n\n    ```python\n    b = a\n    ```\n")
    assert [(b.language, b.code, b.line) for b in blocks_of(page)] == [
        ("setup", "a = 1\n", 2),
        ("python", "b = a\n", 8),
    ]


def _shows(shown: str, printed: str) -> bool:
    """Whether a text was printed; its lines may break elsewhere, and ... leaves something out."""
    parts = (re.escape(part) for part in " ".join(shown.split()).split("..."))
    return re.search(".*".join(parts), " ".join(printed.split())) is not None


def _run_python(page, block: Block, namespace: dict) -> None:
    # Line numbers in a traceback are those of the page.
    code = "\n" * (block.line - 1) + block.code
    tree = ast.parse(code, str(page))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Optuna marks some of its own features as experimental; users see that, too.
        warnings.filterwarnings("ignore", category=_experimental())
        exec(compile(tree, str(page), "exec"), namespace)


def _experimental() -> type[Warning]:
    from optuna.exceptions import ExperimentalWarning

    return ExperimentalWarning


def _run_command(where: str, command: str) -> str:
    """Run a command, or check that it is one; return what it printed."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, f"{where}: the Makefile has no target {words[1]}"
    elif words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extra in ",".join(re.findall(r"(?:riskpilot|\.)\[([\w,]+)\]", command)).split(","):
            known = ("", *project["optional-dependencies"])
            assert extra in known, f"{where}: no extra {extra}"
    elif words[0] == "riskpilot":
        from riskpilot.cli.app import app

        arguments = [words[1], "--help"] if words[1] in _LONG_RUNNING else words[1:]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{where}: {command}\n{result.output}"
        return result.output
    else:
        pytest.fail(f"{where}: {words[0]!r} is a command that this test does not know")
    return ""
