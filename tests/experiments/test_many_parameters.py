"""The tasks on which it was decided how proposals are found among many parameters."""

from dataclasses import replace

import optuna
import pytest

from experiments import many_parameters
from experiments.many_parameters import COMPARISON, TASKS
from experiments.training import TASKS as REPORTED


def test_no_task_for_tuning_is_reported():
    assert set(COMPARISON.tuning) == set(TASKS)
    assert not set(TASKS) & set(REPORTED)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_starts_safe_and_its_limit_can_be_broken(name):
    task = TASKS[name](0)
    risk, limit = task.problem.risks[0].name, task.problem.risks[0].limit
    assert task.on_test(task.safe)[0] < limit
    assert task.suggest(optuna.trial.FixedTrial(task.safe)) == task.safe
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [task.losses(task.suggest(study.ask()))["validation"][risk].mean() for _ in range(9)]
    assert max(drawn) > limit


def test_a_search_over_the_cover_alone_proposes_other_configurations():
    task = replace(many_parameters.made_up(0, 0.25, 7, 6, 30), n_trials=10)
    climbing, cover = (
        COMPARISON.searches[name](task, 0) for name in ("guided", "guided, cover alone")
    )
    assert climbing[:8] == cover[:8]
    assert climbing[8:] != cover[8:]
