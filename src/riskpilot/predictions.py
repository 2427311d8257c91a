"""Labels, predictions and groups become losses, and losses become numbers: no masks by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot import losses as tables
from riskpilot.errors import LossError, ProblemError
from riskpilot.measures import Difference, Statistic
from riskpilot.metrics import NAMED, Named, named
from riskpilot.problem import Problem, Risk

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


def losses_from_predictions(
    problem: Problem | Risk | Iterable[Risk],
    labels: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    reference: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    positive: int = 1,
) -> dict[str, Array]:
    """The losses of every risk that is known by its name, and of the free objective if it is.

    ``labels``: shape (m,), classes as whole numbers or booleans. ``predictions``: shape (m,) for
    one configuration or (n, m) for many; -1 hands an example over. ``groups``: shape (m,), or a
    mapping of names to such arrays where risks have different groups. ``reference``: predictions of
    the reference that a `Difference` names, shape (m,), or a mapping likewise. The free objective
    becomes one number per configuration. What has no known name is left out: add it to the result.

    >>> problem = Problem([Risk("precision", at_least=0.9)], minimize="false_negative_rate")
    >>> losses_from_predictions(problem, [1, 0, 1, 0], [[1, 1, 0, 0]])
    {'precision': array([[ 0.,  1., nan, nan]], dtype=float16), 'false_negative_rate': array([0.5])}
    """
    risks, minimize = _asked(problem)
    truth, predicted = _codes("labels", labels), _codes("predictions", predictions)
    if truth.ndim != 1 or predicted.ndim not in (1, 2) or predicted.shape[-1] != len(truth):
        raise LossError(
            f"Labels have shape (m,) and predictions (m,) or (configurations, m), but their shapes "
            f"are {truth.shape} and {predicted.shape}. Give one label and one prediction per "
            f"example."
        )
    result: dict[str, Array] = {}
    for risk in risks:
        known = named(risk.name)
        if known is not None:
            result[risk.name] = known.metric.losses(truth, predicted, positive)
            if risk.conditional is False and known.metric.conditional:
                raise ProblemError(
                    f"Risk {risk.name!r} counts only some examples. Give its limit as at_most or "
                    f"at_least, or declare it: conditional=True."
                )
        result |= _beside(risk, known, truth, positive, groups, reference)
    if minimize is not None and (known := named(minimize)) is not None:
        per_example = np.atleast_2d(known.metric.losses(truth, predicted, positive))
        free = Risk("losses", statistic=known.statistic, conditional=True)
        beside = _beside(free, known, truth, positive, groups, reference)
        values = value_of(free, {"losses": per_example.astype(np.float64), **beside})
        result[minimize] = values if predicted.ndim == 2 else values[0]
    if not result:
        raise ProblemError(
            f"No risk has a name that says what its losses are, but they are called "
            f"{', '.join(r.name for r in risks)}. Known are {', '.join(NAMED)}."
        )
    return result


def measure(
    statistic: Statistic,
    losses: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    *,
    within: npt.ArrayLike | None = None,
    reference: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """The statistic of each configuration's losses, shape (n,): for free objectives, and to look.

    ``losses``: shape (n, m), NaN where an example does not count. What the statistic needs beside
    them, each of shape (m,): ``groups``, labels ``within`` which groups are compared, losses of the
    ``reference``, ``weights`` of the examples.

    >>> from riskpilot import WorstGroup
    >>> measure(WorstGroup(), [[1, 0, 0, 0], [0, 0, 1, 1]], ["a", "a", "b", "b"])
    array([0.5, 1. ])
    """
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table[~np.isnan(table)]).all() or table.size == 0:
        raise LossError(
            f"measure takes finite losses of shape (configurations, examples), but they have shape "
            f"{table.shape} or are infinite. For one configuration use losses[None, :]."
        )
    given: dict[str, Any] = {"losses": table}
    extremes = [table]
    if reference is not None:
        extremes.append(np.asarray(reference, dtype=np.float64))
    low = min(float(np.nanmin(part, initial=0.0)) for part in extremes)
    high = max(float(np.nanmax(part, initial=1.0)) for part in extremes)
    heaviest = {} if weights is None else _heaviest(weights)
    risk = Risk("losses", None, low, high, conditional=True, statistic=statistic, **heaviest)
    labels = dict(zip(("groups", "within"), risk.labels, strict=False))
    names = {**labels, "weights": "weights"}
    if isinstance(statistic, Difference):
        names["reference"] = statistic.reference
    told = {"groups": groups, "within": within, "reference": reference, "weights": weights}
    for what, values in told.items():
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
    """An estimate needs no bound that is known beforehand."""
    largest = np.max(np.asarray(weights, dtype=np.float64), initial=0.0)
    return {"weights": "weights", "largest_weight": float(largest) or 1.0}


def value_of(risk: Risk, given: Mapping[str, Any]) -> FloatArray:
    """The risk of each configuration, shape (n,), from its losses and what stands beside them."""
    read = tables.calibration_losses(Problem([risk], "free"), given).risks[risk.name]
    return np.asarray(risk.from_unit(read.summary.mean))


def weighted(losses: npt.ArrayLike, weights: npt.ArrayLike, *, largest: float) -> FloatArray:
    """Losses times the weights of their examples, for a limit on the weighted mean E[w L].

    ``losses``: shape (m,) or (n, m), from 0 upwards; ``weights``: shape (m,), of mean 1 over the
    population, with a bound ``largest`` that is known beforehand. Declare the larger range:
    ``Risk("error", limit, high=largest)``. Without such a bound no test is valid.

    >>> weighted([[1.0, 0.0, 1.0]], [0.5, 0.5, 2.0], largest=2.0)
    array([[0.5, 0. , 2. ]])
    """
    table, w = np.asarray(losses, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or table.shape[-1:] != w.shape:
        raise LossError(
            f"Weights need one number per example, shape {table.shape[-1:]}, but their shape is "
            f"{w.shape}. Give every example its weight."
        )
    bad = w[~((w >= 0) & (w <= largest))]
    if bad.size:
        raise LossError(
            f"Weights must lie in [0, {largest:g}], the bound that was declared, but one is "
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


def _asked(problem: Problem | Risk | Iterable[Risk]) -> tuple[tuple[Risk, ...], str | None]:
    if isinstance(problem, Problem):
        return problem.risks, problem.minimize
    return ((problem,) if isinstance(problem, Risk) else tuple(problem)), None


def _beside(
    risk: Risk,
    known: Named | None,
    truth: npt.NDArray[np.int64],
    positive: int,
    groups: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None,
    reference: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None,
) -> dict[str, Array]:
    """What a risk needs beside its losses, as far as predictions and groups say it."""
    result: dict[str, Array] = {}
    if risk.needs_groups:
        result[risk.groups] = _groups_of(risk.groups, groups, len(truth))
    result |= {name: (truth == positive).astype(np.int8) for name in risk.labels[1:]}
    if isinstance(risk.statistic, Difference) and known is not None:
        name = risk.statistic.reference
        found = reference.get(name) if isinstance(reference, Mapping) else reference
        if found is None:
            raise LossError(
                f"The predictions of the reference {name!r} are needed, but they are not given. "
                f'Pass its prediction of every example: reference=array, or {{"{name}": array}}.'
            )
        predicted = _codes("predictions of the reference", found)
        if predicted.shape != truth.shape:
            raise LossError(
                f"There are {len(truth)} examples, but the predictions of the reference {name!r} "
                f"have shape {predicted.shape}. Predict the same examples."
            )
        result[name] = known.metric.losses(truth, predicted, positive)
    return result


def _groups_of(
    name: str, groups: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None, m: int
) -> Array:
    found = groups.get(name) if isinstance(groups, Mapping) else groups
    if found is None:
        raise LossError(
            f"The groups {name!r} are needed, but they are not given. Pass the group of every "
            f'example: groups=array, or groups={{"{name}": array}}.'
        )
    array = np.asarray(found)
    if array.shape != (m,):
        raise LossError(
            f"There are {m} examples, but the groups {name!r} have shape {array.shape}. "
            f"Give every example its group."
        )
    return array


def _codes(what: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    whole = array.dtype.kind == "f" and bool((array == np.rint(array)).all())
    if array.dtype.kind not in "biu" and not whole:
        raise LossError(
            f"{what} are classes as whole numbers or booleans, but their type is {array.dtype}. "
            f"Compare scores with a threshold first: scores >= 0.5; code names as numbers."
        )
    return array.astype(np.int64)
