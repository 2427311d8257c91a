"""An order that was known beforehand: no data is spent on it, and the promise holds."""

from pathlib import Path

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.errors import PlotError

PROBLEM = rp.Problem([rp.Risk("fpr", 0.1)], "missed")


def scores(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    label = rng.random(n) < 0.4
    return rng.normal(label * 1.5, 1.0), label


def losses(rng: np.random.Generator, n: int, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False alarms, NaN for positives, and the share of missed positives."""
    score, label = scores(rng, n)
    flagged = score >= levels[:, None]
    return np.where(label, np.nan, flagged), (~flagged & label).sum(axis=1) / label.sum()


LEVELS = np.linspace(4, -2, 200)


def select(seed: int = 0, n: int = 1000) -> tuple[rp.Selection, dict, dict]:
    false_alarms, missed = losses(np.random.default_rng(seed), n, LEVELS)
    validation, calibration = {"missed": missed}, {"fpr": false_alarms}
    selection = rp.select_from_losses(
        PROBLEM, validation=validation, calibration=calibration, order=range(200)
    )
    return selection, validation, calibration


def test_only_the_free_objective_is_needed(tmp_path: Path) -> None:
    selection, validation, calibration = select()
    assert selection.config is not None
    assert selection.certificate.families == {"fpr": "binomial"}
    assert selection.certificate.known_order
    assert [c["row"] for c in selection.certificate.candidates] == list(range(200))
    # Along the order, everything before the first failure passes.
    passed = selection.result.passed
    assert passed[: int(passed.sum())].all()
    certificate = rp.Certificate.load(selection.certificate.save(tmp_path / "c.json"))
    found = rp.verify(certificate, validation=validation, calibration=calibration)
    assert found.ok, found
    assert any("order was known" in sentence for sentence in found.trusted)
    assert selection.report(tmp_path / "r.html").stat().st_size > 10_000
    with pytest.raises(PlotError, match="order was known"):
        selection.figure()


def test_another_order_than_the_certificate_s_is_another_plan(tmp_path: Path) -> None:
    selection, validation, calibration = select()
    backwards = rp.select_from_losses(
        PROBLEM, validation=validation, calibration=calibration, order=range(199, -1, -1)
    )
    assert backwards.config is None
    assert backwards.certificate.plan_digest != selection.certificate.plan_digest


def test_validation_losses_may_be_given_with_a_known_order() -> None:
    rng = np.random.default_rng(1)
    seen, missed = losses(rng, 500, LEVELS)
    sealed, _ = losses(rng, 500, LEVELS)
    selection = rp.select_from_losses(
        PROBLEM,
        validation={"fpr": seen, "missed": missed},
        calibration={"fpr": sealed},
        order=range(200),
    )
    assert len(selection.candidates) == 200
    assert selection.certificate.n_validation == 500


def test_a_limit_is_broken_in_at_most_delta_of_the_runs(effort: int) -> None:
    from scipy.stats import norm

    levels = np.sort(np.random.default_rng(9).normal(size=300))[::-1] * 1.5
    true = norm.sf(levels)  # the score of a negative is standard normal
    runs, broken = 150 * effort, 0
    for seed in range(runs):
        false_alarms, missed = losses(np.random.default_rng(seed), 600, levels)
        config = rp.select_from_losses(
            PROBLEM,
            validation={"missed": missed},
            calibration={"fpr": false_alarms},
            order=range(300),
        ).config
        broken += config is not None and true[config["index"]] > 0.1
    assert broken <= 0.1 * runs + 3 * np.sqrt(0.09 * runs)


def test_the_type_of_the_losses_decides_the_test_and_not_their_values() -> None:
    zeros = np.zeros((2, 50))
    problem = rp.Problem([rp.Risk("harm", 0.5)], "cost")
    families = {}
    for name, values in {"float": zeros, "bool": zeros > 1, "int": zeros.astype(int)}.items():
        selection = rp.select_from_losses(
            problem, validation={"cost": [1.0, 2.0]}, calibration={"harm": values}, order=[1, 0]
        )
        families[name] = selection.certificate.families["harm"]
    assert families == {"float": "betting", "bool": "binomial", "int": "binomial"}


@pytest.mark.parametrize(
    "order", [[0, 0, 1], [0, 200], [-1], [], [0.5], "012", 3, [[0, 1]], [True, False]]
)
def test_an_order_that_names_no_rows_is_refused(order: object) -> None:
    false_alarms, missed = losses(np.random.default_rng(0), 50, LEVELS)
    with pytest.raises(rp.LossError, match="order"):
        rp.select_from_losses(
            PROBLEM,
            validation={"missed": missed},
            calibration={"fpr": false_alarms},
            order=order,  # type: ignore[arg-type]
        )


def test_what_validation_settles_needs_validation_losses() -> None:
    problem = rp.Problem([rp.Risk("harm", 0.5, statistic=rp.CVaR(0.9))], "cost")
    with pytest.raises(rp.LossError, match="settled by them"):
        rp.select_from_losses(
            problem,
            validation={"cost": [1.0, 2.0]},
            calibration={"harm": np.zeros((2, 50))},
            order=[0, 1],
        )


@pytest.mark.parametrize(
    ("kind", "name", "test"),
    [
        (bool, "accuracy_drop", "trinomial"),  # by its name
        (float, "accuracy_drop", "trinomial"),
        (bool, "harm", "trinomial"),  # by its type
        (float, "harm", "betting"),  # values that could be 0 and 1 by chance decide nothing
    ],
)
def test_a_drop_needs_no_validation_and_values_do_not_choose_its_test(kind, name, test):
    rng = np.random.default_rng(0)
    reference = rng.random(400) < 0.2
    worse = reference | (rng.random(400) < 0.3)
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk(name, 0.05, statistic=rp.Difference())], "cost"),
        validation={"cost": [2.0, 1.0]},
        calibration={
            name: np.array([reference, worse]).astype(kind),
            "reference": reference.astype(kind),
        },
        configs=[{"model": "same"}, {"model": "worse"}],
        order=[0, 1],
    )
    assert selection.plan.families[name] == test
    assert selection.config == {"model": "same"}
    assert selection.result.passed.tolist() == [True, False]
