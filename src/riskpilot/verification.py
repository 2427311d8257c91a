"""A certificate computed again from the losses, and every difference in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.certificate import Certificate, Use, choose, finite, promise_of
from riskpilot.errors import CertificateError, RiskpilotError
from riskpilot.losses import (
    LossMapping,
    ValidationLosses,
    calibration_losses,
    validation_losses,
)
from riskpilot.plan import TestPlan, TestResult, freeze_plan, run_test
from riskpilot.problem import Problem
from riskpilot.procedures import Procedure, from_description


@dataclass(frozen=True)
class Verification:
    """What a second computation found: ``ok``, and every difference in words."""

    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.ok:
            return "The certificate holds: the losses lead to the same selection."
        return "The certificate does not hold:\n" + "\n".join(f"- {d}" for d in self.differences)


def verify(
    certificate: Certificate,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    procedure: Procedure | None = None,
) -> Verification:
    """Recompute a certificate from the losses and say what differs.

    ``validation`` and ``calibration``: the tables of `select_from_losses`; calibration may hold
    the candidates alone, in testing order. ``procedure``: needed where the certificate was made
    with one of the user's own.
    """
    chosen_procedure = procedure or from_description(certificate.procedure)
    if chosen_procedure is None:
        raise CertificateError(
            f"The certificate was made with the procedure {certificate.procedure['name']!r}, which "
            f"riskpilot does not have. Pass it: verify(..., procedure=...)."
        )
    problem = Problem.from_dict({**certificate.problem, "delta": certificate.level})
    try:
        return _compare(certificate, problem, chosen_procedure, validation, calibration)
    except CertificateError:
        raise
    except RiskpilotError as error:
        return Verification((f"the losses cannot be used: {error}",))


def _compare(
    certificate: Certificate,
    problem: Problem,
    procedure: Procedure,
    validation: LossMapping,
    calibration: LossMapping,
) -> Verification:
    seed = certificate.seeds["test"] or 0
    seen = validation_losses(problem, validation)
    estimates = _estimates(certificate, seen)
    plan = freeze_plan(seen, estimates=estimates, procedure=procedure, seed=seed)
    differences = []
    if plan.validation_digest != certificate.validation_digest:
        differences.append("the validation losses are not the ones of the certificate")
    rows = [candidate["row"] for candidate in certificate.candidates]
    if list(plan.order) != rows:
        differences.append(
            f"the validation losses lead to the testing order {_short(plan.order)}, "
            f"the certificate has {_short(rows)}"
        )
    if plan.digest != certificate.plan_digest and not differences:
        differences.append(
            "the test plan (problem, tests or seed) is not the one of the certificate"
        )
    opened = calibration_losses(problem, calibration)
    whole = opened.n_configs == seen.n_configs
    if not whole and opened.n_configs != len(plan.order):
        return Verification(
            (
                *differences,
                f"calibration has {opened.n_configs} configurations, but {seen.n_configs} were "
                f"considered and {len(plan.order)} tested",
            )
        )
    candidates = range(len(plan.order))
    if whole and opened.digest(candidates) == certificate.calibration_digest:
        whole = False  # every configuration is a candidate, and they are in testing order
    result = run_test(plan, opened, procedure, None if whole else candidates)
    if result.calibration_digest != certificate.calibration_digest:
        differences.append("the calibration losses are not the ones of the certificate")
    differences.extend(_compare_results(certificate, problem, result))
    differences.extend(_compare_words(certificate, plan, result))
    chosen = choose(plan, result)
    if chosen != certificate.chosen:
        differences.append(
            f"the choice would be {_name(certificate, chosen)}, "
            f"the certificate has {_name(certificate, certificate.chosen)}"
        )
    return Verification(tuple(differences))


def _estimates(certificate: Certificate, seen: ValidationLosses) -> npt.NDArray[np.float64] | None:
    """Those that the certificate's order went by: they cannot be made again from losses alone."""
    if certificate.estimates is None:
        return None
    estimates = np.array(certificate.estimates, dtype=np.float64)
    expected = (seen.n_configs, len(seen.problem.risks))
    if estimates.shape != expected:
        raise CertificateError(
            f"The certificate has estimates of shape {estimates.shape}, but there are "
            f"{expected[0]} configurations and {expected[1]} risks. Bring the validation losses "
            f"of every configuration that was considered."
        )
    return estimates


def _compare_results(certificate: Certificate, problem: Problem, result: TestResult) -> list[str]:
    if len(result.log_p) != len(certificate.log_p):
        return [f"{len(result.log_p)} candidates were tested, not {len(certificate.log_p)}"]
    differences = []
    for position, (row, stored) in enumerate(zip(result.log_p, certificate.log_p, strict=True)):
        for name, value in zip(problem.names, row, strict=True):
            if not math.isclose(finite(value), stored[name], rel_tol=1e-9, abs_tol=1e-9):
                differences.append(
                    f"candidate {position + 1}: p-value of {name} is {math.exp(value):.6g}, "
                    f"the certificate has {math.exp(stored[name]):.6g}"
                )
    if list(map(bool, result.passed)) != certificate.passed:
        differences.append("other candidates pass the test than the certificate says")
    return differences


def _compare_words(certificate: Certificate, plan: TestPlan, result: TestResult) -> list[str]:
    """What the certificate tells its reader, against what the losses say."""
    names = plan.problem.names
    told: dict[str, tuple[Any, Any]] = {
        "number of configurations": (plan.n_configs, certificate.n_configs),
        "number of validation examples": (plan.n_validation, certificate.n_validation),
        "number of calibration examples": (result.n_calibration, certificate.n_calibration),
        "seed of the shuffle": (plan.shuffle, certificate.seeds.get("shuffle")),
        "p-value family": (dict(plan.families), certificate.families),
        "level": (
            certificate.problem["delta"] * certificate.use["spend"],
            certificate.level,
        ),
        "promise": (
            promise_of(plan.problem, certificate.config, Use(**certificate.use)),
            certificate.promise,
        ),
        "calibration means": (
            [dict(zip(names, map(float, row), strict=True)) for row in result.means],
            certificate.calibration_means,
        ),
        "validation means": (
            [dict(zip(names, row, strict=True)) for row in plan.risks],
            [candidate["validation"] for candidate in certificate.candidates],
        ),
        "free objective": (
            list(plan.free),
            [candidate["free"] for candidate in certificate.candidates],
        ),
        "p-values on validation": (
            list(map(finite, plan.log_p_validation)),
            [candidate["log_p_validation"] for candidate in certificate.candidates],
        ),
    }
    return [
        f"the {what} is {_brief(found)}, the certificate has {_brief(stored)}"
        for what, (found, stored) in told.items()
        if not _close(found, stored)
    ]


def _close(one: Any, other: Any) -> bool:
    """Equal, up to the rounding of another machine."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _name(certificate: Certificate, position: int | None) -> str:
    if position is None:
        return "nothing"
    if position >= len(certificate.candidates):
        return f"candidate {position + 1}"
    return str(certificate.candidates[position]["config"])


def _short(order: Sequence[int]) -> str:
    told = ", ".join(map(str, order[:8]))
    return f"[{told}{', ...' if len(order) > 8 else ''}]"
