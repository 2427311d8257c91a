"""The tasks on which it was decided how a search with few evaluations begins."""

import numpy as np
import pytest

from experiments import few_evaluations
from experiments.few_evaluations import MADE_UP, PAPER, WAYS
from experiments.ratios import ratios
from experiments.runs import REPORTED, Setting
from riskpilot.bench import cells
from riskpilot.bench.methods import Assignment


def test_no_task_for_tuning_is_reported():
    assert not set(MADE_UP) & set(REPORTED)


@pytest.mark.parametrize("name", MADE_UP)
def test_losses_have_the_population_risks_as_their_means_and_the_start_is_safe(name):
    task = MADE_UP[name](1)
    assert task.population is not None
    for config in (task.safe, dict.fromkeys(task.space, 0.7)):
        truth = task.population(config)
        for risk, losses in task.losses("held_out", config).items():
            assert abs(losses.mean() - truth[risk]) < 5 * np.sqrt(0.25 / losses.size)
    for limits in task.cells:
        safe = [task.population(task.safe)[risk] for risk in task.problem.names]
        assert all(risk < limit for risk, limit in zip(safe, limits, strict=True))


def test_every_way_is_measured_at_all_and_half_of_the_evaluations():
    setting = Setting("hardly safe, d = 1", (1.0,), 0, 3)
    found = few_evaluations.outcomes(setting)
    (row,) = ratios([setting], [found], PAPER)
    assert set(row["ratio"]) == {PAPER, *WAYS, *(f"{way}, half" for way in WAYS)}
    assert row["ratio"][PAPER] == 1.0
    assert len(set(row["ratio"].values())) > 2


WHERE_IT_MATTERS = {
    "bold steps all the way": ("curved, d = 1", 3, -1),
    "a late hedge": ("curved, d = 1", 0, 0),
    "a hedge in every third proposal": ("curved, d = 1", 0, 0),
    "larger pools": ("abstaining, d = 2, two risks", 0, 1),
    "no caution": ("abstaining, d = 2, two risks", 0, 0),
    "no exploration": ("varied, d = 2", 0, 0),
    "all noise is its own": ("hardly safe, d = 1", 0, 1),
}


def test_every_way_but_the_default_is_looked_at_where_it_matters():
    assert set(WHERE_IT_MATTERS) == set(WAYS) - {"default"}


@pytest.mark.parametrize("way", WHERE_IT_MATTERS)
def test_each_way_changes_what_a_search_tries(way):
    name, seed, place = WHERE_IT_MATTERS[way]
    task = MADE_UP[name](seed)
    problem = cells.problem_at(task, list(task.cells)[place])
    given = Assignment(task, problem, cells.n_calibration(task), seed)
    assert WAYS[way](given).configs != WAYS["default"](given).configs
