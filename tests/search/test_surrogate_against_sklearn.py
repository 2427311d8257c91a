"""The lean Gaussian process against scikit-learn's, and its gradient against differences."""

import threading
import tracemalloc

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from threadpoolctl import ThreadpoolController

from riskpilot.common.threads import one_thread
from riskpilot.search import surrogate


def sample(n, d, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    noise = rng.uniform(0.01, 0.1, n)
    return x, 5 + 2 * np.sin(3 * x.sum(axis=1)) + noise * rng.standard_normal(n), noise**2


@pytest.mark.parametrize(("n", "d"), [(2, 1), (10, 1), (30, 3), (60, 6), (150, 2)])
def test_posterior_is_that_of_scikit_learn_at_the_same_hyper_parameters(n, d):
    x, y, variance = sample(n, d)
    fitted = surrogate.fit(x, y, variance)
    kernel = ConstantKernel(fitted.output_scale) * Matern(fitted.lengths, nu=2.5)
    alpha = variance / fitted.scale**2 + 1e-8
    peer = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None)
    peer.fit(x, (y - fitted.offset) / fitted.scale)
    at = np.random.default_rng(1).random((200, d))
    mean, std = fitted.mean_and_std(at)
    peer_mean, peer_std = peer.predict(at, return_std=True)
    np.testing.assert_allclose(mean, fitted.offset + fitted.scale * peer_mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(std, fitted.scale * peer_std, rtol=0, atol=1e-5)
    np.testing.assert_allclose(fitted.mean(at), mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("known", "misfit"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("d", [1, 3])
def test_gradient_of_the_posterior_is_right(d, known, misfit):
    x, y, variance = sample(12, d)
    noise = variance if known else None
    posterior = surrogate._Posterior(x, (y - y.mean()) / y.std(), noise, misfit=misfit)
    start = posterior.priors()[0] + 0.1
    error = check_grad(lambda t: posterior(t)[0], lambda t: posterior(t)[1], start)
    assert error < 1e-4 * (1 + np.linalg.norm(posterior(start)[1]))


@pytest.mark.parametrize("known", [True, False])
def test_fitted_hyper_parameters_are_a_maximum_of_the_posterior(known):
    x, y, variance = sample(25, 2)
    fitted = surrogate.fit(x, y, variance if known else None)
    scaled = variance / fitted.scale**2 if known else None
    posterior = surrogate._Posterior(x, (y - fitted.offset) / fitted.scale, scaled)
    theta = np.log([fitted.output_scale, *fitted.lengths])
    if not known:
        noise = fitted.factor[0, 0] ** 2 - fitted.output_scale - 1e-8  # on the diagonal
        theta = np.append(theta, np.log(noise))
    at_maximum = posterior(theta)[0]
    rng = np.random.default_rng(0)
    around = [posterior(theta + 0.05 * rng.standard_normal(len(theta)))[0] for _ in range(50)]
    assert min(around) > at_maximum - 1e-3


def test_points_twice_and_a_constant_objective_are_no_obstacle():
    x = np.repeat(np.linspace(0, 1, 5), 2)[:, None]
    for y in (np.ones(10), x[:, 0]):
        for noise in (None, np.full(10, 1e-12)):
            mean, std = surrogate.fit(x, y, noise).mean_and_std(x)
            np.testing.assert_allclose(mean, y, atol=0.05)
            assert np.isfinite(std).all()


def test_the_deviation_is_of_the_objective_not_of_an_observation():
    x, y, _ = sample(100, 1)
    noisy = y + 0.5 * np.random.default_rng(2).standard_normal(100)
    _, std = surrogate.fit(x, noisy, None).mean_and_std(np.array([[0.5]]))
    assert std[0] < 0.25


def test_threads_are_given_back_even_where_two_proposals_meet():
    def counts():
        return [library.num_threads for library in ThreadpoolController().lib_controllers]

    before = counts()

    def hold():
        with one_thread():
            assert set(counts()) == {1}

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts() == before


def test_many_observations_take_the_memory_of_one_matrix():
    """Beyond 128 the hyper-parameters come from some; the factor must be that of all, and small."""
    rng = np.random.default_rng(0)
    x = rng.random((600, 2))
    y = np.sin(3 * x[:, 0]) + x[:, 1] + rng.normal(scale=0.05, size=600)
    noise = np.full(600, 0.05**2)
    tracemalloc.start()
    found = surrogate.fit(x, y, noise)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * 600 * 600 * 8
    kernel = found.output_scale * Matern(length_scale=found.lengths, nu=2.5)(x)
    kernel[np.diag_indices(600)] += noise / found.scale**2
    factor = np.tril(found.factor)
    np.testing.assert_allclose(factor @ factor.T, kernel, atol=1e-6)
