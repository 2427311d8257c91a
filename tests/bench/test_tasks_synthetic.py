"""The synthetic task's samples have the population risks that it states."""

import numpy as np
import pytest

from riskpilot.bench.tasks import synthetic
from riskpilot.errors import ProblemError


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("dimensions", "n_risks"), [(1, 1), (2, 3), (6, 2)])
def test_sample_means_agree_with_the_truth(dimensions, n_risks, binary):
    task = synthetic(dimensions, n_risks, binary=binary, n_held_out=40_000)
    rng = np.random.default_rng(1)
    for _ in range(10):
        config = {name: float(rng.random()) for name in task.space}
        truth = task.population(config)
        for name, losses in task.losses("held_out", config).items():
            error = losses.std() / np.sqrt(len(losses))
            assert abs(losses.mean() - truth[name]) < 5 * error
            assert losses.min() >= 0
            assert losses.max() <= 1
        assert abs(task.free("held_out", config, None) - truth["cost"]) < 5 * 0.5 / 200


def test_neighbours_lose_on_nearly_the_same_examples():
    task = synthetic(1)
    here, near, far = (task.losses("held_out", {"x1": x})["risk1"] for x in (0.6, 0.61, 0.0))
    assert np.mean(here != near) < 0.03
    assert np.mean(here != near) < np.mean(here != far)


def test_the_seed_alone_decides():
    config = {"x1": 0.3}
    one, same, other = (synthetic(seed=s).losses("validation", config)["risk1"] for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_safe_configuration_keeps_every_limit():
    for dimensions in (*range(1, 7), 20):
        task = synthetic(dimensions, 3)
        truth = task.population(task.safe)
        assert all(truth[name] < min(map(min, task.cells)) for name in task.problem.names)


def test_limits_trade_off_against_cost():
    task = synthetic(1)
    means = [task.population(config) for config in task.grid]
    best = [min(m["cost"] for m in means if m["risk1"] <= limit) for (limit,) in task.cells]
    assert best == sorted(best, reverse=True)
    assert len(set(best)) == len(best)


@pytest.mark.parametrize("arguments", [(0, 1), (21, 1), (1, 0), (1, 4)])
def test_sizes_outside_the_range_are_refused(arguments):
    with pytest.raises(ProblemError, match="Choose a number in this range"):
        synthetic(*arguments)
