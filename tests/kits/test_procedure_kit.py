"""What every procedure must do, and closed testing by brute force beside it."""

import itertools
import math

import numpy as np
import pytest

from riskpilot import Graphical, ProblemError, bonferroni, chain, fixed_sequence, holm


def uniform_graph(n):
    """Equal weights, and each weight shared equally among the others: Holm as a graph."""
    edges = (np.ones((n, n)) - np.eye(n)) / max(n - 1, 1)
    return Graphical(np.full(n, 1 / n), edges)


def random_graph(n, seed=0):
    rng = np.random.default_rng(seed)
    edges = rng.random((n, n)) * (1 - np.eye(n))
    return Graphical(rng.dirichlet(np.ones(n)), edges / np.maximum(edges.sum(1), 1e-12)[:, None])


def lossy_graph(n):
    """Weights and edges that sum to less than 1, and a hypothesis that passes nothing on."""
    edges = np.full((n, n), 0.6 / max(n - 1, 1)) * (1 - np.eye(n))
    edges[-1] = 0
    return Graphical(np.full(n, 0.9 / n), edges)


PROCEDURES = {
    "fixed_sequence": lambda n: fixed_sequence,
    "bonferroni": lambda n: bonferroni,
    "holm": lambda n: holm,
    "chain": chain,
    "uniform graph": uniform_graph,
    "random graph": random_graph,
    "lossy graph": lossy_graph,
}


@pytest.fixture(params=PROCEDURES)
def make(request):
    return PROCEDURES[request.param]


def draws(n, count=400, seed=0):
    """Log p-values from hopeless to certain, with ties."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p = rng.random(n) ** rng.choice([1, 4, 10])
        yield np.log(np.where(rng.random(n) < 0.2, p[0], p))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_it_returns_one_boolean_per_hypothesis(make, n):
    for log_p in draws(n, 20):
        rejected = make(n)(log_p, 0.1)
        assert rejected.shape == (n,)
        assert rejected.dtype == bool


@pytest.mark.parametrize("n", [1, 3, 6])
def test_nothing_is_rejected_above_delta(make, n):
    for log_p in draws(n):
        assert not (make(n)(log_p, 0.1) & (log_p >= math.log(0.1))).any()


def test_a_p_value_of_delta_itself_is_not_rejected(make):
    assert not make(1)(np.array([math.log(0.1)]), 0.1).any()


@pytest.mark.parametrize("n", [1, 3, 6])
def test_certainty_is_rejected_everywhere(make, n):
    assert make(n)(np.full(n, -1e6), 0.1).all()


@pytest.mark.parametrize("n", [2, 4, 7])
def test_a_smaller_p_never_loses_a_rejection(make, n):
    rng = np.random.default_rng(1)
    for log_p in draws(n, seed=2):
        smaller = log_p - rng.exponential(1.0, n) * (rng.random(n) < 0.5)
        assert not (make(n)(log_p, 0.1) & ~make(n)(smaller, 0.1)).any()


@pytest.mark.parametrize("n", [2, 4, 7])
def test_a_larger_delta_never_loses_a_rejection(make, n):
    for log_p in draws(n, seed=3):
        assert not (make(n)(log_p, 0.05) & ~make(n)(log_p, 0.2)).any()


def test_an_undefined_p_value_is_not_rejected(make):
    log_p = np.array([-50.0, np.nan, -50.0])
    assert not make(3)(log_p, 0.1)[1]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_chain_is_the_fixed_sequence(n):
    for log_p in draws(n, seed=4):
        np.testing.assert_array_equal(chain(n)(log_p, 0.1), fixed_sequence(log_p, 0.1))


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_holm_is_the_graph_of_equal_weights_and_uniform_edges(n):
    for log_p in draws(n, seed=5):
        np.testing.assert_array_equal(uniform_graph(n)(log_p, 0.1), holm(log_p, 0.1))


def closed_test(log_p, delta, weights_of):
    """Reject i where every intersection that contains i is rejected by weighted Bonferroni."""
    n = len(log_p)
    rejected = np.ones(n, dtype=bool)
    for size in range(1, n + 1):
        for subset in itertools.combinations(range(n), size):
            weights = weights_of(subset)
            if not any(weights[i] > 0 and log_p[i] < math.log(weights[i] * delta) for i in subset):
                rejected[list(subset)] = False
    return rejected


def graph_weights(graph, subset):
    """The weights of an intersection: all others leave the graph, one after the other."""
    n = len(graph.weights)
    w = np.array(graph.weights)
    g = np.array(graph.edges)
    left = list(range(n))
    for out in [i for i in range(n) if i not in subset]:
        left.remove(out)
        new_w, new_g = np.zeros(n), np.zeros((n, n))
        for j in left:
            new_w[j] = w[j] + w[out] * g[out, j]
            for k in left:
                back = g[j, out] * g[out, j]
                if j != k and back < 1:
                    new_g[j, k] = (g[j, k] + g[j, out] * g[out, k]) / (1 - back)
        w, g = new_w, new_g
    return w


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_holm_is_closed_bonferroni_testing(n):
    for log_p in draws(n, 100, seed=6):
        closed = closed_test(log_p, 0.1, lambda subset: dict.fromkeys(subset, 1 / len(subset)))
        np.testing.assert_array_equal(holm(log_p, 0.1), closed)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_fixed_sequence_is_closed_testing_with_all_weight_on_the_first(n):
    for log_p in draws(n, 100, seed=7):
        closed = closed_test(
            log_p, 0.1, lambda subset: {i: float(i == min(subset)) for i in subset}
        )
        np.testing.assert_array_equal(fixed_sequence(log_p, 0.1), closed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_graph_is_closed_testing_with_its_own_weights(n, seed):
    graph = random_graph(n, seed)
    for log_p in draws(n, 60, seed=8):
        closed = closed_test(log_p, 0.1, lambda subset: graph_weights(graph, subset))
        np.testing.assert_array_equal(graph(log_p, 0.1), closed)


@pytest.mark.parametrize("procedure", [fixed_sequence, bonferroni, holm, chain(1)])
def test_a_single_hypothesis_has_all_of_delta(procedure):
    assert procedure(np.log([0.0999]), 0.1).tolist() == [True]


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5])
def test_a_delta_that_is_no_chance_is_refused(make, delta):
    with pytest.raises(ProblemError, match=r"lies in \(0, 1\)"):
        make(1)(np.log([0.01]), delta)


def test_a_graph_that_passes_nothing_on_is_weighted_bonferroni():
    graph = Graphical((0.7, 0.3), ((0, 0), (0, 0)))
    assert graph(np.log([0.069, 0.031]), 0.1).tolist() == [True, False]
    assert graph(np.log([0.071, 0.029]), 0.1).tolist() == [False, True]


def test_procedures_on_ten_thousand_hypotheses_agree_with_a_plain_loop():
    rng = np.random.default_rng(9)
    log_p = np.log(rng.random(10_000) ** 6)
    expected = np.zeros(10_000, dtype=bool)
    for left, i in zip(range(10_000, 0, -1), np.argsort(log_p), strict=True):
        if log_p[i] >= math.log(0.1 / left):
            break
        expected[i] = True
    assert 0 < expected.sum() < 10_000
    np.testing.assert_array_equal(holm(log_p, 0.1), expected)
