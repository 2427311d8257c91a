"""Losses become numbers: the value of a statistic, and losses times weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common import finite_number
from riskpilot.common.arrays import Array, FloatArray
from riskpilot.errors import LossError, shown
from riskpilot.losses.splits import calibration_losses
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Statistic


def measure(
    statistic: Statistic,
    losses: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    *,
    within: npt.ArrayLike | None = None,
    reference: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute the statistic of each configuration's losses: for free objectives, and to look.

    Parameters
    ----------
    statistic : statistic
        What to measure, such as `WorstGroup`.
    losses : array of shape (n, m)
        The losses of n configurations, NaN where an example does not count.
    groups : array of shape (m,), optional
        The groups of the examples, for a statistic of groups.
    within : array of shape (m,), optional
        The labels within which groups are compared.
    reference : array of shape (m,), optional
        The losses of the reference, for a difference.
    weights : array of shape (m,), optional
        The weights of the examples.

    Returns
    -------
    array of shape (n,)
        The values; of a `Ratio` one minus the smallest ratio.

    Raises
    ------
    LossError
        Where the losses, or what stands beside them, cannot be used.

    Examples
    --------
    >>> from riskpilot import WorstGroup
    >>> measure(WorstGroup(), [[1, 0, 0, 0], [0, 0, 1, 1]], ["a", "a", "b", "b"])
    array([0.5, 1. ])
    """
    table = numbers_of("losses", losses)
    if table.ndim != 2 or not np.isfinite(table[~np.isnan(table)]).all() or table.size == 0:
        raise LossError(
            f"measure takes finite losses of shape (configurations, examples), but they have shape "
            f"{table.shape} or are infinite. For one configuration use losses[None, :]."
        )
    given: dict[str, Any] = {"losses": table}
    extremes = [table]
    if reference is not None:
        extremes.append(numbers_of("losses of the reference", reference))
    low = min(float(np.nanmin(part, initial=0.0)) for part in extremes)
    high = max(float(np.nanmax(part, initial=1.0)) for part in extremes)
    heaviest = {} if weights is None else _heaviest(weights)
    risk = Risk("losses", None, low, high, conditional=True, statistic=statistic, **heaviest)
    labels = dict(zip(("groups", "within"), risk.labels, strict=False))
    names = {**labels, "weights": "weights"}
    if risk.statistic.reference_name is not None:
        names["reference"] = risk.statistic.reference_name
    beside = {"groups": groups, "within": within, "reference": reference, "weights": weights}
    for what, values in beside.items():
        if values is None:
            continue
        if what not in names:
            raise LossError(
                f"{type(statistic).__name__} knows no {what}, but {what} is given. Leave it out, "
                f"or measure a statistic that needs it."
            )
        given[names[what]] = values
    return value_of(risk, given)


def _heaviest(weights: npt.ArrayLike) -> dict[str, Any]:
    """Take the largest weight of the sample: an estimate needs no bound known beforehand."""
    largest = np.max(numbers_of("weights", weights), initial=0.0)
    return {"weights": "weights", "largest_weight": float(largest) or 1.0}


def value_of(risk: Risk, given: Mapping[str, Any]) -> FloatArray:
    """Compute the risk of each configuration, shape (n,), from losses and what stands beside."""
    alone = Problem([risk], f"not {risk.name}")
    read = calibration_losses(alone, given).risks[risk.name]
    return np.asarray(risk.from_unit(read.summary.mean))


def weighted(losses: npt.ArrayLike, weights: npt.ArrayLike, *, largest: float) -> FloatArray:
    """Multiply losses by the weights of their examples, for a limit on the weighted mean E[w L].

    Declare the larger range: ``Risk("error", limit, high=largest)``.

    Parameters
    ----------
    losses : array of shape (m,) or (n, m)
        Losses from 0 upwards.
    weights : array of shape (m,)
        Weights of mean 1 over the population.
    largest : float
        The largest weight that there can be, known beforehand. Without such a bound no test is
        valid.

    Returns
    -------
    array of the shape of losses
        The losses times the weights.

    Raises
    ------
    LossError
        Where the weights exceed their bound or have another mean, and where losses are negative.

    Examples
    --------
    >>> weighted([[1.0, 0.0, 1.0]], [0.5, 0.5, 2.0], largest=2.0)
    array([[0.5, 0. , 2. ]])
    """
    table, w = numbers_of("losses", losses), numbers_of("weights", weights)
    bound = finite_number(largest)
    if bound is None or not bound > 0:
        raise LossError(
            f"largest is the largest weight that there can be, a number above 0, but it is "
            f"{shown(largest)}. Clip the weights, and give the point where they are clipped."
        )
    if w.ndim != 1 or w.size == 0 or table.shape[-1:] != w.shape:
        raise LossError(
            f"Weights need one number per example, shape {table.shape[-1:]}, but their shape is "
            f"{w.shape}. Give every example its weight."
        )
    bad = w[~((w >= 0) & (w <= bound))]
    if bad.size:
        raise LossError(
            f"Weights must lie in [0, {bound:g}], the bound that was declared, but one is "
            f"{bad[0]:g}. Declare a bound that holds for all examples there can be: a bound read "
            f"off the sample proves nothing."
        )
    if np.nanmin(table, initial=0.0) < 0:
        raise LossError(
            f"Weighted losses must start at 0, but one is {np.nanmin(table):g}. "
            f"Shift them, and the limit with them."
        )
    error = max(float(w.std()) / np.sqrt(len(w)), 1e-9)
    if abs(float(w.mean()) - 1) > 6 * error:
        raise LossError(
            f"Weights must have mean 1 over the population, but these have a mean of "
            f"{w.mean():.4g}. Divide them by their mean in the population; the mean of the sample "
            f"is no substitute, since dividing by it makes the losses depend on each other."
        )
    return np.asarray(table * w)


def plain_array(what: str, values: npt.ArrayLike) -> Array:
    """Make an array of what was given; a masked one is refused, since its mask would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise LossError(
            f"{what} must be plain arrays, but they are a masked one, whose mask would be lost. "
            f"Fill it: array.filled(numpy.nan) where NaN says that an example does not count."
        )
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise LossError(
            f"{what} must be arrays of equal rows, but they are {shown(values)}: {error}. "
            f"Give numbers or booleans of one shape."
        ) from error


def numbers_of(what: str, values: npt.ArrayLike) -> FloatArray:
    """Make an array of floats of what was given; texts and objects are refused."""
    array = plain_array(what, values)
    if array.dtype.kind not in "biuf":
        raise LossError(
            f"{what} must be numbers or booleans, but their type is {array.dtype}. "
            f"Convert them to float."
        )
    with np.errstate(over="ignore"):  # of longer floats: infinite, which is refused by its name
        return np.asarray(array, dtype=np.float64)
