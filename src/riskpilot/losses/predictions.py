"""Labels, predictions and groups become losses: no masks by hand, and no code that is guessed."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, FloatArray, IntArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.losses.class_codes import LARGEST_CODE, class_codes, meaning_of_codes
from riskpilot.losses.values import numbers_of, plain_array, value_of
from riskpilot.problem import KNOWN, Codes, Meaning, Metric, Problem, Risk, meaning
from riskpilot.statistics import Mean

Beside = npt.ArrayLike | Mapping[str, npt.ArrayLike] | None


def losses_from_predictions(
    problem: Problem | Risk | Iterable[Risk],
    labels: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    groups: Beside = None,
    reference: Beside = None,
    positive: int | None = None,
    abstain: int | None = None,
) -> dict[str, Array]:
    """Make the losses of every risk that is known by its name, and of the free objective if it is.

    Parameters
    ----------
    problem : Problem, Risk or iterable of Risk
        Whose losses to make. What has no known name is left out: add it to the result.
    labels : array of shape (m,)
        The true classes, as whole numbers or booleans.
    predictions : array of shape (m,) or (n, m)
        The predicted classes, of one configuration or of many.
    groups : array of shape (m,) or mapping of names to such arrays, optional
        The group of every example; a mapping where risks have different groups.
    reference : array of shape (m,) or mapping of names to such arrays, optional
        The predictions of the reference that a `Difference` names.
    positive : int, optional
        The positive class, for metrics that speak of one. By default 1 where classes are 0 and 1,
        or -1 and 1; otherwise it must be named.
    abstain : int, optional
        The prediction that hands an example over. None: no prediction does.

    Returns
    -------
    dict of str to array
        Losses of shape (m,) or (n, m) by name of the risk, what stands beside them, and the free
        objective, one number per configuration.

    Raises
    ------
    LossError
        Where codes, shapes, groups or a reference do not fit, and where it is not declared what a
        code means.

    Examples
    --------
    >>> problem = Problem([Risk("precision", at_least=0.9)], minimize="false_negative_rate")
    >>> losses_from_predictions(problem, [1, 0, 1, 0], [[1, 1, 0, 0]])
    {'precision': array([[ 0.,  1., nan, nan]], dtype=float16), 'false_negative_rate': array([0.5])}
    """
    risks, minimize = _asked(problem)
    free = None if minimize is None else meaning(minimize)
    named = [risk for risk in risks if meaning(risk.name) is not None]
    if not named and free is None:
        raise ProblemError(
            f"No risk has a name that says what its losses are, but they are called "
            f"{', '.join(r.name for r in risks)}. Known are {', '.join(KNOWN)}."
        )
    truth, predicted = _read_predictions(labels, predictions)
    others = _references(reference)
    metrics = [*_metrics(named), *([] if free is None else [free.metric])]
    codes = meaning_of_codes(metrics, truth, [predicted, *others.values()], positive, abstain)
    given = _Given(truth, codes, groups, reference)
    _check_one_each(risks, groups, reference)
    result: dict[str, Array] = {}
    for risk in risks:
        known = meaning(risk.name)
        if known is not None:
            result[risk.name] = known.metric.losses(truth, predicted, codes)
        result |= given.beside(risk, known)
    if minimize is not None and free is not None:
        per_example = np.atleast_2d(free.metric.losses(truth, predicted, codes))
        # The statistic of the name alone: what is minimised has no limit.
        measured = Risk("losses", conditional=True, statistic=free.statistic or Mean())
        beside = given.beside(measured, free)
        values = value_of(measured, {"losses": per_example.astype(np.float64), **beside})
        result[minimize] = values if predicted.ndim == 2 else values[0]
    return result


def check_losses(
    problem: Problem | Risk | Iterable[Risk],
    losses: Mapping[str, npt.ArrayLike],
    labels: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    positive: int | None = None,
    abstain: int | None = None,
) -> None:
    """Refuse losses of one's own that are not what their risk's name says of the predictions.

    The usual mistake is to record hits where misses are expected: a recall of 0 would then be
    certified as one of 1. Risks of no known name are not looked at.

    Parameters
    ----------
    problem : Problem, Risk or iterable of Risk
        Whose losses to look at.
    losses : mapping of names to arrays of shape (m,) or (n, m)
        What is to be passed to a selection.
    labels : array of shape (m,)
        The true classes, as whole numbers or booleans.
    predictions : array of shape (m,) or (n, m)
        The predicted classes, of one configuration or of many.
    positive : int, optional
        The positive class, as in `losses_from_predictions`.
    abstain : int, optional
        The prediction that hands an example over. None: no prediction does.

    Raises
    ------
    LossError
        Where the losses of a risk differ from those that the predictions have.

    Examples
    --------
    >>> risk = Risk("recall", at_least=0.9)
    >>> check_losses(risk, {"recall": [0, np.nan, 1]}, [1, 0, 1], [1, 0, 0])
    """
    risks = [risk for risk in _asked(problem)[0] if meaning(risk.name) is not None]
    truth, predicted = _read_predictions(labels, predictions)
    codes = meaning_of_codes(_metrics(risks), truth, [predicted], positive, abstain)
    for risk in risks:
        if not isinstance(losses, Mapping) or risk.name not in losses:
            raise LossError(
                f"The losses of risk {risk.name!r} are to be checked, but they are not given. "
                f"Pass losses={{{risk.name!r}: array}}."
            )
        known = meaning(risk.name)
        assert known is not None
        expected = np.asarray(known.metric.losses(truth, predicted, codes), dtype=np.float64)
        compare(risk, numbers_of(f"losses of {risk.name!r}", losses[risk.name]), expected)


def compare(risk: Risk, given: FloatArray, expected: FloatArray) -> None:
    """Refuse losses of a named risk that differ from what the predictions say."""
    if given.shape != expected.shape:
        raise LossError(
            f"Risk {risk.name!r}: losses and predictions must have the same shape, but they have "
            f"{given.shape} and {expected.shape}. Give one loss for each prediction."
        )
    if np.array_equal(given, expected, equal_nan=True):
        return
    turned = " They are turned round." if turned_round(given, expected) else ""
    raise LossError(
        f"Risk {risk.name!r}: the losses that were given have a mean of {_mean(given)}, but by "
        f"the predictions it is {_mean(expected)}.{turned} The losses of {risk.name!r} are "
        f"{risk.loss_words}. Make them with losses_from_predictions."
    )


def turned_round(given: FloatArray, expected: FloatArray) -> bool:
    """Whether losses are the contrary of what is expected on most examples that count for both."""
    both = ~np.isnan(given) & ~np.isnan(expected)
    with np.errstate(over="ignore"):  # the mean of losses without measure is infinite
        apart = np.abs(given[both] - expected[both])
        return apart.size > 0 and float(apart.mean()) > 0.5


def _mean(losses: FloatArray) -> str:
    counted = losses[~np.isnan(losses)]
    if not counted.size:
        return "undefined"
    with np.errstate(over="ignore", invalid="ignore"):  # of losses without measure
        return f"{counted.mean():.4g} over {counted.size:,} losses"


def _asked(problem: Problem | Risk | Iterable[Risk]) -> tuple[tuple[Risk, ...], str | None]:
    """The risks that are asked about, and the free objective where a problem names one."""
    if isinstance(problem, Problem):
        return problem.risks, problem.minimize
    risks = (problem,) if isinstance(problem, Risk) else problem
    some: tuple[Any, ...] = (risks,)
    with suppress(TypeError):  # what cannot be iterated is no list of risks, and said to be none
        some = tuple(risks)
    if not some or not all(isinstance(risk, Risk) for risk in some):
        raise ProblemError(
            f"Losses are made for a Problem, a Risk or a list of them, but this is "
            f'{shown(problem)}. Write Risk("precision", at_least=0.9).'
        )
    return some, None


def _metrics(risks: Iterable[Risk]) -> list[Metric]:
    return [known.metric for risk in risks if (known := meaning(risk.name)) is not None]


def _check_one_each(risks: Iterable[Risk], groups: Beside, reference: Beside) -> None:
    """Refuse one array for what risks give different names: it cannot be all of them."""
    named = {
        "groups": {risk.groups for risk in risks if risk.needs_groups},
        "reference": {name for risk in risks if (name := risk.statistic.reference_name)},
    }
    for what, given in (("groups", groups), ("reference", reference)):
        if given is not None and not isinstance(given, Mapping) and len(named[what]) > 1:
            several = sorted(named[what])
            raise LossError(
                f"The risks speak of {' and '.join(map(repr, several))}, but {what} is one array, "
                f"and it is not said which of them it is. Give each by its name: "
                f"{what}={{{several[0]!r}: array, ...}}."
            )


def _read_predictions(
    labels: npt.ArrayLike, predictions: npt.ArrayLike
) -> tuple[IntArray, IntArray]:
    truth, predicted = class_codes("labels", labels), class_codes("predictions", predictions)
    if truth.ndim != 1 or predicted.ndim not in (1, 2) or predicted.shape[-1] != len(truth):
        raise LossError(
            f"Labels have shape (m,) and predictions (m,) or (configurations, m), but their shapes "
            f"are {truth.shape} and {predicted.shape}. Give one label and one prediction per "
            f"example."
        )
    if predicted.size == 0:
        raise LossError(
            f"Losses need examples and predictions, but there are none: the shapes are "
            f"{truth.shape} and {predicted.shape}. Give at least one label and one prediction."
        )
    return truth, predicted


def _references(reference: Beside) -> dict[str, IntArray]:
    """The predictions of references, by name; of one array under no name."""
    if reference is None:
        return {}
    by_name = reference if isinstance(reference, Mapping) else {"": reference}
    what = "predictions of the reference"
    odd = [name for name in by_name if not isinstance(name, str)]
    if odd:
        raise LossError(
            f"References are named by texts, but one name is {shown(odd[0])}. "
            f"Use the name that the risk's Difference gives it."
        )
    return {name: class_codes(what, values) for name, values in by_name.items()}


@dataclass(frozen=True)
class _Given:
    """What is known beside predictions: labels, what codes mean, groups, references."""

    truth: IntArray
    codes: Codes
    groups: Beside
    reference: Beside

    def beside(self, risk: Risk, known: Meaning | None) -> dict[str, Array]:
        """What a risk needs beside its losses, as far as it is known here."""
        result: dict[str, Array] = {}
        if risk.needs_groups and (known is not None or self._has(risk.groups)):
            result[risk.groups] = self._groups_of(risk.groups)
        within = risk.statistic.label_name
        by_name = isinstance(self.groups, Mapping) and within in self.groups
        if within is not None and (known is not None or by_name):
            result[within] = self._labels_of(within, known)
        name = risk.statistic.reference_name
        if name is not None and known is not None:
            result[name] = known.metric.losses(self.truth, self._reference_of(name), self.codes)
        return result

    def _has(self, name: str) -> bool:
        return name in self.groups if isinstance(self.groups, Mapping) else self.groups is not None

    def _labels_of(self, name: str, known: Meaning | None) -> Array:
        """The labels within which groups are compared: those given by name, or the true ones."""
        if isinstance(self.groups, Mapping) and name in self.groups:
            return self._groups_of(name)
        if known is None or name != "label":
            raise LossError(
                f"The labels {name!r} within which groups are compared are needed, but they are "
                f'not given. Pass them with the groups: groups={{..., "{name}": array}}; the true '
                f'labels are meant by within="label".'
            )
        if known.metric.needs_positive:
            return np.asarray(self.truth == self.codes.positive, dtype=np.int8)
        return self.truth

    def _groups_of(self, name: str) -> Array:
        found = self.groups.get(name) if isinstance(self.groups, Mapping) else self.groups
        if found is None:
            raise LossError(
                f"The groups {name!r} are needed, but they are not given. Pass the group of every "
                f'example: groups=array, or groups={{"{name}": array}}.'
            )
        array: Array = (
            _as_given(found)
            if isinstance(found, list | tuple)
            else plain_array(f"groups {name!r}", found)
        )
        if array.shape != self.truth.shape:
            raise LossError(
                f"There are {len(self.truth)} examples, but the groups {name!r} have shape "
                f"{array.shape}. Give every example its group."
            )
        return array

    def _reference_of(self, name: str) -> IntArray:
        several = isinstance(self.reference, Mapping)
        predicted = _references(self.reference).get(name if several else "")
        if predicted is None:
            raise LossError(
                f"The predictions of the reference {name!r} are needed, but they are not given. "
                f'Pass its prediction of every example: reference=array, or {{"{name}": array}}.'
            )
        if predicted.shape != self.truth.shape:
            raise LossError(
                f"There are {len(self.truth)} examples, but the predictions of the reference "
                f"{name!r} have shape {predicted.shape}. Predict the same examples."
            )
        return predicted


def _as_given(values: Sequence[Any]) -> Array:
    """A list as an array; of mixed values every one is kept, where numpy would make 1 and "1" the
    same text."""
    kinds = {type(value) for value in values}
    if kinds == {bool} or (kinds == {str} and not any("\0" in value for value in values)):
        return np.array(values)
    if kinds == {int} and all(abs(value) < LARGEST_CODE for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array
