"""The declared range of losses: checked, and mapped to the unit scale."""

import numpy as np

from riskpilot.common import Array, FloatArray, exact, one_minus
from riskpilot.errors import LossError, LossRangeError
from riskpilot.losses.intake import LARGEST_WHOLE, as_read, in_double, outside, same_number
from riskpilot.problem import Risk, column_of


def in_range(risk: Risk, block: Array, split: str) -> FloatArray:
    """Losses, or those of a reference, in double precision; an error where one is out of range.

    The one place where ranges are checked, whatever the statistic and the type of the losses.
    """
    what = f"{split}: losses of {risk.name!r}"
    if block.dtype.kind == "f" and not risk.conditional and np.isnan(block).any():
        raise LossError(
            f"{split}: a loss of {risk.name!r} is NaN. If a NaN means that the example does not "
            f"count for this risk, declare it: Risk({risk.name!r}, ..., conditional=True)."
        )
    if same_number(risk.low, risk.high, block.dtype):
        raise LossError(
            f"{what} must tell the ends of the range apart, but in {block.dtype} "
            f"[{risk.low!r}, {risk.high!r}] is one number. Make them in double precision."
        )
    out = outside(block, risk.low, risk.high)
    if out.any():
        bad = in_double(block[out])
        worst = float(bad[np.argmax(np.maximum(risk.low - bad, bad - risk.high))])
        raise _out_of_range(risk, worst, split)
    if block.dtype.kind in "iu" and max(abs(risk.low), abs(risk.high)) >= LARGEST_WHOLE:
        _check_whole(block, what)
    return in_double(block, risk.low, risk.high)


def _out_of_range(risk: Risk, worst: float, split: str) -> LossRangeError:
    """Say what is wrong with a loss. Where losses are one minus what was measured, tables hold the
    latter, and only somebody who reads both numbers finds the cell."""
    column, is_good = column_of(risk)
    if is_good:
        low, high = one_minus(risk.high), one_minus(risk.low)
        measured = exact(one_minus(worst))
        return LossRangeError(
            f"{split}: {column!r} must lie in [{low:g}, {high:g}], and its losses, one minus it, "
            f"in [{risk.low:g}, {risk.high:g}], but one is {measured}, whose loss is "
            f"{exact(worst)}. Write shares: 0.85, and not 85 for 85 %."
        )
    return LossRangeError(
        f"{split}: losses of {risk.name!r} must lie in [{risk.low:g}, {risk.high:g}], but one is "
        f"{exact(worst)}. {_way_out_of_range(risk, worst)}"
    )


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


def as_given(risk: Risk, values: Array) -> FloatArray:
    """Losses in double precision. The ends of the range, and the limit of a quantile, are read in
    the precision of the losses: a loss that sits there in its own precision sits there."""
    exceeded = risk.statistic.exact and risk.limit is not None
    return in_double(values, *((risk.limit or 0.0,) if exceeded else ()), *risk.span)


def at_top(risk: Risk, block: Array) -> Array | None:
    """Which losses sit at the top of the range, or None where some loss sits at neither end."""
    low, high = risk.span
    if (low, high) == (0.0, 1.0):
        if block.dtype == np.bool_:
            return block
        if block.dtype.itemsize == 1 and block.min() >= 0 and block.max() <= 1:
            return block.view(np.bool_) if block.flags.c_contiguous else block != 0
    if same_number(low, high, block.dtype):  # refused in words where the range is checked
        return None
    at_top = block == as_read(high, block.dtype)
    n_at_ends = np.count_nonzero(at_top) + np.count_nonzero(block == as_read(low, block.dtype))
    return at_top if n_at_ends == block.size else None


def to_unit(losses: FloatArray, risk: Risk) -> FloatArray:
    """Losses on the unit scale. No rounding takes one that is not at an end of the range there."""
    low, high = risk.span
    if (low, high) == (0.0, 1.0):
        return losses
    unit = np.clip((losses - low) / (high - low), 0.0, 1.0)
    unit[(unit == 0) & (losses > low)] = np.finfo(np.float64).smallest_subnormal
    unit[(unit == 1) & (losses < high)] = np.nextafter(1.0, 0.0)
    return unit
