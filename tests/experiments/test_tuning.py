"""What was tried is measured by the replay's own rules, and told as it was measured."""

import json

import numpy as np
import pytest

from experiments.tuning import shown
from experiments.tuning.plans import PLANS, test_with, two_chains
from experiments.tuning.problems import CLIFF_STEPS, cliffs
from experiments.tuning.searches import SEARCHES
from riskpilot.bench import cells, tasks
from riskpilot.bench.methods import METHODS, Assignment
from riskpilot.bench.replay import replay
from riskpilot.bench.validation_sums import sum_validation

test_with.__test__ = False  # a function of the experiment


@pytest.fixture(scope="module")
def synthetic():
    task = tasks.synthetic(n_validation=400, n_held_out=1_000)
    problem = cells.problem_at(task, (0.16,))
    return task, problem, Assignment(task, problem, 500, 0), cells.draw_splits(task, 6)


def test_the_default_is_the_default(synthetic):
    task, problem, assignment, splits = synthetic
    found = SEARCHES["default"](assignment)
    assert found.configs == METHODS["guided"].search(assignment).configs
    seen = sum_validation(task, found.configs)
    ours = test_with("default", task, problem, found.configs, seen, splits)
    official = replay(task, problem, found.configs, seen, splits, smooth=True)
    np.testing.assert_array_equal(ours.chosen, official.chosen)
    paper = test_with("raw means (the paper)", task, problem, found.configs, seen, splits)
    official = replay(task, problem, found.configs, seen, splits)
    np.testing.assert_array_equal(paper.chosen, official.chosen)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_runs_and_repeats_nothing(synthetic, name):
    _, _, assignment, _ = synthetic
    configs = SEARCHES[name](assignment).configs
    assert len(configs) == (5 if name.startswith("half") else 10)
    assert len({config["x1"] for config in configs}) == len(configs)


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_chooses_what_it_tested(synthetic, name):
    task, problem, assignment, splits = synthetic
    configs = SEARCHES["default"](assignment).configs
    outcome = test_with(name, task, problem, configs, sum_validation(task, configs), splits)
    assert set(outcome.chosen) <= {-1, *range(len(configs))}
    assert (outcome.chosen >= 0).mean() > 0.5


def test_two_chains_stop_on_their_own():
    log_p = np.log([0.01, 0.2, 0.01, 0.01, 0.01, 0.01])
    assert two_chains(6)(log_p, 0.1).tolist() == [True, False, True, False, True, False]


def test_cliffs_have_the_risk_they_claim_and_steps():
    task = cliffs(0)
    middle = dict.fromkeys(task.space, 0.5)
    sample = task.losses("held_out", middle)["error"].mean()
    assert sample == pytest.approx(task.population(middle)["error"], abs=0.02)
    moved = {**middle, "x1": 0.5 + 0.2 / (CLIFF_STEPS[0] - 1)}
    np.testing.assert_array_equal(
        task.losses("validation", middle)["error"], task.losses("validation", moved)["error"]
    )


def test_tables_tell_what_was_measured():
    figures = json.loads(shown.FIGURES.read_text())
    text = shown.tried()
    for row in figures["tried"]:
        (line,) = (line for line in text.splitlines() if line.startswith(f"| {row['tried']} |"))
        assert float(line.split("|")[-3]) == round(100 * row["mean_change"], 1)
    assert f"{figures['bets'][0]['one_order']:.2f}" in shown.bets()
    assert f"{figures['shares'][0]['cost']:.4f}" in shown.shares()
