"""Plans by smoothed risks: what they gain, where they are left out, how they are checked."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

import riskpilot as rp
from riskpilot.common.unwarned import _filters as unwarned_filters
from riskpilot.losses import validation_losses
from riskpilot.study.as_tables import study_losses
from riskpilot.study.questions import verifying
from riskpilot.study.smoothing import smoothed_risks

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost", delta=0.1)
SPACE = {"x": FloatDistribution(0.0, 1.0)}


def draw(x, n, rng):
    """Errors of n examples at each x, independent between the configurations."""
    return rng.random((len(x), n)) < (0.1 + 0.4 * x)[:, None]


def configs_at(x):
    return [{"x": float(each)} for each in x]


def losses_at(x, n, seed):
    rng = np.random.default_rng(seed)
    return validation_losses(PROBLEM, {"error": draw(x, n, rng), "cost": -x})


def test_means_that_are_small_by_luck_are_not_believed():
    """The configuration that looks safest for its place looks less so after smoothing."""
    x = np.linspace(0, 1, 15)
    truth = 0.1 + 0.4 * x
    raw_luck, smooth_luck = [], []
    for seed in range(20):
        losses = losses_at(x, 200, seed)
        smooth = smoothed_risks(SPACE, configs_at(x), losses)[:, 0]
        raw = losses.risks["error"].summary.mean
        assert (smooth >= raw).all()
        luckiest = int(np.argmin(raw - truth))
        raw_luck.append(raw[luckiest] - truth[luckiest])
        smooth_luck.append(smooth[luckiest] - truth[luckiest])
    assert np.mean(raw_luck) < -0.04
    assert abs(np.mean(smooth_luck)) < 0.01


def test_risks_without_structure_are_left_as_they_are():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 20)
    error = rng.random((20, 20_000)) < rng.uniform(0.05, 0.6, 20)[:, None]
    losses = validation_losses(PROBLEM, {"error": error, "cost": -x})
    smooth = smoothed_risks(SPACE, configs_at(x), losses)[:, 0]
    np.testing.assert_allclose(smooth, losses.risks["error"].summary.mean, atol=0.01)


def test_choices_are_smoothed_within_themselves():
    x = np.tile(np.linspace(0, 1, 10), 2)
    kind = np.repeat(["a", "b"], 10)
    error = np.random.default_rng(0).random((20, 4_000)) < np.where(kind == "a", 0.1, 0.5)[:, None]
    losses = validation_losses(PROBLEM, {"error": error, "cost": -x})
    space = {**SPACE, "kind": CategoricalDistribution(["a", "b"])}
    configs = [{"x": float(at), "kind": str(k)} for at, k in zip(x, kind, strict=True)]
    smooth = smoothed_risks(space, configs, losses)[:, 0]
    np.testing.assert_allclose(smooth, np.where(kind == "a", 0.1, 0.5), atol=0.03)


@pytest.mark.parametrize(
    ("space", "configs"),
    [
        (SPACE, configs_at([0.1, 0.2, 0.3])),
        ({}, [{}] * 5),
        (SPACE, [*configs_at([0.1, 0.2, 0.3, 0.4]), {"x": 0.5, "depth": 2}]),
    ],
    ids=["too few", "no parameter in common", "different parameters"],
)
def test_configurations_that_cannot_be_compared_are_not_smoothed(space, configs):
    losses = losses_at(np.linspace(0, 1, len(configs)), 100, 0)
    assert smoothed_risks(space, configs, losses) is None


def evaluate(trial):
    x = trial.suggest_float("x", 0, 1)
    rng = np.random.default_rng(trial.number)
    validation, calibration = (draw(np.array([x]), 300, rng)[0] for _ in range(2))
    return rp.Evaluation({"error": validation, "cost": -x}, {"error": calibration})


@pytest.fixture
def study():
    study = rp.create_study(PROBLEM, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(rp.objective(study, evaluate), n_trials=20)
    return study


def test_the_certificate_holds_the_estimates_and_can_be_computed_again(study):
    selection = rp.select(study)
    certificate = selection.certificate
    assert certificate.estimates is not None
    assert len(certificate.estimates) == 20
    assert [c["row"] for c in certificate.candidates] == list(selection.plan.order)
    table = study_losses(study)
    assert rp.verify(certificate, validation=table.validation, calibration=table.calibration).ok
    again = rp.Certificate.from_json(certificate.to_json())
    assert again == certificate


def test_estimates_that_the_losses_do_not_lead_to_are_a_difference(study):
    certificate = rp.select(study).certificate
    table = study_losses(study)
    turned = [[1 - value for value in row] for row in certificate.estimates]
    changed = dataclasses.replace(certificate, estimates=turned)
    found = rp.verify(changed, validation=table.validation, calibration=table.calibration)
    assert any("the estimates are not those" in difference for difference in found.differences)
    short = dataclasses.replace(certificate, estimates=certificate.estimates[:-1])
    with pytest.raises(rp.CertificateError, match="19, 1"):
        rp.verify(short, validation=table.validation, calibration=table.calibration)


def test_a_check_holds_no_filters_of_warnings_while_it_waits_for_its_turn(study, monkeypatch):
    """A proposal has its turn at linear algebra while it waits for these filters."""
    heard = []

    def smoothed(*given):
        with ThreadPoolExecutor(1) as other:
            heard.append(other.submit(enters_the_filters).result(10))
        return smoothed_risks(*given)

    def enters_the_filters():
        is_free = unwarned_filters.acquire(timeout=1)
        if is_free:
            unwarned_filters.release()
        return is_free

    monkeypatch.setattr(verifying, "smoothed_risks", smoothed)
    assert rp.verify(rp.select(study).certificate, study=study).ok
    assert heard == [True]


def test_the_report_says_what_the_order_went_by(study, tmp_path):
    smooth, raw = (
        rp.select(study, smooth=smooth).report(tmp_path / f"{smooth}.html").read_text()
        for smooth in (True, False)
    )
    assert "smoothed over neighbouring configurations" in smooth
    assert "smoothed over" not in raw


def test_smoothed_and_raw_orders_are_two_questions_to_the_calibration_data(study):
    smooth, raw = rp.select(study), rp.select(study, smooth=False)
    assert raw.certificate.estimates is None
    assert (smooth.certificate.use["number"], raw.certificate.use["number"]) == (1, 2)
    assert rp.select(study).certificate == smooth.certificate
