"""The losses of all risks on one split, kept apart by purpose: validation and calibration."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from riskpilot.common import BoolArray, FloatArray, IntArray
from riskpilot.errors import LossError, type_in_words
from riskpilot.losses.beside import digest_of_bytes
from riskpilot.losses.counts import CountedLosses
from riskpilot.losses.evaluation import LossMapping, check_names
from riskpilot.losses.intake import number_array
from riskpilot.losses.packed import PackedLosses
from riskpilot.losses.risk_losses import RiskLosses, read_risk
from riskpilot.problem import Problem, Risk, meaning
from riskpilot.statistics import Difference, Mean, Summary

# A search squares and multiplies values of the free objective, which overflows beyond this.
LARGEST_FREE = 1e100
# Certificates from before that was refused may be about any number, and still hold.
ANY_FREE = sys.float_info.max


@dataclass(frozen=True)
class _Losses:
    """The losses of n configurations on one split; use one of its two final forms."""

    problem: Problem
    risks: Mapping[str, RiskLosses]
    free: FloatArray | None
    free_error: FloatArray | None

    @property
    def n_configs(self) -> int:
        return len(next(iter(self.risks.values())).row_digests)

    @property
    def values(self) -> FloatArray:
        """The value of each risk for each configuration, in the units of losses, shape (n, c)."""
        columns = [
            risk.from_unit(self.risks[risk.name].summary.mean) for risk in self.problem.risks
        ]
        return np.column_stack(columns)

    @property
    def standard_errors(self) -> FloatArray:
        """The standard error of each of these values, in the same units, shape (n, c)."""
        columns = [
            risk.width * self.risks[risk.name].summary.standard_error for risk in self.problem.risks
        ]
        return np.column_stack(columns)

    @property
    def counted(self) -> IntArray:
        """How many examples count for each risk and configuration, shape (n, c)."""
        return np.column_stack([self.risks[risk.name].summary.n for risk in self.problem.risks])

    @property
    def n_examples(self) -> int:
        return max(losses.n_examples for losses in self.risks.values())

    def digest(self, rows: Sequence[int] | None = None) -> str:
        """Of the risks' losses and the free objective, of some configurations or of all."""
        chosen = range(self.n_configs) if rows is None else rows
        digests = [self.risks[risk.name].row_digests for risk in self.problem.risks]
        parts = [b"".join(of_risk[row] for row in chosen) for of_risk in digests]
        if self.free is not None:
            parts.append(np.ascontiguousarray(self.free[list(chosen)], dtype="<f8").tobytes())
        return digest_of_bytes(*parts).hex()


@dataclass(frozen=True)
class ValidationLosses(_Losses):
    """Losses that the search, the plan and the plots may see. The free objective is always there.

    ``free``: its value for each configuration, shape (n,); ``free_error``: its standard error,
    or None where only numbers were given.
    """

    free: FloatArray

    @property
    def objectives(self) -> FloatArray:
        """The values of the risks, then the free objective, shape (n, c + 1).

        Those of risks are NaN where validation data says nothing of them.
        """
        known = self.values if self.n_examples else np.full_like(self.values, np.nan)
        return np.column_stack([known, self.free])


@dataclass(frozen=True)
class CalibrationLosses(_Losses):
    """Losses that nothing sees before the test plan is frozen."""


def validation_losses(
    problem: Problem, losses: LossMapping, largest: float | None = None
) -> ValidationLosses:
    """Check validation losses: risks of shape (n, k), the free objective (n,) or (n, k).

    ``largest``: the largest value of the free objective that is taken; `LARGEST_FREE` by default.
    """
    risks = _read_risks(problem, losses, "validation")
    if problem.minimize not in losses:
        raise LossError(
            f"validation: the free objective {problem.minimize!r} is missing. Give it as one "
            f"number per configuration or as per-example losses; got {sorted(map(str, losses))}."
        )
    free, error = _read_free(
        problem.minimize, losses[problem.minimize], *_shape(risks), "validation", largest
    )
    return ValidationLosses(problem, risks, free, error)


def free_objective_alone(
    problem: Problem,
    losses: LossMapping,
    calibration: LossMapping,
    largest: float | None = None,
) -> ValidationLosses:
    """Check the free objective where nothing else is known on validation data.

    ``calibration``: whose types, and never whose values, say which losses are 0/1; ``largest``: see
    `validation_losses`.
    """
    values = losses[problem.minimize]
    n_configs = len(values) if np.ndim(values) else 0  # type: ignore[arg-type]
    free, error = _read_free(problem.minimize, values, n_configs, None, "validation", largest)
    risks = {}
    for risk in problem.risks:
        if not isinstance(risk.statistic, Mean | Difference):
            raise LossError(
                f"Validation losses of {risk.name!r} are missing, and the test of "
                f"{type_in_words(risk.statistic)} is settled by them, whether the order is known "
                f"or not. Pass them, or limit the mean or a difference of means."
            )
        zeros = np.zeros(n_configs)
        none = zeros.astype(np.int64)
        binary = _is_declared_binary(risk, calibration.get(risk.name))
        summary = Summary(none, zeros, zeros, none, binary=binary)
        risks[risk.name] = RiskLosses(risk, None, 0, summary, (b"",) * n_configs)
    return ValidationLosses(problem, risks, free, error)


def _is_declared_binary(risk: Risk, losses: object) -> bool:
    """Say whether losses are 0/1 by their name or their type. A test that was picked after a look
    at the losses themselves would not be valid. The losses of a metric are 0 and 1; should others
    stand under its name, the binomial test counts each of them above 0, and stays valid."""
    if meaning(risk.name) is not None or isinstance(losses, PackedLosses | CountedLosses):
        return True
    in_unit = (risk.low, risk.high) == (0.0, 1.0)
    return in_unit and getattr(losses, "dtype", np.dtype(float)).kind in "biu"


def calibration_losses(
    problem: Problem, losses: LossMapping, largest: float | None = None
) -> CalibrationLosses:
    """Check calibration losses: risks of shape (n, m); the free objective may be missing.

    ``largest``: see `validation_losses`.
    """
    risks = _read_risks(problem, losses, "calibration")
    free = error = None
    if problem.minimize in losses:
        free, error = _read_free(
            problem.minimize, losses[problem.minimize], *_shape(risks), "calibration", largest
        )
    return CalibrationLosses(problem, risks, free, error)


def check_known(problem: Problem, losses: LossMapping, split: str) -> None:
    """Refuse what is no mapping, names that the problem does not know, and risks without losses."""
    if not isinstance(losses, Mapping):
        raise LossError(
            f"{split} must map names to losses, but it is {type_in_words(losses)}. "
            f'Write {split}={{"{problem.names[0]}": array, ...}}.'
        )
    known = problem.known_names
    check_names(losses, split)
    unknown = sorted(losses.keys() - known)
    if unknown:
        raise LossError(
            f"{split}: {unknown[0]!r} is neither a risk nor the free objective"
            f"{' nor what stands beside a risk' if problem.beside else ''}. "
            f"The problem knows {', '.join(sorted(known))}; rename or remove it."
        )
    missing = [name for name in problem.names if name not in losses]
    if missing:
        raise LossError(
            f"{split}: the losses of {missing[0]!r} are missing; got {sorted(map(str, losses))}. "
            f"Every risk needs its per-example losses."
        )


def _read_risks(problem: Problem, losses: LossMapping, split: str) -> dict[str, RiskLosses]:
    check_known(problem, losses, split)
    result = {
        risk.name: read_risk(risk, losses[risk.name], losses, split) for risk in problem.risks
    }
    shapes = {name: (len(read.row_digests), read.n_examples) for name, read in result.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
        raise LossError(
            f"{split}: every risk needs the same configurations and examples, but the shapes "
            f"differ ({listed}). For a risk that counts only some examples, use NaN for the others "
            f"and Risk(..., conditional=True)."
        )
    return result


def _row_means(values: FloatArray) -> FloatArray:
    """The mean of each row; of a row of equal numbers that number, without rounding, so that one
    number per configuration is the same whether it is given once or with every example."""
    first = values[:, 0]
    return np.where((values == first[:, None]).all(axis=1), first, values.mean(axis=1))


def _shape(risks: Mapping[str, RiskLosses]) -> tuple[int, int]:
    """The numbers of configurations and of examples, which all risks have in common."""
    first = next(iter(risks.values()))
    return len(first.row_digests), first.n_examples


def _read_free(
    name: str,
    losses: npt.ArrayLike,
    n_configs: int,
    n_examples: int | None,
    split: str,
    largest: float | None,
) -> tuple[FloatArray, FloatArray | None]:
    """The free objective of each configuration, with its standard error where it is a mean.

    ``n_examples``: how many examples a mean must be of; None where that is not known.
    """
    what = f"{split}: the values of {name!r}"
    values = np.asarray(number_array(losses, what), dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[0] != n_configs or values.size == 0:
        raise LossError(
            f"{split}: the free objective {name!r} must have shape ({n_configs},) or "
            f"({n_configs}, examples), one row per configuration, but it is {values.shape}. "
            f"Give one number or one row of losses for each of the {n_configs} configurations."
        )
    if values.ndim == 2 and n_examples is not None and values.shape[1] not in (1, n_examples):
        raise LossError(
            f"{split}: the free objective {name!r} is one number, or one for each of the "
            f"{n_examples:,} examples, but there are {values.shape[1]:,}. Give its mean, or the "
            f"losses of the same examples."
        )
    check_free(name, values, split, largest)
    if values.ndim == 1:
        return values, None
    return _row_means(values), values.std(axis=1) / np.sqrt(values.shape[1])


def check_free(name: str, values: FloatArray, split: str, largest: float | None = None) -> None:
    """Refuse values of the free objective that no search could go by; ``largest``: see
    `validation_losses`."""
    usable = is_usable_free(values, largest)
    if not usable.all():
        most = LARGEST_FREE if largest is None else largest
        raise LossError(
            f"{split}: the free objective {name!r} must be finite, between {-most:g} and "
            f"{most:g}, but a value is {values[~usable].flat[0]}. Leave the configuration "
            f"out (an evaluation may raise optuna.TrialPruned), or give it a value a little above "
            f"the worst that is meant."
        )


def is_usable_free(values: FloatArray | float, largest: float | None = None) -> BoolArray:
    """Tell of each value of the free objective whether a search can go by it; ``largest``: see
    `validation_losses`."""
    most = LARGEST_FREE if largest is None else largest
    return np.abs(np.asarray(values, dtype=np.float64)) <= most
