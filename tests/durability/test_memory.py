"""A selection holds the candidates' losses as they are stored, and little more."""

import tracemalloc

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.guarantee.risk_tests import family, log_p
from riskpilot.losses import calibration_losses
from riskpilot.statistics import TestSettings, families
from riskpilot.statistics.families import betting

M = 4_000
CANDIDATES = 30
PROBLEM = rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost")


def study_of(folder, n_trials):
    """The first trials trade cost against risk; the others are worse than all of them."""
    study = rp.create_study(
        PROBLEM,
        storage=f"sqlite:///{folder}/{n_trials}.db",
        sampler=optuna.samplers.RandomSampler(seed=0),
    )

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        rng = np.random.default_rng(trial.number)
        step, worse = trial.number % CANDIDATES, trial.number >= CANDIDATES

        def losses():
            error = np.zeros(M, bool)
            error[: 10 * step + 500 * worse] = True
            return {"error": rng.permutation(error), "harm": (0.1 + 0.1 * worse) * rng.random(M)}

        return rp.Evaluation({**losses(), "cost": 100.0 - step + worse * (1 + x)}, losses())

    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


def peak_of_select(study):
    rp.select(study, smooth=False)  # imports and caches are not what is measured
    tracemalloc.start()
    selection = rp.select(study, smooth=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return len(selection.candidates), peak


def test_memory_of_a_selection_does_not_grow_with_the_trials_that_are_no_candidates(tmp_path):
    (few, small), (many, large) = (peak_of_select(study_of(tmp_path, n)) for n in (40, 140))
    assert few == many == CANDIDATES
    # What 100 more trials say openly is read, but not even a byte for each of their losses.
    assert large - small < 100 * 2 * M / 2


def test_a_selection_needs_little_more_than_the_losses_of_its_candidates(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "riskpilot.losses.risk_losses._BLOCK_BYTES", 1 << 15
    )  # as small as the case
    candidates, peak = peak_of_select(study_of(tmp_path, 40))
    stored = candidates * M * (1 + 8)  # a truth value and a float64
    assert peak < 1.5 * stored


RISKS = {
    "mean": rp.Risk("loss", 0.6, low=-0.5, high=1.5, p_value="betting"),
    "worst group": rp.Risk("loss", 0.6, p_value="betting", statistic=rp.WorstGroup()),
    "quantile": rp.Risk("loss", 0.7, statistic=rp.Quantile(0.7)),
    "tail": rp.Risk("loss", 0.9, statistic=rp.CVaR(0.8)),
}


@pytest.mark.parametrize("kind", ["bits", "numbers", "with NaN"])
@pytest.mark.parametrize("name", RISKS)
def test_p_values_by_parts_are_those_of_whole_tables_to_the_last_bit(name, kind):
    risk = RISKS[name]
    rng = np.random.default_rng(0)
    table = rng.random((23, 1009)) * 0.9
    if kind == "bits":
        table = np.where(table < 0.4, risk.low, risk.high)
    if kind == "with NaN":
        risk = rp.Risk(**{**vars_of(risk), "conditional": True})
        table[rng.random(table.shape) < 0.3] = np.nan
    given = {"loss": table}
    if risk.needs_groups:
        given[risk.groups] = rng.integers(0, 3, 1009)
    losses = calibration_losses(rp.Problem([risk], "cost"), given).risks["loss"]
    rows, thresholds = [4, 22, 0, 7], np.linspace(0.2, 0.5, 4)
    settings = TestSettings(family(risk, binary=False), 0.1, 5, thresholds=thresholds)
    found = log_p(risk, losses, rows, settings)
    unit = losses.unit_rows(rows)[:, np.random.default_rng(5).permutation(1009)]
    np.testing.assert_array_equal(found, whole(risk, unit, given, thresholds))


def vars_of(risk):
    return {n: getattr(risk, n) for n in ("name", "limit", "low", "high", "p_value", "statistic")}


def whole(risk, unit, given, t):
    """The same, from tables in double precision."""
    match risk.statistic:
        case rp.WorstGroup():
            order = np.random.default_rng(5).permutation(1009)
            codes = given[risk.groups][order]
            parts = [families.log_betting(unit[:, codes == g], risk.unit_limit) for g in range(3)]
            return np.max(parts, axis=0)
        case rp.Quantile():
            above, n = (unit > risk.unit_limit).sum(axis=1), (~np.isnan(unit)).sum(axis=1)
            return families.log_binomial(above, n, 0.3)
        case rp.CVaR():
            excess = np.clip((unit - t[:, None]) / (1 - t[:, None]), 0, 1)
            limits = (risk.unit_limit - t) * (1 - 0.8) / (1 - t)
            return families.log_betting(excess, limits)
    return families.log_betting(unit, risk.unit_limit)


@pytest.mark.parametrize("limit", [0.06, 0.3, 0.99])
@pytest.mark.parametrize("n", [1, 5, 300])
def test_bets_are_those_of_the_formula_on_the_whole_table(n, limit):
    """Step by step over all of it, as the method is written down."""
    losses = np.clip(np.random.default_rng(n).random((n, 700)) * 1.9 * limit, 0, 1)
    expected = np.concatenate(
        [bets(losses[start : start + 256], limit, 0.1) for start in range(0, n, 256)]
    )
    np.testing.assert_array_equal(families.log_betting(losses, limit), expected)
    single = losses.astype(np.float32)
    as_double = families.log_betting(single.astype(np.float64), limit)
    np.testing.assert_array_equal(families.log_betting(single, limit), as_double)


def bets(losses, limit, delta):
    gain = limit - np.ascontiguousarray(losses.T)
    m, n = gain.shape
    level, limit = np.log(1 / delta), np.full(n, limit)
    capital, best, seen, total = np.zeros(n), np.zeros(n), 0, np.zeros(n)
    target, squares, time = np.full(n, level), limit * (1 - limit), 0
    while time < m:
        stop = time + max(1, min(time // 4, (m - time) // 50))
        block = gain[time:stop]
        wanted = np.sqrt(2 * (target - capital) / ((m - time) * (squares / (seen + 1))))
        bet = np.minimum(wanted, families.LARGEST_BET / (1 - limit))
        capital = capital + betting._log_product(1 + bet * block)
        best = np.maximum(best, capital)
        target = np.where(capital >= target, capital + level, target)
        deviation = block - total / (seen + 1)
        seen += stop - time
        squares = squares + np.einsum("tn,tn->n", deviation, deviation)
        total = total + block.sum(axis=0)
        time = stop
    return -best
