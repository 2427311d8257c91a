"""The examples run as they are, each in an empty folder, and say what they show."""

import ast
import os
import runpy
import shlex
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from pages import ROOT
from typer.main import get_command

from riskpilot.cli import app

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


SAYS = {"mlflow_runs": "9 runs in mlflow.db, the last one: selection"}


# MLflow's own way to talk to SQLAlchemy.
@pytest.mark.filterwarnings("ignore:The ``noload`` loader:DeprecationWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_certifies(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert "Chosen" in said or "riskpilot " in said
    assert "nothing certified" not in said.lower()
    assert SAYS.get(path.stem, "") in said


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_opens_with_what_it_shows_and_how_to_run_it(path):
    header = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert header is not None
    assert f"python examples/{path.name}" in header


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    # The kernel is a process of its own, which takes its settings and its history from here.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert Path(tmp_path, "certificate.json").exists()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert os.path.getsize(path) < 20_000


def test_the_schedule_runs_a_command_that_there_is():
    workflow = yaml.safe_load((ROOT / "examples" / "watch_daily.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["watch"]["steps"]
    (line,) = [step["run"] for step in steps if step.get("run", "").startswith("riskpilot ")]
    _, command, *words = shlex.split(line)
    known = {name for each in get_command(app).commands[command].params for name in each.opts}
    assert {word for word in words if word.startswith("--")} <= known
