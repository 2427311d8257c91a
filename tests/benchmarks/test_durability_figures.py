"""Figures of studies that survive: each command keeps its own, and the docs show all of them."""

import json
import runpy
from pathlib import Path

import pytest

from benchmarks import chaos, crash, large, load
from benchmarks.durability import FIGURES, SPEED, record, table

ROOT = Path(__file__).parents[2]
BOUNDED = ROOT / "experiments" / "results" / "bounded.json"


def test_a_command_replaces_its_own_figures_and_leaves_the_others(tmp_path):
    path = tmp_path / "figures.json"
    record("crash", {"sqlite": {"lost": 1}, "postgresql": {"lost": 0}}, path)
    record("large", {"100": {"peak_mb": 2}}, path)
    record("crash", {"sqlite": {"lost": 0}}, path)
    assert json.loads(path.read_text()) == {
        "crash": {"sqlite": {"lost": 0}, "postgresql": {"lost": 0}},
        "large": {"100": {"peak_mb": 2}},
    }


def test_the_docs_show_the_figures_that_were_written():
    hooks = runpy.run_path(str(ROOT / "docs" / "mkdocs_hooks.py"))
    page = (ROOT / "docs" / "guides" / "many-machines.md").read_text()
    shown = hooks["on_page_markdown"](page)
    assert table() in shown
    assert "<!-- figures" not in shown
    assert hooks["on_page_markdown"]("another page") == "another page"
    figures = json.loads(FIGURES.read_text())
    for run in figures["load"].values():
        assert f"| {run['trials']:,} | {run['first_proposal'][1]:.2f} s" in shown
    for run in json.loads(BOUNDED.read_text())["tasks"].values():
        assert f"{run['gap'][0]:+.4f} ± {run['gap'][1]:.4f}" in shown
    for run in figures["crash"].values():
        assert f"of {run['acknowledged']} finished evaluations {run['lost']} lost" in shown
    for run in figures["chaos"].values():
        assert f"{sum(run['faults'].values())} random faults" in shown
    for run in figures["large"].values():
        assert f"at most {run['peak_mb']:.0f} MB" in shown
    for run in figures["workers"]["quality"].values():
        assert f"{run['gap'][0]:.4f} ± {run['gap'][1]:.4f}" in shown
    for row in json.loads(SPEED.read_text())["rows"]:
        assert (f"{row['ratio']:.2f} times" in shown) or " trials on " not in row["name"]


def test_a_loss_is_not_hidden(tmp_path):
    figures = json.loads(FIGURES.read_text())
    figures["crash"]["sqlite"] |= {"lost": 3, "same_selection": False}
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(figures))
    assert "3 lost" in table(path)
    assert "ANOTHER selection" in table(path)
    figures["chaos"]["journal"] |= {"lost": 5, "hangs": 2, "broken": 1}
    path.write_text(json.dumps(figures))
    assert "5 lost" in table(path)
    assert "2 hangs" in table(path)
    assert "verify BROKEN" in table(path)


def test_a_few_seconds_of_chaos_break_nothing(tmp_path, capsys):
    path = tmp_path / "figures.json"
    options = ["--minutes", "0.15", "--workers", "2", "--storage", "journal", "--out", str(path)]
    with pytest.raises(SystemExit) as ended:
        chaos.main(options)
    assert ended.value.code == 0, capsys.readouterr().out
    figures = json.loads(path.read_text())["chaos"]["journal"]
    assert sum(figures["faults"].values()) > 0
    assert figures["acknowledged"] >= 8
    assert "fault: " in capsys.readouterr().out


def test_chaos_that_breaks_a_promise_says_so():
    report = chaos.Report("sqlite", acknowledged=10)
    assert report.ok
    for name in chaos.MUST_BE_ZERO:
        assert not chaos.Report("sqlite", acknowledged=10, **{name: 1}).ok
    assert not chaos.Report("sqlite").ok


def test_a_small_run_of_each_writes_its_figures(tmp_path, capsys):
    path = tmp_path / "figures.json"
    load.main(["--trials", "30", "--out", str(path)])
    large.main(["--trials", "12", "--examples", "300", "--out", str(path)])
    with pytest.raises(SystemExit) as ended:
        crash.main(["--kills", "1", "--workers", "2", "--storage", "sqlite", "--out", str(path)])
    assert ended.value.code == 0, capsys.readouterr().out
    figures = json.loads(path.read_text())
    assert figures["large"]["12"]["candidates"] > 0
    run = figures["load"]["30"]
    for question in (
        "first_proposal",
        "proposal",
        "slowest_proposal",
        "select",
        "status",
        "report",
    ):
        assert min(run[question]) > 0
    assert run["select_mb"] <= run["selection_mb"]
    assert figures["crash"]["sqlite"]["lost"] == 0
