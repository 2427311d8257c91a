"""Many workers in virtual time: real samplers share evaluations whose durations are made up."""

import numpy as np
import optuna
import pytest

from experiments import many_workers
from experiments.many_workers import SEARCHES, TASKS, Run, in_virtual_time, row_of
from experiments.runs import loaded
from riskpilot.bench import cells

CLIFFS = "tuning: cliffs in steps, d = 3"


@pytest.mark.parametrize("n_workers", [1, 3, 20])
def test_so_many_trials_are_under_way_at_once(n_workers):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    under_way = []

    def tell(trial):
        running = study.get_trials(states=(optuna.trial.TrialState.RUNNING,))
        under_way.append(len(running))
        study.tell(trial, 0.0)

    run = Run(CLIFFS, "random", n_workers, 0, n_trials=10, n_splits=1)
    configs = in_virtual_time(study, loaded(CLIFFS, 0), run, tell)
    assert len(configs) == 10
    assert max(under_way) == min(n_workers, 10)
    assert under_way[-1] == 1


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_begins_at_the_safe_configuration_and_is_tested(search):
    task = loaded(CLIFFS, 0)
    run = Run(CLIFFS, search, 4, 0, n_trials=18, n_splits=2)
    assert SEARCHES[search](task, cells.problem_at(task, TASKS[CLIFFS]), run)[0] == task.safe
    assert 0 < many_workers.free_on_test(run) <= 1


def test_constraints_are_at_the_largest_means_that_pass():
    task = loaded("pruning", 0)
    (bar,) = many_workers.passing_means(task, cells.problem_at(task, (0.05,))).values()
    assert 0.03 < bar < 0.05


def test_ratios_are_to_one_worker_of_the_guided_search():
    free = {("guided", 1): 0.5, ("guided", 64): 0.6, ("random", 1): 1.0}
    runs = [Run(CLIFFS, *key, seed, 9, 1) for key in free for seed in range(2)]
    found = [free[run.search, run.n_workers] + 0.1 * run.seed for run in runs]
    row = row_of(CLIFFS, runs, found)
    assert row["ratio"]["guided"]["64"] == pytest.approx(0.65 / 0.55, abs=1e-4)
    assert row["ratio"]["random"]["1"] == pytest.approx(np.mean([1.0, 1.1]) / 0.55, abs=1e-4)
