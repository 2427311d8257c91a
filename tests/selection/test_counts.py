"""Counts of 0/1 losses lead where the losses lead, and what needs the losses refuses them."""

import re
from pathlib import Path

import numpy as np
import pytest

import riskpilot as rp

RATES = np.linspace(0.02, 0.3, 6)[:, None]
LOSSES = [np.random.default_rng(i).random((6, 900)) < RATES for i in (0, 1)]
COST = np.arange(6.0)[::-1]
PROBLEM = rp.Problem([rp.Risk("error", 0.15)], "cost")


def counts(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return losses.sum(axis=1), np.full(len(losses), losses.shape[1])


def from_counts(problem: rp.Problem = PROBLEM, **changed: object) -> rp.Selection:
    validation = {"error": counts(LOSSES[0]), "cost": COST}
    calibration = {"error": counts(LOSSES[1])}
    given = {"validation": validation, "calibration": calibration, **changed}
    return rp.select_from_counts(problem, **given)  # type: ignore[arg-type]


def test_counts_lead_where_the_losses_lead() -> None:
    found = from_counts()
    expected = rp.select_from_losses(
        PROBLEM, validation={"error": LOSSES[0], "cost": COST}, calibration={"error": LOSSES[1]}
    )
    assert found.config == expected.config is not None
    assert found.certificate.log_p == expected.certificate.log_p
    assert found.certificate.candidates == expected.certificate.candidates


def test_a_certificate_of_counts_is_verified_by_the_counts(tmp_path: Path) -> None:
    certificate = rp.Certificate.load(from_counts().certificate.save(tmp_path / "c.json"))
    validation = {"error": counts(LOSSES[0]), "cost": COST}
    calibration = {"error": counts(LOSSES[1])}
    assert rp.verify(certificate, validation=validation, calibration=calibration).ok
    row = certificate.candidates[0]["row"]
    for split, other in (("validation", calibration), ("calibration", validation)):
        sums, numbers = counts(LOSSES[split == "calibration"])
        sums[row] += 1
        edited = {"error": (sums, numbers)} | ({"cost": COST} if split == "validation" else {})
        both = {split: edited, "calibration" if split == "validation" else "validation": other}
        found = rp.verify(certificate, **both)  # type: ignore[arg-type]
        assert any(f"the {split} losses are not the ones" in text for text in found.differences)


def test_a_selection_from_counts_is_shown(tmp_path: Path) -> None:
    selection = from_counts()
    assert "Certified" in str(selection) or selection.config is not None
    assert selection.report(tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("risk", "says"),
    [
        (rp.Risk("error", 0.15, p_value="betting"), "p_value is 'betting'"),
        (rp.Risk("error", 0.15, statistic=rp.WorstGroup()), "a WorstGroup is limited"),
        (rp.Risk("error", 0.15, statistic=rp.GroupGap()), "a GroupGap is limited"),
        (rp.Risk("error", 0.15, statistic=rp.CVaR(0.9)), "a CVaR is limited"),
        (rp.Risk("error", 0.15, high=2.0), r"lie in [0, 2]"),
        (rp.Risk("error", 0.15, weights="w", largest_weight=2), "examples are weighted"),
    ],
)
def test_what_needs_the_losses_refuses_counts(risk: rp.Risk, says: str) -> None:
    with pytest.raises(rp.LossError, match=f"{re.escape(says)}.*needs the losses themselves"):
        from_counts(rp.Problem([risk], "cost"))


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ((np.full(6, 901), np.full(6, 900)), "a sum of 901 of 900"),
        ((np.full(6, -1), np.full(6, 900)), "a sum of -1"),
        ((np.full(6, 0.5), np.full(6, 900)), "whole numbers"),
        ((np.zeros(6), np.zeros(6)), "a sum of 0 of 0"),
        ((np.zeros(6), [900] * 5 + [899]), "the same examples"),
        ((np.zeros(6), np.full(5, 900)), "their shapes are"),
        ((np.zeros((6, 2)), np.full((6, 2), 900)), "their shapes are"),
        (np.zeros(6), "are a pair"),
        ((np.zeros(5), np.full(5, 900)), "6 configurations and calibration 5"),
    ],
)
def test_counts_that_cannot_be_are_refused(pair: object, says: str) -> None:
    with pytest.raises(rp.LossError, match=says):
        from_counts(calibration={"error": pair})


def test_counts_may_differ_where_only_some_examples_count() -> None:
    risk = rp.Risk("error", 0.15, conditional=True)
    numbers = np.arange(900, 906)
    found = from_counts(
        rp.Problem([risk], "cost"),
        validation={"error": (LOSSES[0].sum(axis=1), numbers), "cost": COST},
        calibration={"error": (LOSSES[1].sum(axis=1), numbers)},
    )
    assert found.config is not None
