"""Any false rejection is rarer than delta, whatever the dependence of the p-values."""

import numpy as np
import pytest
from exact import assert_rate_at_most
from scipy.stats import norm

from riskpilot import Graphical, bonferroni, chain, fixed_sequence, holm


def graph(n):
    rng = np.random.default_rng(n)
    edges = rng.random((n, n)) * (1 - np.eye(n))
    return Graphical(rng.dirichlet(np.ones(n)), edges / edges.sum(axis=1, keepdims=True))


PROCEDURES = {
    "fixed_sequence": lambda n: fixed_sequence,
    "bonferroni": lambda n: bonferroni,
    "holm": lambda n: holm,
    "chain": chain,
    "graph": graph,
}


def independent(rng, r, n):
    return rng.random((r, n))


def equal(rng, r, n):
    return np.repeat(rng.random((r, 1)), n, axis=1)


def spread_out(rng, r, n):
    """At most one is small at a time: the worst case of Bonferroni, which then errs in delta."""
    p = (rng.random((r, 1)) + np.arange(n) / n) % 1
    return rng.permuted(p, axis=1)


def correlated(rng, r, n):
    return norm.cdf((rng.standard_normal((r, 1)) + rng.standard_normal((r, n))) / np.sqrt(2))


def opposed(rng, r, n):
    u = rng.random((r, 1))
    return np.where(np.arange(n) % 2 == 0, u, 1 - u)


NULLS = {f.__name__: f for f in (independent, equal, spread_out, correlated, opposed)}


@pytest.mark.parametrize("false_ones", [0, 1, 3])
@pytest.mark.parametrize("dependence", NULLS)
@pytest.mark.parametrize("name", PROCEDURES)
def test_any_false_rejection_is_rarer_than_delta(name, dependence, false_ones, effort):
    """``false_ones`` null hypotheses are false, surely rejected, and stand first in the order."""
    n, r, delta = 6, 3000 * effort, 0.1
    rng = np.random.default_rng(0)
    p = NULLS[dependence](rng, r, n - false_ones)
    log_p = np.log(np.hstack([np.full((r, false_ones), 1e-12), p]))
    procedure = PROCEDURES[name](n)
    wrong = sum(bool(procedure(row, delta)[false_ones:].any()) for row in log_p)
    assert_rate_at_most(delta, wrong, r)


@pytest.mark.parametrize("name", ["bonferroni", "holm"])
def test_delta_is_used_up_at_the_worst_dependence_so_the_criterion_has_teeth(name):
    rng = np.random.default_rng(1)
    log_p = np.log(spread_out(rng, 4000, 5))
    procedure = PROCEDURES[name](5)
    assert 0.08 < np.mean([procedure(row, 0.1).any() for row in log_p]) < 0.12


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("name", PROCEDURES)
def test_one_true_hypothesis_anywhere_is_rarely_rejected(name, position, effort):
    n, r = 5, 2000 * effort
    rng = np.random.default_rng(2)
    log_p = np.full((r, n), -1e9)
    log_p[:, position] = np.log(rng.random(r))
    procedure = PROCEDURES[name](n)
    wrong = sum(bool(procedure(row, 0.1)[position]) for row in log_p)
    assert_rate_at_most(0.1, wrong, r)
