"""Per-example losses on their way in: checked, counted, digested, and kept apart by purpose."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from riskpilot.common import told
from riskpilot.errors import LeakageError, LossError, LossRangeError, ProblemError
from riskpilot.losses.arrays import (
    LARGEST_WHOLE,
    as_read,
    in_double,
    number_array,
    outside,
    shown,
    text_array,
)
from riskpilot.losses.beside import Groups, digest_of, read_groups, read_numbers, read_weights
from riskpilot.losses.summaries import AnySummary, GroupSummary, Summary
from riskpilot.losses.sums import gatherer
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Difference, Quantile

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
LossMapping = Mapping[str, npt.ArrayLike]

_BLOCK_BYTES = 1 << 20  # rows are read in blocks that stay in the cache


@dataclass(frozen=True)
class Evaluation:
    """What one configuration loses on validation data and, sealed until `select`, on calibration.

    Both map names to arrays of per-example losses; the free objective may be a single number.
    """

    validation: LossMapping
    calibration: LossMapping | None = None

    def __post_init__(self) -> None:
        for split in ("validation", "calibration"):
            value = getattr(self, split)
            if not isinstance(value, Mapping) and not (split == "calibration" and value is None):
                raise LossError(
                    f"Evaluation: {split} must map names to losses, but it is a "
                    f'{type(value).__name__}. Write Evaluation({split}={{"error": array, ...}}).'
                )


@dataclass(frozen=True)
class RiskLosses:
    """One risk's losses of n configurations on m examples.

    ``values``: 0/1 losses as packed bits, shape (n, ceil(m / 8)); others, and those with NaN, as
    given, shape (n, m), of differences less those of the reference; None where the sums are all
    that is needed and all that was kept. ``groups`` and ``weights`` (as shares of the largest) of
    the examples, where the risk has some and the losses are at hand; ``packed``: whether the values
    are bits.
    """

    risk: Risk
    values: Array | None
    n_examples: int
    summary: AnySummary
    row_digests: tuple[bytes, ...]
    groups: Groups | None = None
    weights: FloatArray | None = None
    packed: bool = False

    def rows(self, rows: Sequence[int]) -> FloatArray:
        """The losses, or differences, of some configurations in their own units, shape
        (len(rows), m)."""
        assert self.values is not None
        chosen = self.values[list(rows)]
        if self.packed:
            bits = np.unpackbits(chosen, axis=1, count=self.n_examples)
            return np.asarray(np.array(self.risk.span)[bits])
        return as_given(self.risk, chosen)

    def unit_rows(self, rows: Sequence[int]) -> FloatArray:
        """The losses of some configurations on the unit scale, shape (len(rows), m)."""
        if self.packed:
            assert self.values is not None
            bits = np.unpackbits(self.values[list(rows)], axis=1, count=self.n_examples)
            return bits.astype(np.float64)
        return _to_unit(self.rows(rows), self.risk)


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
    def n_examples(self) -> int:
        return max(losses.n_examples for losses in self.risks.values())

    def digest(self, rows: Sequence[int] | None = None) -> str:
        """Of the risks' losses and the free objective, of some configurations or of all."""
        chosen = range(self.n_configs) if rows is None else rows
        digests = [self.risks[risk.name].row_digests for risk in self.problem.risks]
        parts = [b"".join(of_risk[row] for row in chosen) for of_risk in digests]
        if self.free is not None:
            parts.append(np.ascontiguousarray(self.free[list(chosen)], dtype="<f8").tobytes())
        return digest_of(*parts).hex()


@dataclass(frozen=True)
class ValidationLosses(_Losses):
    """Losses that the search, the plan and the plots may see. The free objective is always there.

    ``free``: its value for each configuration, shape (n,); ``free_error``: its standard error,
    or None where only numbers were given.
    """

    free: FloatArray


@dataclass(frozen=True)
class CalibrationLosses(_Losses):
    """Losses that nothing sees before the test plan is frozen."""


def validation_losses(problem: Problem, losses: LossMapping) -> ValidationLosses:
    """Check validation losses: risks of shape (n, k), the free objective (n,) or (n, k)."""
    risks = _read_risks(problem, losses, "validation")
    if problem.minimize not in losses:
        raise LossError(
            f"validation: the free objective {problem.minimize!r} is missing. Give it as one "
            f"number per configuration or as per-example losses; got {sorted(map(str, losses))}."
        )
    n_configs = len(next(iter(risks.values())).row_digests)
    free, error = _read_free(problem.minimize, losses[problem.minimize], n_configs, "validation")
    return ValidationLosses(problem, risks, free, error)


def calibration_losses(problem: Problem, losses: LossMapping) -> CalibrationLosses:
    """Check calibration losses: risks of shape (n, m); the free objective may be missing."""
    risks = _read_risks(problem, losses, "calibration")
    free = error = None
    if problem.minimize in losses:
        n_configs = len(next(iter(risks.values())).row_digests)
        free, error = _read_free(
            problem.minimize, losses[problem.minimize], n_configs, "calibration"
        )
    return CalibrationLosses(problem, risks, free, error)


def check_disjoint(
    validation: ValidationLosses,
    calibration: CalibrationLosses,
) -> None:
    """Refuse calibration losses that are the validation losses."""
    for name, losses in validation.risks.items():
        other = calibration.risks[name]
        if losses.row_digests == other.row_digests and not _could_coincide(other):
            raise LeakageError(
                f"Validation and calibration must not share examples, but the losses of {name!r} "
                f"are the same {losses.n_examples} numbers in both. Split the data once, before "
                f"anything is trained or chosen, and pass each part where it belongs."
            )


def check_ids(validation_ids: Any, calibration_ids: Any) -> None:
    """Refuse ids that occur in both splits."""
    if validation_ids is None or calibration_ids is None:
        return
    shared = np.intersect1d(
        text_array(validation_ids, "validation_ids"), text_array(calibration_ids, "calibration_ids")
    )
    if len(shared):
        raise LeakageError(
            f"Validation and calibration must not share examples, but {len(shared)} ids occur in "
            f"both, such as {str(shared[0])!r}. Remove them from one of the two."
        )


def check_memory(validation: LossMapping, calibration: LossMapping) -> None:
    """Refuse calibration arrays that overlap the validation arrays in memory."""
    if not isinstance(calibration, Mapping):
        return  # refused in words when it is read
    for name in validation.keys() & calibration.keys():
        one, other = validation[name], calibration[name]
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
            continue
        try:
            shared = np.ndim(one) > 0 and np.shares_memory(one, other, max_work=10_000)  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            continue  # slices too intricate to compare; digests and ids still are
        if shared:
            raise LeakageError(
                f"Validation and calibration must not share examples, but the arrays of {name!r} "
                f"overlap in memory. Slice them without overlap: losses[:, :k] and losses[:, k:]."
            )


def _could_coincide(losses: RiskLosses) -> bool:
    """Whether two different samples could well show these same numbers in this same order."""
    summary = losses.summary
    if summary.binary:
        parts = summary.sums if isinstance(summary, GroupSummary) else (summary,)
        count, n = (sum(p.above_zero for p in parts), sum(p.n for p in parts))
        log_orders = gammaln(n + 1) - gammaln(count + 1) - gammaln(n - count + 1)
        return bool(log_orders.max() < np.log(1e9))
    return losses.values is None or len(np.unique(losses.values[0])) < 12


def _read_risks(problem: Problem, losses: LossMapping, split: str) -> dict[str, RiskLosses]:
    if not isinstance(losses, Mapping):
        raise LossError(
            f"{split} must map names to losses, but it is a {type(losses).__name__}. "
            f'Write {split}={{"{problem.names[0]}": array, ...}}.'
        )
    known = {*problem.names, problem.minimize, *problem.beside}
    check_names(losses, split)
    unknown = sorted(set(losses) - known)
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
    result = {
        risk.name: _read_risk(risk, losses[risk.name], losses, split) for risk in problem.risks
    }
    shapes = {name: (len(read.row_digests), read.n_examples) for name, read in result.items()}
    if len(set(shapes.values())) > 1:
        told = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
        raise LossError(
            f"{split}: every risk needs the same configurations and examples, but the shapes "
            f"differ ({told}). For a risk that counts only some examples, use NaN for the others "
            f"and Risk(..., conditional=True)."
        )
    return result


def check_names(losses: LossMapping, split: str) -> None:
    """Refuse losses under anything but a text: 1 and "1" are different keys."""
    odd = [name for name in losses if not isinstance(name, str)]
    if odd:
        raise LossError(
            f"{split}: losses are named by texts, but one name is {told(odd[0])}, a "
            f"{type(odd[0]).__name__}. Use the name of the risk or of the free objective."
        )


def check_scale(risk: Risk) -> None:
    """Refuse a range in which double precision cannot tell the limit from its surroundings.

    Means are taken on the unit scale. The test of a quantile compares the losses as they are.
    """
    low, high = risk.span
    if not np.isfinite(high - low):
        raise ProblemError(
            f"Risk {risk.name!r}: the range must have a width that is a number, but "
            f"[{risk.low:g}, {risk.high:g}] is wider than the largest one (1.8e308). Declare a "
            f"narrower range."
        )
    if risk.limit is None or isinstance(risk.statistic, Quantile):
        return
    blurred = abs(risk.from_unit(risk.to_unit(risk.limit)) - risk.limit)
    if blurred > 1e-6 * abs(risk.limit) or not 0 < risk.unit_limit < 1:
        raise ProblemError(
            f"Risk {risk.name!r}: the limit {risk.limit:g} must be a number that the range "
            f"[{risk.low:g}, {risk.high:g}] resolves, but in double precision it is lost among "
            f"losses so large. Declare a range no wider than what can occur, or clip the losses at "
            f"values fixed beforehand; a Quantile is tested whatever the range."
        )


def _read_risk(risk: Risk, losses: npt.ArrayLike, beside: LossMapping, split: str) -> RiskLosses:
    check_scale(risk)
    what = f"{split}: the losses of {risk.name!r}"
    array = number_array(losses, what, missing_as_nan=risk.conditional)
    if array.ndim != 2:
        raise LossError(
            f"{what} must have shape (configurations, examples), "
            f"but it is {array.shape}. For one configuration use losses[None, :]."
        )
    if 0 in array.shape:
        raise LossError(
            f"{what} are empty, shape {array.shape}. "
            f"A certificate needs at least one configuration and one example."
        )
    m = array.shape[1]
    groups = read_groups(risk, beside, m, split) if risk.needs_groups else None
    weights = read_weights(risk, beside, m, split)
    if isinstance(risk.statistic, Difference):
        name = risk.statistic.reference
        reference = read_numbers(risk, beside, name, "losses of the reference", m, split)
        array = _differences(risk, array, reference, split)
    return _read_table(risk, array, split, groups, weights)


def _differences(risk: Risk, array: Array, reference: Array, split: str) -> Array:
    """Losses less those of the reference, both in range; NaN where an example does not count."""
    base = _in_range(risk, reference, split)
    in_unit = risk.low <= 0 and risk.high >= 1 and bool(((base == 0) | (base == 1)).all())
    truths = array.dtype == np.bool_ and in_unit
    differences = np.empty(array.shape, dtype=np.int8 if truths else np.float64)
    counts = ~np.isnan(base)
    for rows in _blocks(len(array), array.shape[1] * array.itemsize):
        block = array[rows]
        if truths:
            np.subtract(block, base.astype(np.int8), out=differences[rows], dtype=np.int8)
            continue
        losses = _in_range(risk, block, split)
        if risk.conditional and (np.isnan(losses) == counts).any():
            raise LossError(
                f"{split}: the losses of {risk.name!r} and those of the reference must count for "
                f"the same examples, but for some only one of the two is NaN. No test is known "
                f"here for the difference of two rates that are taken over different examples: "
                f"limit each of them on its own."
            )
        np.subtract(losses, base, out=differences[rows])
    return differences


def _read_table(
    risk: Risk, array: Array, split: str, groups: Groups | None, weights: FloatArray | None
) -> RiskLosses:
    n_configs, m = array.shape
    # What a loss at an end of the range, or of differences two of them, can be on the unit scale.
    ends = (0.0, 0.5, 1.0) if isinstance(risk.statistic, Difference) else (0.0, 1.0)
    packed = np.empty((n_configs, (m + 7) // 8), dtype=np.uint8)
    n = np.full(n_configs, m, dtype=np.int64)
    total = np.empty(n_configs)
    squares = np.empty(n_configs)
    above_zero = np.empty(n_configs, dtype=np.int64)
    more = gatherer(risk, groups, weights, n_configs, m)
    digests: list[bytes] = []
    binary = packable = True
    for rows in _blocks(n_configs, m * array.itemsize):
        block = array[rows]
        at_top = _at_top(risk, block)
        if at_top is not None:
            bits = np.packbits(at_top, axis=1)
            count = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
            packed[rows] = bits
            total[rows] = squares[rows] = above_zero[rows] = count
            if more is not None:
                more.add_bits(rows, bits)
            digests.extend(_digest_bits(m, row) for row in bits)
            continue
        packable = False
        if isinstance(risk.statistic, Difference):  # those were checked one by one
            losses = as_given(risk, block)
        else:
            losses = _in_range(risk, block, split)
        unit = _to_unit(losses, risk)
        counts = ~np.isnan(unit)
        n[rows] = counts.sum(axis=1)
        filled = np.where(counts, unit, 0.0)
        # Losses that count may all be 0/1 although others do not count.
        n_at_ends = sum(np.count_nonzero(filled == end) for end in ends)
        binary = binary and bool(n_at_ends == filled.size)
        total[rows] = filled.sum(axis=1)
        squares[rows] = np.einsum("ij,ij->i", filled, filled)
        above_zero[rows] = np.count_nonzero(filled, axis=1)
        if more is not None:
            more.add(rows, filled, counts)
        digests.extend(_digest_row(risk, row) for row in losses)
    plain = Summary(n, total, squares, above_zero, binary)
    summary = plain if more is None else more.summary(plain)
    if groups is not None or weights is not None:
        own = b"" if groups is None else groups.digest
        shares = b"" if weights is None else weights.astype("<f8").tobytes()
        digests = [digest_of(own, shares, digest) for digest in digests]
    values = packed if packable else array
    return RiskLosses(risk, values, m, summary, tuple(digests), groups, weights, packable)


def _at_top(risk: Risk, block: Array) -> Array | None:
    """Which losses sit at the top of the range, or None where some loss sits at neither end."""
    low, high = risk.span
    if (low, high) == (0.0, 1.0):
        if block.dtype == np.bool_:
            return block
        if block.dtype.itemsize == 1 and block.min() >= 0 and block.max() <= 1:
            return block.view(np.bool_) if block.flags.c_contiguous else block != 0
    at_top = block == as_read(high, block.dtype)
    n_at_ends = np.count_nonzero(at_top) + np.count_nonzero(block == as_read(low, block.dtype))
    return at_top if n_at_ends == block.size else None


def as_given(risk: Risk, values: Array) -> FloatArray:
    """Losses in double precision. The ends of the range, and the limit of a quantile, are read in
    the precision of the losses: a loss that sits there in its own precision sits there."""
    exceeded = isinstance(risk.statistic, Quantile) and risk.limit is not None
    return in_double(values, *((risk.limit or 0.0,) if exceeded else ()), *risk.span)


def _in_range(risk: Risk, block: Array, split: str) -> FloatArray:
    """Losses, or those of a reference, in double precision; an error where one is out of range.

    The one place where ranges are checked, whatever the statistic and the type of the losses.
    """
    what = f"{split}: losses of {risk.name!r}"
    if block.dtype.kind == "f" and not risk.conditional and np.isnan(block).any():
        raise LossError(
            f"{split}: a loss of {risk.name!r} is NaN. If a NaN means that the example does not "
            f"count for this risk, declare it: Risk({risk.name!r}, ..., conditional=True)."
        )
    if as_read(risk.low, block.dtype) == as_read(risk.high, block.dtype):
        raise LossError(
            f"{what} must tell the ends of the range apart, but in {block.dtype} "
            f"[{risk.low!r}, {risk.high!r}] is one number. Make them in double precision."
        )
    out = outside(block, risk.low, risk.high)
    if out.any():
        bad = in_double(block[out])
        worst = float(bad[np.argmax(np.maximum(risk.low - bad, bad - risk.high))])
        raise LossRangeError(
            f"{what} must lie in [{risk.low:g}, {risk.high:g}], but one is {shown(worst)}. "
            + _way_out_of_range(risk, worst)
        )
    if block.dtype.kind in "iu" and max(abs(risk.low), abs(risk.high)) >= LARGEST_WHOLE:
        _check_whole(block, what)
    return in_double(block, risk.low, risk.high)


def _way_out_of_range(risk: Risk, worst: float) -> str:
    if not np.isfinite(worst):
        return (
            "An infinite loss has no valid test: clip the losses at a value that was fixed before "
            "the data was seen, and declare that value as the end of the range."
        )
    side, extreme = ("high", "largest") if worst > risk.high else ("low", "smallest")
    return (
        f"A range is known before the data is seen; one that is read off the sample proves "
        f"nothing. Declare the {extreme} loss that can occur at all, Risk({risk.name!r}, ..., "
        f"{side}=...), or clip the losses at a value that was fixed beforehand."
    )


def _check_whole(block: Array, what: str) -> None:
    """Refuse whole numbers that double precision would round."""
    if (np.abs(block.astype(np.float64)) >= LARGEST_WHOLE).any():
        raise LossError(
            f"{what} must be numbers that can be told from their neighbours, but some are whole "
            f"numbers of {LARGEST_WHOLE:,} and more. Measure them in a larger unit, as floats."
        )


def _read_free(
    name: str, losses: npt.ArrayLike, n_configs: int, split: str
) -> tuple[FloatArray, FloatArray | None]:
    what = f"{split}: the values of {name!r}"
    values = np.asarray(number_array(losses, what), dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[0] != n_configs or values.size == 0:
        raise LossError(
            f"{split}: the free objective {name!r} must have shape ({n_configs},) or "
            f"({n_configs}, examples), one row per configuration, but it is {values.shape}. "
            f"Give one number or one row of losses for each of the {n_configs} configurations."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        means = values if values.ndim == 1 else values.mean(axis=1)
    if not np.isfinite(means).all():
        bad = [*values[~np.isfinite(values)], *means[~np.isfinite(means)]][0]
        raise LossError(
            f"{split}: the free objective {name!r} must be finite, but a value is {bad}. "
            f"Leave the configuration out, or give it a large finite value."
        )
    if values.ndim == 1:
        return values, None
    with np.errstate(over="ignore"):
        return means, values.std(axis=1) / np.sqrt(values.shape[1])


def _to_unit(losses: FloatArray, risk: Risk) -> FloatArray:
    """Losses on the unit scale. No rounding takes one that is not at an end of the range there."""
    low, high = risk.span
    if (low, high) == (0.0, 1.0):
        return losses
    unit = np.clip((losses - low) / (high - low), 0.0, 1.0)
    unit[(unit == 0) & (losses > low)] = np.finfo(np.float64).smallest_subnormal
    unit[(unit == 1) & (losses < high)] = np.nextafter(1.0, 0.0)
    return unit


def _blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        yield slice(start, start + step)


def _digest_row(risk: Risk, row: Array) -> bytes:
    at_top = _at_top(risk, row[None])
    if at_top is not None:
        return _digest_bits(row.size, np.packbits(at_top[0]))
    values = np.array(row, dtype="<f8") + 0.0  # the zero below zero is zero
    values[np.isnan(values)] = np.nan  # one bit pattern for every NaN
    return hashlib.sha256(b"float64:%d:" % row.size + values.tobytes()).digest()


def _digest_bits(m: int, bits: Array) -> bytes:
    return hashlib.sha256(b"bits:%d:" % m + bits.tobytes()).digest()
