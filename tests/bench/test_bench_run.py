"""One command makes everything, goes on after an interruption, and repeats itself exactly."""

import subprocess
import sys
from pathlib import Path

import pytest

from riskpilot.bench import jobs as jobs_module
from riskpilot.bench.cache import Cache
from riskpilot.bench.jobs import Scope, plan_jobs, run_jobs
from riskpilot.bench.methods import METHODS
from riskpilot.bench.run import run
from riskpilot.errors import TableError

FAST = ["guided", "paper", "one_sided", "hvi", "uniform", "random", "practice", "dense"]


def small_run(out: Path, methods: list[str], jobs: int = 1) -> None:
    run(["synthetic"], methods, seeds=2, splits=4, out=out, quick=True, jobs=jobs)


def test_a_run_writes_tables_figures_and_pages(tmp_path: Path) -> None:
    small_run(tmp_path, FAST)
    for name in ("cells", "seeds", "comparisons", "claims"):
        assert len((tmp_path / f"{name}.csv").read_text().splitlines()) > 1
    page = (tmp_path / "README.md").read_text()
    assert "riskpilot bench --quick --task synthetic" in page
    assert "[Synthetic](tasks/synthetic.md)" in page
    places = {
        "tasks/synthetic.md": ["synthetic"],
        "settings.md": ["search", "sided", "p_values"],
        "README.md": ["ratios"],
    }
    for name, link in ((name, link) for name, links in places.items() for link in links):
        assert f"figures/{link}.png" in (tmp_path / name).read_text()
        assert (tmp_path / "figures" / f"{link}.png").stat().st_size > 1000


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    small_run(tmp_path / "one", ["guided", "random"])
    small_run(tmp_path / "two", ["guided", "random"], jobs=2)
    pages = ("README.md", "settings.md", "tasks/synthetic.md")
    for name in ("seeds.csv", "comparisons.csv", "claims.csv", *pages):
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()


def test_an_interrupted_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_jobs(Scope(["synthetic"], ["uniform", "random"], 3, 4))
    real, calls = jobs_module.work, []

    def interrupted(job, found, missing):  # type: ignore[no-untyped-def]
        calls.append(job)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(job, found, missing)

    monkeypatch.setattr(jobs_module, "work", interrupted)
    with Cache(tmp_path) as cache:
        with pytest.raises(KeyboardInterrupt):
            run_jobs(planned, cache, 1, lambda job: None)
        run_jobs(planned, cache, 1, lambda job: None)
        assert len(calls) == len(planned) + 1
        run_jobs(planned, cache, 1, lambda job: None)
    assert len(calls) == len(planned) + 1


def test_more_splits_do_not_search_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cache(tmp_path) as cache:
        run_jobs(plan_jobs(Scope(["synthetic"], ["random"], 2, 3)), cache, 1, lambda job: None)

        def no_search(*_: object, **__: object) -> None:
            raise AssertionError("searched again")

        monkeypatch.setattr("riskpilot.bench.methods.run_search", no_search)
        more = plan_jobs(Scope(["synthetic"], ["random"], 2, 5))
        run_jobs(more, cache, 1, lambda job: None)
        assert all(cache.get(key) for job in more for key in job.replays.values())


def test_methods_that_ignore_the_limits_are_searched_once_for_all_of_them() -> None:
    planned = plan_jobs(Scope(["synthetic"], list(METHODS), 2, 4))
    for job in planned:
        assert (job.cell is None) == (not METHODS[job.method].looks_at_limits)
        assert len({key.cell for key in job.replays}) == (5 if job.cell is None else 1)


def test_a_missing_table_is_a_line_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RISKPILOT_TABLES", str(tmp_path))
    run(["vae", "synthetic"], ["uniform"], seeds=1, splits=2, out=tmp_path / "out", jobs=1)
    assert "vae is left out" in capsys.readouterr().err
    with pytest.raises(TableError, match="needs the table of one task"):
        run(["vae"], ["uniform"], out=tmp_path / "out", jobs=1)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="A method is one of"):
        run(["synthetic"], ["guidde"], out=tmp_path)


def test_what_is_not_installed_is_named_and_the_rest_runs(tmp_path, monkeypatch, capsys):
    absent = {"matplotlib", "botorch", "smac"}

    def found(name):
        return None if name in absent else object()

    for module in ("riskpilot.bench.run", "riskpilot.bench.methods"):
        monkeypatch.setattr(f"{module}.find_spec", found)
    methods = ["uniform", "ehvi", "parego"]
    run(["synthetic"], methods, seeds=1, splits=2, out=tmp_path, quick=True, jobs=1)
    told = " ".join(capsys.readouterr().err.split())
    assert "ehvi is left out. The method 'ehvi' needs botorch. In a clone of riskpilot" in told
    assert "pip install '.[baselines]'." in told
    assert "parego is left out. The method 'parego' needs smac" in told
    assert "They need matplotlib. In a clone of riskpilot: pip install '.[bench]'." in told
    assert (tmp_path / "README.md").exists()
    assert not (tmp_path / "figures").exists()
    with pytest.raises(TableError, match=r"none is. The method guided needs no extra"):
        run(["synthetic"], ["ehvi"], out=tmp_path, quick=True)


def test_the_replay_loads_neither_matplotlib_nor_torch():
    code = "import sys, riskpilot.bench.run; print({'matplotlib', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
