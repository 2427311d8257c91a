"""The tables of searches under hard conditions show the figures that experiments wrote."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = {
    "optimism_by_task": "optimism",
    "settling": "settling",
    "races": "racing",
    "earlier_studies": "warm_start",
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_a_row_for_each_task_and_as_many_columns_as_its_head(table):
    shown = runpy.run_path(str(ROOT / "docs" / "searches.py"))[table]()
    written = ROOT / "experiments" / "results" / f"{TABLES[table]}.json"
    rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    for row in rows:
        assert f"| {row['task'].replace('_', ' ')}" in shown


def test_every_hard_space_is_in_one_of_two_tables_with_its_figures():
    tables = runpy.run_path(str(ROOT / "docs" / "searches.py"))
    shown = tables["narrow_regions"]() + tables["failing_regions"]()
    written = ROOT / "experiments" / "results" / "hard_spaces.json"
    for row in json.loads(written.read_text(encoding="utf-8"))["rows"]:
        if "gap" in row:
            first = f"{row['gap']['guided']:.2f} ({row['empty']['guided']:.0%})"
        else:
            first = f"{row['multiple']['guided']:.3f} ({row['fell']['guided']:.1f})"
        assert shown.count(f"| {row['task']} | {row['trials']} | {first} |") == 1


def test_many_workers_are_compared_with_one():
    shown = runpy.run_path(str(ROOT / "docs" / "searches.py"))["many_workers"]()
    written = ROOT / "experiments" / "results" / "many_workers.json"
    for row in json.loads(written.read_text(encoding="utf-8"))["rows"]:
        ratios = " | ".join(f"{ratio:.3f}" for ratio in row["ratio"]["guided"].values())
        assert f"| guided | {ratios} |" in shown


def test_the_default_is_shown_beside_trust_and_a_uniform_grid():
    shown = runpy.run_path(str(ROOT / "docs" / "searches.py"))["optimism"]()
    written = ROOT / "experiments" / "results" / "optimism.json"
    for row in json.loads(written.read_text(encoding="utf-8"))["means"]:
        ratio = row["ratio"]
        figures = [f"{ratio[name]:.3f}" for name in ("guided", "trusting", "uniform")]
        assert " | ".join(figures) in shown


def test_the_rate_of_trials_is_shown_by_what_a_trial_takes():
    shown = runpy.run_path(str(ROOT / "docs" / "searches.py"))["throughput"]()
    figures = json.loads((ROOT / "benchmarks" / "durability.json").read_text(encoding="utf-8"))
    for run in figures["throughput"].values():
        assert f"| {run['processor_ms']:.0f} ms | {run['lock_processor_ms']:.1f} ms |" in shown
