"""The workflow in examples/ does what it says: its step is run with a real remote repository."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from pages import ROOT

LOGS = ROOT / "tests" / "tables" / "logs" / "fixtures" / "inspect_ai"
WORKFLOW = yaml.safe_load((ROOT / "examples" / "github-gate.yml").read_text(encoding="utf-8"))


def git(*words, folder):
    """Run git as somebody who has set nothing up."""
    somebody = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", *somebody, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """Make a remote repository with the branch of the ledger, and check it out as the job does."""
    remote, first, job = (tmp_path / name for name in ("remote.git", "first", "job"))
    git("init", "--quiet", "--bare", str(remote), folder=tmp_path)
    git("init", "--quiet", "--initial-branch", "riskpilot-ledger", str(first), folder=tmp_path)
    shutil.copy(LOGS / "terse-small.eval", first / "main.eval")
    git("add", "main.eval", folder=first)
    git("commit", "--quiet", "--message", "The reference", folder=first)
    git("push", "--quiet", str(remote), "riskpilot-ledger", folder=first)
    job.mkdir()
    clone = ["clone", "--quiet", "--branch", "riskpilot-ledger"]
    git(*clone, str(remote), str(job / "ledger"), folder=tmp_path)
    return job


def run_gate(job, log):
    """Run the step "Gate" of the workflow, and return its exit code."""
    shutil.copy(LOGS / log, job / "new.eval")
    steps = WORKFLOW["jobs"]["gate"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "Gate")
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    variables = {"PATH": os.pathsep.join(paths), "GITHUB_STEP_SUMMARY": str(job / "summary.md")}
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=job,
        env={**os.environ, **variables},
        check=False,
        capture_output=True,
    ).returncode


def test_the_step_passes_a_better_model_refuses_a_worse_one_and_keeps_the_questions(checkout):
    assert run_gate(checkout, "terse-large.eval") == 0
    assert "gate: passed" in (checkout / "summary.md").read_text()
    git("pull", "--quiet", folder=checkout / "ledger")
    # The same model against itself: a drop of less than 0.03 is not shown by 60 examples.
    assert run_gate(checkout, "terse-small.eval") == 1
    assert json.loads((checkout / "gate.json").read_text())["question"] == 2
    assert ElementTree.parse(checkout / "gate.xml").find("testsuite").get("failures") == "1"
    kept = checkout / "kept.db"
    kept.write_bytes(
        subprocess.run(
            ["git", "show", "riskpilot-ledger:gate.db"],
            cwd=checkout.parent / "remote.git",
            check=True,
            capture_output=True,
        ).stdout
    )
    with sqlite3.connect(kept) as ledger:
        assert ledger.execute("SELECT passed FROM questions").fetchall() == [(1,), (0,)]


def test_the_step_fails_where_the_question_cannot_be_kept(checkout):
    shutil.rmtree(checkout.parent / "remote.git")
    assert run_gate(checkout, "terse-large.eval") not in (0, 1)


def test_the_jobs_ask_one_after_another():
    assert WORKFLOW["concurrency"] == {"group": "riskpilot-gate"}
    assert WORKFLOW["permissions"] == {"contents": "write"}
