"""The comparison in tree-shaped spaces: tasks, searches and their summary."""

import json
from dataclasses import replace

import optuna
import pytest

from experiments import tree_tasks
from experiments.side_by_side import Outcome, Run
from experiments.tree_tasks import REPORTED, TASKS, TUNING
from experiments.trees import COMPARISON


def test_tasks_for_tuning_and_for_reporting_are_apart():
    assert not set(TUNING) & set(REPORTED)
    assert {*TUNING, *REPORTED} == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_conditions_and_its_safe_configuration_is_safe(name):
    task = TASKS[name](0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [task.suggest(study.ask()) for _ in range(30)]
    assert len({frozenset(config) for config in drawn}) >= 3
    risk, _ = task.on_test(task.safe)
    assert risk < task.problem.risks[0].limit / 2
    assert task.suggest(optuna.trial.FixedTrial(task.safe)) == task.safe
    evaluation = task.evaluate(optuna.trial.FixedTrial(task.safe))
    assert set(evaluation.validation) == {task.problem.risks[0].name, task.problem.minimize}
    assert task.evaluate(optuna.trial.FixedTrial(task.safe)) is evaluation  # evaluated once


@pytest.mark.parametrize("search", COMPARISON.searches)
def test_every_search_begins_at_the_safe_configuration_and_ends_in_a_choice(search, monkeypatch):
    short = lambda seed: replace(tree_tasks.branches(seed), n_trials=18)  # noqa: E731
    monkeypatch.setitem(TASKS, "branches", short)
    task = short(0)
    assert COMPARISON.searches[search](task, 0)[0] == task.safe
    found = COMPARISON.outcome(Run("branches", 0, search))
    assert found.certified
    assert 0.3 < found.free <= 1.0  # 1 where nothing but the safe one passed


def test_the_summary_compares_with_the_best_of_the_peers():
    free = {"guided": 0.5, "TPE": 0.8, "NSGA-II": 0.7, "random": 1.0}
    runs = [Run("branches", seed, search) for seed in range(2) for search in free]
    found = [Outcome(free[run.search], 0.09, run.seed == 0) for run in runs]
    (row,) = COMPARISON.summary(runs, found)
    assert (row["best_peer"], row["ratio"], row["role"]) == ("NSGA-II", 0.714, "tuning")
    assert row["gain"] == [0.2, 0.0]
    assert row["empty"]["guided"] == row["above_limit"]["guided"] == 1  # its limit is 0.08


def test_figures_of_other_searches_stay_beside_new_ones(tmp_path, monkeypatch):
    def outcomes(values):
        return lambda runs, jobs, kept: [
            Outcome(values[run.search] + run.seed / 100, 0.01, True) for run in runs
        ]

    def main(*arguments):
        given = ["--out", str(out), *arguments]
        COMPARISON.main("experiments.trees", "Trees.", out, 2, given)
        return {row["task"]: row for row in json.loads(out.read_text())}

    out = tmp_path / "trees.json"
    before = dict.fromkeys(COMPARISON.searches, 0.8) | {"TPE": 0.6, "guided": 0.3}
    monkeypatch.setattr(type(COMPARISON), "_outcomes", lambda self, *a: outcomes(before)(*a))
    first = main()
    after = {"guided": 0.5}
    monkeypatch.setattr(type(COMPARISON), "_outcomes", lambda self, *a: outcomes(after)(*a))
    task = TUNING[0]
    second = main("--search", "guided", "--task", task)
    assert second[task]["free"] == first[task]["free"] | {"guided": 0.505}
    assert (second[task]["best_peer"], second[task]["ratio"]) == ("TPE", round(0.505 / 0.605, 3))
    assert {name: row for name, row in second.items() if name != task} == {
        name: row for name, row in first.items() if name != task
    }
    with pytest.raises(SystemExit, match="Give --seeds 2"):
        main("--search", "guided", "--seeds", "1")
