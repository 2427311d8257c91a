"""The exact test of a difference of 0/1 losses, against sums over every outcome."""

import numpy as np
import pytest
from scipy.stats import binomtest, multinomial

from riskpilot.statistics.families import log_trinomial
from riskpilot.statistics.families.trinomial import _OUTSIDE, _edges


@pytest.mark.parametrize("n", [1, 4, 13])
@pytest.mark.parametrize("limit", [-0.6, -0.1, 0.0, 0.02, 0.3, 0.8])
def test_the_exact_test_of_a_difference_holds_at_every_share_that_changes(n, limit):
    worse, better = np.array([(a, b) for a in range(n + 1) for b in range(n + 1 - a)]).T
    log_p_values = log_trinomial(worse, better, np.full(len(worse), n), limit)
    for share in np.linspace(max(0.0, -limit), (1 - limit) / 2, 60):
        chances = multinomial.pmf(
            np.stack([worse, better, n - worse - better], axis=1),
            n,
            [share + limit, share, max(1 - 2 * share - limit, 0.0)],
        )
        for level in np.exp(log_p_values):
            assert chances[log_p_values <= np.log(level)].sum() <= level + 1e-12


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (1, 3), (2, 2), (0, 9), (4, 1), (3, 1)])
def test_the_exact_test_of_a_difference_is_the_largest_tail_over_all_shares(worse, better):
    n, limit = 25, 0.2
    a, b = np.array([(a, b) for a in range(n + 1) for b in range(n + 1 - a)]).T

    def score(a, b):  # by a search for the most likely share, not by its equation
        share = np.linspace(1e-9, (1 - limit) / 2 - 1e-9, 20001)
        log_l = a * np.log(share + limit) + b * np.log(share)
        log_l += (n - a - b) * np.log(1 - 2 * share - limit)
        best = share[np.argmax(log_l)]
        return (a - b - n * limit) / np.sqrt(n * (2 * best + limit * (1 - limit)))

    scores = np.array([score(*outcome) for outcome in zip(a, b, strict=True)])
    as_good = scores <= score(worse, better) + 1e-4
    tails = [
        multinomial.pmf(
            np.stack([a, b, n - a - b], axis=1)[as_good], n, [q + limit, q, 1 - 2 * q - limit]
        ).sum()
        for q in np.linspace(0, (1 - limit) / 2, 2001)
    ]
    found = float(np.exp(log_trinomial([worse], [better], [n], limit))[0])
    assert max(tails) <= found * (1 + 1e-9)
    # Cells cost a little: less near delta, where they are made smaller.
    assert found <= (1.05 if 0.08 < max(tails) < 0.1 else 1.6) * max(tails) + 2e-10


@pytest.mark.parametrize(("better", "n"), [(0, 30), (3, 30), (30, 30), (40, 400)])
def test_the_share_is_searched_over_its_exact_interval(better, n):
    interval = binomtest(better, n).proportion_ci(1 - _OUTSIDE, method="exact")
    limit = 1e-9  # the share that got better and the one that got worse can be a half each
    edges = _edges(better, n, limit, 0.1)
    expected = [interval.low, min(interval.high, (1 - limit) / 2)]
    assert [edges[0], edges[-1]] == pytest.approx(expected, rel=1e-6)
    assert (np.diff(np.sqrt(edges)) * 2 * np.sqrt(n) <= 0.1 * (1 + 1e-9)).all()


def test_a_chance_is_at_most_one():
    assert log_trinomial([0], [0], [1], 1e-11).tolist() == [0.0]  # what is added would exceed it
