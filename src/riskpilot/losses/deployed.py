"""Losses of a deployed configuration, in the order in which they come."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from riskpilot.common import Array, FloatArray
from riskpilot.errors import LossError
from riskpilot.losses.beside import read_numbers, read_texts, read_weights
from riskpilot.losses.evaluation import LossMapping
from riskpilot.losses.intake import number_array
from riskpilot.losses.ranges import as_given, in_range, to_unit
from riskpilot.losses.risk_losses import differences
from riskpilot.losses.splits import check_known
from riskpilot.problem import Problem, Risk

_SPLIT = "update"  # what messages call these losses


class DeployedLosses(NamedTuple):
    """The losses of one risk for the next b labelled examples, checked.

    ``own``: in their own units, of differences less those of the reference; ``unit``: on the unit
    scale; both of shape (b,), NaN where an example does not count. ``groups``: the group of each
    example, or a tuple of its group and its label where groups are parted by labels; None for a
    risk without groups. ``weights``: as shares of the largest, shape (b,), where the risk has some.
    """

    own: FloatArray
    unit: FloatArray
    groups: Sequence[Hashable] | None
    weights: FloatArray | None


def read_deployed(problem: Problem, losses: LossMapping) -> dict[str, DeployedLosses]:
    """Check the losses of one configuration on new examples, shape (b,), for every risk."""
    check_known(problem, losses, _SPLIT)
    found = {risk.name: _read(risk, losses) for risk in problem.risks}
    sizes = {name: len(labels.own) for name, labels in found.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise LossError(
            f"{_SPLIT}: every risk needs the same examples, but their numbers differ ({listed}). "
            f"For a risk that counts only some examples, use NaN for the others and "
            f"Risk(..., conditional=True)."
        )
    return found


def _read(risk: Risk, losses: LossMapping) -> DeployedLosses:
    """Check the losses of one risk, and what stands beside them."""
    what = f"{_SPLIT}: the losses of {risk.name!r}"
    array = number_array(losses[risk.name], what, missing_as_nan=risk.conditional)
    if array.ndim != 1:
        raise LossError(
            f"{what} must be one number per example, shape (examples,), but their shape is "
            f"{array.shape}. Give the losses of the deployed configuration alone; of a single "
            f"example, a list with its loss."
        )
    own = _in_own_units(risk, array, losses)
    return DeployedLosses(
        own=own,
        unit=to_unit(own, risk),
        groups=_groups(risk, losses, len(array)),
        weights=read_weights(risk, losses, len(array), _SPLIT),
    )


def _in_own_units(risk: Risk, array: Array, losses: LossMapping) -> FloatArray:
    """Return losses, or differences, in double precision, if they are in range."""
    name = risk.statistic.reference_name
    if name is not None:
        reference = read_numbers(risk, losses, name, "losses of the reference", len(array), _SPLIT)
        return as_given(risk, differences(risk, array[None], reference, _SPLIT)[0])
    checked = in_range(risk, array, _SPLIT)
    return as_given(risk, array) if risk.statistic.exact else checked


def _groups(risk: Risk, losses: LossMapping, m: int) -> Sequence[Hashable] | None:
    """Return the group of each example, with its label where groups are parted by labels."""
    columns = []
    for name, what in zip(risk.labels, ("groups", "labels"), strict=False):
        names, codes = read_texts(risk, losses, name, what, m, _SPLIT)
        columns.append([names[code] for code in codes.tolist()])
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
