"""Searches by packages of others outlive changes of riskpilot's own code, and nothing else."""

import json
from pathlib import Path

import pytest

from riskpilot.bench import cells, jobs, peers
from riskpilot.bench.cache import Cache
from riskpilot.bench.jobs import Scope, plan_jobs
from riskpilot.bench.methods import METHODS
from riskpilot.bench.run import run
from riskpilot.bench.searches import SearchResult


def planned(*methods: str) -> list[jobs.Job]:
    return plan_jobs(Scope(["synthetic"], methods, 1, 2))


def changed(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let the source of a module be another one."""
    real = jobs.source_digest

    def digest(modules):
        names = list(modules)
        return real(names) + (" changed" if module in names else "")

    monkeypatch.setattr(jobs, "source_digest", digest)
    monkeypatch.setattr(peers, "source_digest", digest)


def test_our_own_code_changes_our_searches_and_all_tests_but_no_search_of_others(monkeypatch):
    before = planned("guided", "ehvi")
    changed(monkeypatch, "guarantee")
    after = planned("guided", "ehvi")
    for old, new in zip(before, after, strict=True):
        assert (old.search_key == new.search_key) == (old.method == "ehvi")
        assert set(old.replays.values()).isdisjoint(new.replays.values())


@pytest.mark.parametrize("module", ["bench.baselines.ehvi", "study.space", "bench.tasks.task"])
def test_a_change_of_the_baseline_makes_its_search_again(module, monkeypatch):
    (before,) = planned("ehvi")
    changed(monkeypatch, module)
    (after,) = planned("ehvi")
    assert before.search_key != after.search_key


def test_another_table_seed_or_package_is_another_search(monkeypatch):
    task, method = cells.load("synthetic", 0), METHODS["parego"]
    known = peers.peer_key(task, method, "table", 0, 0)
    assert known == peers.peer_key(task, method, "table", 0, 0)
    assert known != peers.peer_key(task, method, "another", 0, 0)
    assert known != peers.peer_key(task, method, "table", 0, 1)
    assert known != peers.peer_key(task, METHODS["ehvi"], "table", 0, 0)
    monkeypatch.setattr(peers, "version", lambda package: "0.0")
    assert known != peers.peer_key(task, method, "table", 0, 0)


def counting(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Let searches find three configurations at once, and count them."""
    calls: list[object] = []

    def search(self, assignment):
        calls.append(assignment)
        return SearchResult([{"x1": 0.1}, {"x1": 0.2}, {"x1": 0.3}], seconds=1.5)

    monkeypatch.setattr("riskpilot.bench.methods.Baseline.__call__", search)
    return calls


def small_run(out: Path, *, seeds: int = 2, resume: bool = True) -> None:
    run(["synthetic"], ["ehvi"], seeds=seeds, splits=2, out=out, jobs=1, resume=resume)


def test_a_run_keeps_the_searches_of_others_and_another_one_starts_from_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counting(monkeypatch)
    monkeypatch.setattr("riskpilot.bench.run.OUT", tmp_path / "first")
    small_run(tmp_path / "first")
    kept = json.loads((tmp_path / "first" / peers.FILE).read_text())
    assert list(kept) == ["synthetic / ehvi / 0", "synthetic / ehvi / 1"]
    small_run(tmp_path / "second", seeds=3)
    assert len(calls) == 3  # only the third seed was new
    assert len(json.loads((tmp_path / "second" / peers.FILE).read_text())) == 3
    small_run(tmp_path / "third")
    for name in ("cells.csv", "seeds.csv"):
        assert (tmp_path / "third" / name).read_text() == (tmp_path / "first" / name).read_text()
    assert len(calls) == 3


def test_a_run_afresh_uses_nothing_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counting(monkeypatch)
    monkeypatch.setattr("riskpilot.bench.run.OUT", tmp_path)
    small_run(tmp_path)
    small_run(tmp_path, resume=False)
    assert len(calls) == 4


def test_a_file_keeps_the_searches_that_a_run_did_not_name(tmp_path: Path) -> None:
    file = tmp_path / peers.FILE
    with Cache(tmp_path / "cache") as cache:
        cache.put({"a": {"configs": [1]}, "b": {"configs": [2]}, "c": {"configs": [3]}})
        peers.keep(file, {"x / ehvi / 0": "a", "y / ehvi / 0": "b"}, cache)
        peers.keep(file, {"y / ehvi / 0": "c"}, cache)
        peers.keep(file, {}, cache)
    found = json.loads(file.read_text())
    assert {name: entry["found"]["configs"] for name, entry in found.items()} == {
        "x / ehvi / 0": [1],
        "y / ehvi / 0": [3],
    }
