"""The whole path from losses to a choice breaks a limit in at most a share delta of the cases.

Problems are drawn with known true risks. Most configurations lie just above their limit: there a
wrong choice is easiest.
"""

import dataclasses
import math

import numpy as np
import optuna
import pytest
from exact import assert_rate_at_most

import riskpilot as rp
from riskpilot.guarantee.testing import freeze_plan, known, run_test
from riskpilot.losses.reading import calibration_losses, validation_losses


def binary(rng, means, m):
    return rng.random((len(means), m)) < means[:, None]


def real(rng, means, m):
    """Beta losses of low variance; the betting test is the sharpest here."""
    return rng.beta(20 * means[:, None], 20 * (1 - means[:, None]), (len(means), m))


def rounded(rng, means, m):
    """Losses in {0, 1/2, 1}."""
    p = means[:, None]
    return 0.5 * (rng.random((len(means), m)) < p) + 0.5 * (rng.random((len(means), m)) < p)


def conditional(rng, means, m):
    losses = binary(rng, means, m) * 1.0
    losses[rng.random(losses.shape) < 0.4] = np.nan
    return losses


KINDS = {f.__name__: f for f in (binary, real, rounded, conditional)}
PROCEDURES = {"fixed_sequence": rp.fixed_sequence, "bonferroni": rp.bonferroni, "holm": rp.holm}


def draw_problem(rng, kind, n_risks, n_configs=8):
    """A problem, true risks of shape (n_configs, n_risks), and losses."""
    limits = rng.uniform(0.1, 0.3, n_risks)
    risks = [
        rp.Risk(f"risk{i}", float(limit), conditional=kind == "conditional")
        for i, limit in enumerate(limits)
    ]
    # Three in four sit a hair above the limit of one risk, and far below all others.
    true = limits * rng.uniform(0.2, 0.6, (n_configs, n_risks))
    unsafe = rng.random(n_configs) < 0.75
    worst = rng.integers(n_risks, size=n_configs)
    true[unsafe, worst[unsafe]] = limits[worst[unsafe]] * 1.0001
    free = -true.max(axis=1) + 0.05 * rng.random(n_configs)
    k, m = (int(size) for size in rng.integers(40, 200, 2))
    draw = KINDS[kind]
    validation = {risk.name: draw(rng, true[:, i], k) for i, risk in enumerate(risks)}
    calibration = {risk.name: draw(rng, true[:, i], m) for i, risk in enumerate(risks)}
    problem = rp.Problem(risks, "free", delta=0.1)
    return problem, true > limits, {**validation, "free": free}, calibration


@pytest.mark.parametrize("n_risks", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_choice_that_breaks_a_limit_is_rarer_than_delta(procedure, kind, n_risks, effort):
    rng = np.random.default_rng(n_risks)
    replications = 150 * effort
    wrong = wrong_valid = 0
    for _ in range(replications):
        problem, breaks, validation, calibration = draw_problem(rng, kind, n_risks)
        selection = rp.select_from_losses(
            problem,
            validation=validation,
            calibration=calibration,
            procedure=PROCEDURES[procedure],
        )
        breaks = breaks.any(axis=1)
        wrong += selection.config is not None and breaks[selection.config["index"]]
        wrong_valid += any(breaks[config["index"]] for config in selection.valid)
    assert wrong <= wrong_valid
    assert_rate_at_most(0.1, wrong_valid, replications)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_many_configurations_at_the_limit_do_not_add_up(kind, effort):
    """Forty configurations just above the limit: any certificate at all is wrong."""
    rng = np.random.default_rng(9)
    replications = 600 * effort
    problem = rp.Problem([rp.Risk("error", 0.2)], "free", delta=0.1)
    means = np.full(40, 0.20001)
    certified = 0
    for _ in range(replications):
        free = rng.permutation(40) / 40
        selection = rp.select_from_losses(
            problem,
            validation={"error": KINDS[kind](rng, means, 60), "free": free},
            calibration={"error": KINDS[kind](rng, means, 60)},
        )
        certified += selection.config is not None
    assert_rate_at_most(0.1, certified, replications)


ADVERSARIES = {
    "riskiest first": lambda plan, losses: np.argsort([-row[0] for row in plan.risks]),
    "cheapest first": lambda plan, losses: np.argsort(plan.free),
    "luckiest on validation first": lambda plan, losses: np.argsort(
        losses.risks["error"].summary.total[list(plan.order)]
    ),
    "one candidate, the cheapest": lambda plan, losses: np.argsort(plan.free)[:1],
}


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("kind", ["binary", "real"])
def test_any_order_made_from_validation_keeps_delta(adversary, kind, effort):
    rng = np.random.default_rng(4)
    replications = 400 * effort
    wrong = 0
    for _ in range(replications):
        problem, breaks, validation, calibration = draw_problem(rng, kind, 1)
        problem = rp.Problem([dataclasses.replace(problem.risks[0], name="error")], "free")
        seen = validation_losses(
            problem, {"error": validation["risk0"], "free": validation["free"]}
        )
        plan = freeze_plan(seen)
        positions = [int(i) for i in ADVERSARIES[adversary](plan, seen)]
        order = tuple(plan.order[i] for i in positions)
        other = dataclasses.replace(
            plan,
            order=order,
            aims=plan.aims[: len(order)],
            starts=known(seen, plan.families, order),
        )
        sealed = calibration_losses(problem, {"error": calibration["risk0"]})
        passed = run_test(other, sealed, rp.fixed_sequence).passed
        wrong += any(breaks[row, 0] for row, ok in zip(order, passed, strict=True) if ok)
    assert_rate_at_most(0.1, wrong, replications)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("trust", [-1.0, 0.0, 1.0, 3.0])
def test_any_estimates_made_from_validation_keep_delta(kind, trust, effort):
    """From the opposite of what the means say (-1), over noise alone (0), to exaggeration (3)."""
    rng = np.random.default_rng(8)
    replications = 300 * effort
    wrong = 0
    for _ in range(replications):
        problem, breaks, validation, calibration = draw_problem(rng, kind, 1)
        problem = rp.Problem([dataclasses.replace(problem.risks[0], name="error")], "free")
        seen = validation_losses(
            problem, {"error": validation["risk0"], "free": validation["free"]}
        )
        means = seen.risks["error"].summary.mean[:, None]
        estimates = trust * means + rng.normal(scale=means.std() + 1e-3, size=means.shape)
        plan = freeze_plan(seen, estimates=estimates)
        sealed = calibration_losses(problem, {"error": calibration["risk0"]})
        passed = run_test(plan, sealed, rp.fixed_sequence).passed
        wrong += any(breaks[row, 0] for row, ok in zip(plan.order, passed, strict=True) if ok)
    assert_rate_at_most(0.1, wrong, replications)


def test_a_graph_made_from_validation_keeps_delta(effort):
    rng = np.random.default_rng(5)
    replications = 400 * effort
    wrong = 0
    for _ in range(replications):
        problem, breaks, validation, calibration = draw_problem(rng, "binary", 1)
        plan = freeze_plan(validation_losses(problem, validation))
        weights = np.exp(np.clip(plan.log_p_validation, -20, 0))
        n = len(weights)
        edges = (np.ones((n, n)) - np.eye(n)) / max(n - 1, 1)
        selection = rp.select_from_losses(
            problem,
            validation=validation,
            calibration=calibration,
            procedure=rp.Graphical(weights / weights.sum(), edges),
        )
        wrong += any(breaks[config["index"], 0] for config in selection.valid)
    assert_rate_at_most(0.1, wrong, replications)


def true_error(x, limit, shape):
    """Known risk curves: flat at the limit, crossing it, or a trap that looks safe in the pool."""
    if shape == "flat":
        return limit + 1e-3
    if shape == "crossing":
        return 0.05 + 0.3 * x
    return limit + 0.02 * math.sin(12 * x) + 1e-3


@pytest.mark.parametrize("losses", ["binary", "real"])
@pytest.mark.parametrize("shape", ["flat", "crossing", "waves"])
def test_a_study_that_breaks_its_limit_is_rarer_than_delta(shape, losses, effort):
    limit, replications = 0.2, 40 * effort
    rng = np.random.default_rng(6)
    problem = rp.Problem([rp.Risk("error", limit)], "cost", delta=0.1)
    wrong = 0
    for seed in range(replications):
        study = rp.create_study(problem, seed=seed)

        def evaluate(trial):
            x = trial.suggest_float("x", 0, 1)
            mean = np.array([true_error(x, limit, shape)])
            return rp.Evaluation(
                validation={"error": KINDS[losses](rng, mean, 100)[0], "cost": 1 - x},
                calibration={"error": KINDS[losses](rng, mean, 100)[0]},
            )

        study.optimize(rp.objective(study, evaluate), n_trials=7)
        config = rp.select(study).config
        wrong += config is not None and true_error(config["x"], limit, shape) > limit
    assert_rate_at_most(0.1, wrong, replications)
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)
