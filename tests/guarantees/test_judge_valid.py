"""A judge may help, never deceive: delta is kept whatever its scores are worth."""

import numpy as np
import pytest
from exact import assert_super_uniform

import riskpilot as rp

CANDIDATES = 400
STREAMS = 1_600
LABELS, FRESH = 60, 240
LIMIT = 0.1


# What a judge says of examples whose loss is 1 where u < LIMIT. All but the last are frozen
# functions of the example, and noise of its own.
JUDGES = {
    "constant": lambda u, rng: np.full(u.shape, 0.5),
    "always 0": lambda u, rng: np.zeros(u.shape),
    "biased": lambda u, rng: np.clip((u < LIMIT) * 0.3 + 0.6, 0, 1),
    "too kind": lambda u, rng: (u < LIMIT / 5) * 1.0,
    "anti-correlated": lambda u, rng: (u >= LIMIT) * 1.0,
    "noise": lambda u, rng: rng.random(u.shape),
    "perfect": lambda u, rng: (u < LIMIT) * 1.0,
    # It is right where that looks good, and sees ghosts where nobody labels.
    "adversarial": lambda u, rng: ((u < LIMIT) | (u > 0.9)) * 1.0,
}


def validation(n):
    """Losses with which n configurations trade risk for cost, so that all of them are tested."""
    return {"error": np.arange(2 * n) < np.arange(n)[:, None], "cost": -np.arange(n)}


def p_values(problem, calibration, judge, seed, n=CANDIDATES):
    """The p-values of n candidates, which see the examples in the order that the seed draws."""
    return rp.select_from_losses(
        problem, validation=validation(n), calibration=calibration, judge=judge, seed=seed
    ).p_values


@pytest.mark.parametrize("name", JUDGES)
def test_p_is_super_uniform_at_the_limit_for_every_judge(name, effort):
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("error", LIMIT)], "cost")
    found = []
    for run in range(effort * STREAMS // CANDIDATES):
        u, fresh = rng.random((CANDIDATES, LABELS)), rng.random((CANDIDATES, FRESH))
        scores, pool = JUDGES[name](u, rng), JUDGES[name](fresh, rng)
        judge = {"labelled": {"error": scores}, "unlabelled": {"error": pool}}
        found.append(p_values(problem, {"error": u < LIMIT}, judge, run + 1))
    assert_super_uniform(np.log(np.concatenate(found)))


@pytest.mark.parametrize("name", ["perfect", "noise", "too kind"])
def test_the_order_in_which_scores_are_stored_does_not_matter(name, effort):
    """People sort what they store: labels and fresh examples by their scores, lowest first."""
    rng = np.random.default_rng(3)
    problem = rp.Problem([rp.Risk("error", LIMIT)], "cost")
    found = []
    for run in range(300 * effort):
        u, fresh = np.sort(rng.random((1, LABELS)))[:, ::-1], rng.random((1, FRESH))
        scores, pool = JUDGES[name](u, rng), np.sort(JUDGES[name](fresh, rng))
        judge = {"labelled": {"error": scores}, "unlabelled": {"error": pool}}
        found.append(p_values(problem, {"error": u < LIMIT}, judge, run + 1, n=1))
    assert_super_uniform(np.log(np.concatenate(found)))


@pytest.mark.parametrize("name", ["biased", "anti-correlated", "perfect"])
def test_p_is_super_uniform_where_only_some_examples_count(name, effort):
    """Whether an example counts is known without its label."""
    rng = np.random.default_rng(1)
    problem = rp.Problem([rp.Risk("error", LIMIT, conditional=True)], "cost")
    found = []
    for run in range(effort * STREAMS // CANDIDATES // 2):
        u, fresh = rng.random((CANDIDATES, 2 * LABELS)), rng.random((CANDIDATES, FRESH))
        counts, fresh_counts = rng.random(u.shape) < 0.5, rng.random(fresh.shape) < 0.5
        judge = {
            "labelled": {"error": np.where(counts, JUDGES[name](u, rng), np.nan)},
            "unlabelled": {"error": np.where(fresh_counts, JUDGES[name](fresh, rng), np.nan)},
        }
        losses = np.where(counts, u < LIMIT, np.nan)
        found.append(p_values(problem, {"error": losses}, judge, run + 1))
    assert_super_uniform(np.log(np.concatenate(found)))


def test_p_is_super_uniform_for_graded_losses_in_their_own_range(effort):
    rng = np.random.default_rng(2)
    problem = rp.Problem([rp.Risk("error", 3.0, high=10.0)], "cost")
    found = []
    for run in range(effort * STREAMS // CANDIDATES):
        losses, other = (10 * rng.beta(1.5, 3.5, (CANDIDATES, m)) for m in (LABELS, FRESH))
        judge = {
            "labelled": {"error": np.clip(losses + rng.normal(0, 1, losses.shape), 0, 10)},
            "unlabelled": {"error": np.clip(other + rng.normal(0, 1, other.shape), 0, 10)},
        }
        found.append(p_values(problem, {"error": losses}, judge, run + 1))
    assert_super_uniform(np.log(np.concatenate(found)))
