"""Labels, predictions and groups become losses: no masks by hand, and no code that is guessed."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import Array, FloatArray, IntArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.losses.intake import is_missing
from riskpilot.losses.values import numbers_of, plain_array, value_of
from riskpilot.problem import KNOWN, Codes, Meaning, Metric, Problem, Risk, meaning
from riskpilot.statistics import Mean

Beside = npt.ArrayLike | Mapping[str, npt.ArrayLike] | None

_ABSTAIN_BY_HABIT = -1  # what many take for "handed over": refused until it is declared
_TWO_CLASSES = ({0, 1}, {-1, 1})  # codes of which 1 is the positive one
_LARGEST_CODE = 2**53  # a float does not tell larger whole numbers apart


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
    codes = _meaning_of_codes(metrics, truth, [predicted, *others.values()], positive, abstain)
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
    codes = _meaning_of_codes(_metrics(risks), truth, [predicted], positive, abstain)
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
    truth, predicted = _codes("labels", labels), _codes("predictions", predictions)
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
    return {name: _codes(what, values) for name, values in by_name.items()}


def _meaning_of_codes(
    metrics: Iterable[Metric],
    truth: IntArray,
    predictions: Iterable[IntArray],
    positive: int | None,
    abstain: int | None,
) -> Codes:
    """What the codes of classes mean: as declared, and refused where that leaves it open."""
    code = _declared_abstain(abstain, truth)
    known = set(np.unique(truth).tolist())
    seen: set[int] = set()
    for predicted in predictions:
        seen |= set(np.unique(predicted).tolist())
    if code is None and _ABSTAIN_BY_HABIT in seen - known:
        raise LossError(
            f"A prediction is {_ABSTAIN_BY_HABIT}, which no label is, and it is not declared "
            f"whether that hands the example over. Write abstain={_ABSTAIN_BY_HABIT} if it does; "
            f"if it is a class, count classes from 0 on."
        )
    needs = [metric for metric in metrics if metric.abstains]
    if needs and code is None:
        raise LossError(
            f"{needs[0].name!r} speaks of examples that are handed over, but it is not declared "
            f"which prediction does that. Write abstain={_ABSTAIN_BY_HABIT}, or whatever code it "
            f"is."
        )
    needs = [metric for metric in metrics if metric.needs_positive]
    if not needs:
        return Codes(abstain=code)
    return Codes(_declared_positive(positive, (known | seen) - {code}, needs[0].name), code)


def _declared_abstain(abstain: int | None, truth: IntArray) -> int | None:
    if abstain is None:
        return None
    if isinstance(abstain, bool | np.timedelta64) or not isinstance(abstain, int | np.integer):
        raise LossError(
            f"abstain is the code, a whole number, of predictions that hand an example over, but "
            f"it is {shown(abstain)}. Write abstain=-1, or leave it out where none does."
        )
    if bool((truth == abstain).any()):
        raise LossError(
            f"The code that hands an example over must not be a class, but abstain={abstain} "
            f"occurs among the labels. Choose another code, such as abstain=-99."
        )
    return int(abstain)


def _declared_positive(positive: int | None, classes: set[int | None], metric: str) -> int:
    """The positive class; a code that nothing has would make false alarms impossible."""
    if positive is None:
        if any(classes <= two for two in _TWO_CLASSES):
            return 1
        raise LossError(
            f"{metric!r} speaks of one positive class, and it is not declared which of the classes "
            f"{shown(sorted(map(str, classes)))} that is. Name it: positive=1."
        )
    whole = isinstance(positive, int | np.integer | np.bool_)
    if not whole or isinstance(positive, np.timedelta64):
        raise LossError(
            f"positive is the code of a class, a whole number, but it is {shown(positive)}. "
            f"Write positive=1."
        )
    code = int(positive)
    if code not in classes and not any(classes | {code} <= two for two in _TWO_CLASSES):
        raise LossError(
            f"The positive class must occur among labels or predictions, but {shown(code)} does "
            f"not; there are {shown(sorted(map(str, classes)))}. Name one of them."
        )
    return code


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
    if kinds == {int} and all(abs(value) < _LARGEST_CODE for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _missing_among(array: Array) -> list[Any]:
    """The values that say that there is none, such as NaN and None."""
    if array.dtype.kind == "f":
        return list(array[np.isnan(array)].tolist())
    if array.dtype.kind != "O":
        return []
    return [value for value in array.ravel().tolist() if is_missing(value)]


def _codes(what: str, values: npt.ArrayLike) -> IntArray:
    array = plain_array(what, values)
    missing = _missing_among(array)
    if missing:
        raise LossError(
            f"{what} are the class of every example, but {len(missing):,} of them are missing, "
            f"such as {shown(missing[0])}. Leave those examples out of labels and predictions."
        )
    whole = array.dtype.kind == "f" and bool((np.isfinite(array) & (array == np.rint(array))).all())
    if array.dtype.kind not in "biu" and not whole:
        raise LossError(
            f"{what} are classes as whole numbers or booleans, but their type is {array.dtype}. "
            f"Compare scores with a threshold first: scores >= 0.5; code names as numbers."
        )
    if array.size:
        smallest, largest = int(array.min()), int(array.max())
        if max(-smallest, largest) >= _LARGEST_CODE:
            raise LossError(
                f"{what} are codes of classes below 2^53, but they reach from {smallest} to "
                f"{largest}. Count classes from 0 on."
            )
    return np.asarray(array, dtype=np.int64)
