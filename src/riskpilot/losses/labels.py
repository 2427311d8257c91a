"""Losses of labels that arrive one after another: checked batch by batch, kept in their order."""

from collections.abc import Mapping, Sequence

import numpy as np

from riskpilot.common import Array, FloatArray, IntArray
from riskpilot.errors import LossError, type_in_words
from riskpilot.losses.beside import (
    digest_of_bytes,
    digest_of_numbers,
    one_per_example,
    read_numbers,
    read_weights,
)
from riskpilot.losses.evaluation import LossMapping, check_names
from riskpilot.losses.intake import in_double, number_array
from riskpilot.losses.ranges import as_given, in_range, to_unit
from riskpilot.losses.texts import text_array
from riskpilot.problem import Problem, Risk, check_scale
from riskpilot.statistics import Grouped, GroupName, Labels, name_in_words

_SPLIT = "labels"

LabelTable = dict[str, Array]
"""Losses of some candidates, shape (candidates, b) in double precision, and what stands beside
them, shape (b,): numbers in double precision, names of groups as texts. Scores of a judge stand
under `score_name`, and the ids of examples under `IDS`."""

# Names of quantities hold no tab, so that none can be one of these.
IDS = "ids\t"
_SCORES = "judge\t"


def score_name(risk: str) -> str:
    """Return the name under which a table of labels holds a judge's scores for a risk."""
    return f"{_SCORES}{risk}"


def parted(table: Mapping[str, Array]) -> tuple[LabelTable, dict[str, LabelTable] | None]:
    """Part a table that was kept into losses with what stands beside them, and a judge's scores of
    the same labels, in the forms in which both are given."""
    scores = {
        name.removeprefix(_SCORES): values
        for name, values in table.items()
        if name.startswith(_SCORES)
    }
    losses = {
        name: values
        for name, values in table.items()
        if name != IDS and not name.startswith(_SCORES)
    }
    return losses, {"labelled": scores} if scores else None


def read_label_table(
    problem: Problem,
    given: LossMapping,
    groups: Mapping[str, Sequence[GroupName]],
    n_rows: int | None = None,
    rows: Sequence[int] | None = None,
    most: int | None = None,
) -> LabelTable:
    """Check the losses of candidates at the next labels, and bring them into one form.

    ``groups``: by risk, the groups that the plan is about. A batch need not have members of each.
    ``n_rows``: how many rows there must be; ``rows``: those that are looked at, all by default;
    ``most``: how many labels are looked at.
    """
    if not isinstance(given, Mapping):
        raise LossError(
            f"{_SPLIT} must map names to losses, but they are {type_in_words(given)}. "
            f'Write {{"{problem.names[0]}": array of shape (candidates, labels)}}.'
        )
    check_names(given, _SPLIT)
    known = {*problem.names, *problem.beside}
    unknown = sorted(set(given) - known - {problem.minimize})
    if unknown:
        raise LossError(
            f"{_SPLIT}: {unknown[0]!r} is neither a risk nor what stands beside one. The problem "
            f"knows {', '.join(sorted(known))}; rename or remove it."
        )
    missing = [name for name in problem.names if name not in given]
    if missing:
        raise LossError(
            f"{_SPLIT}: the losses of {missing[0]!r} are missing; got {sorted(map(str, given))}. "
            f"Every risk needs its losses of the same labels."
        )
    table: LabelTable = {}
    m: int | None = None
    for risk in problem.risks:
        array = _rows_of_labels(risk, given, n_rows)
        if array.shape[1] != (m := array.shape[1] if m is None else m):
            raise LossError(
                f"{_SPLIT}: every risk needs the losses of the same labels, but {risk.name!r} has "
                f"{array.shape[1]} and {problem.names[0]!r} {m}. For a risk that counts only some "
                f"examples, use NaN and Risk(..., conditional=True)."
            )
        chosen = array[slice(None) if rows is None else list(rows), :most]
        table[risk.name] = _losses(risk, chosen)
        _read_beside(risk, given, m, groups, table)
    return table


def labels_of(risk: Risk, table: LabelTable, groups: Sequence[GroupName] | None) -> Labels:
    """What a statistic reads of some labels; ``groups``: those that count, in their order."""
    own: FloatArray = table[risk.name]
    reference = risk.statistic.reference_name
    if reference is not None:
        own = _differences(risk, own, table[reference])
    weights = None
    if risk.weights is not None and risk.largest_weight is not None:
        weights = np.asarray(table[risk.weights] / risk.largest_weight)
    given = table.get(score_name(risk.name))
    scores = None if given is None else to_unit(given, risk)
    codes = _codes(risk, table, groups)
    return Labels(own, to_unit(own, risk), risk.span[0], codes, weights, scores)


def digest_of_labels(problem: Problem, table: LabelTable) -> str:
    """The digest of losses, and of what stands beside them, in the order of the labels."""
    parts = [
        _digest(name, table[name]) for name in (*problem.names, *problem.beside) if name in table
    ]
    return digest_of_bytes(*parts).hex()


def some_labels(
    problem: Problem, table: Mapping[str, Array], rows: Sequence[int], columns: slice
) -> LabelTable:
    """Take some candidates, and some labels, from a table of losses."""
    known = {*problem.names, *problem.beside, *map(score_name, problem.names)}
    return {
        name: np.asarray(values)[..., columns]
        if name in problem.beside and np.ndim(values) == 1
        else np.asarray(values)[list(rows)][:, columns]
        for name, values in table.items()
        if name in known
    }


def _rows_of_labels(risk: Risk, given: LossMapping, n_rows: int | None) -> Array:
    """The losses of one risk as an array of the right shape; those of rows that are not looked at
    may be anything."""
    what = f"{_SPLIT}: the losses of {risk.name!r}"
    array = number_array(given[risk.name], what, missing_as_nan=True)
    if array.ndim != 2 or n_rows not in (None, len(array)):
        each = "each candidate" if n_rows is None else f"each of the {n_rows} candidates"
        raise LossError(
            f"{what} need one row for {each} and one column for each label, but their shape is "
            f"{array.shape}. Give an array of shape ({n_rows or 'candidates'}, labels)."
        )
    if array.size == 0:
        raise LossError(f"{what} are empty, shape {array.shape}. Give at least one label.")
    return array


def _losses(risk: Risk, array: Array) -> FloatArray:
    """The losses of one risk in double precision, in their range."""
    check_scale(risk)
    losses = in_range(risk, array, _SPLIT)
    return losses if risk.statistic.reference_name is not None else as_given(risk, array)


def _differences(risk: Risk, losses: FloatArray, reference: FloatArray) -> FloatArray:
    """Losses less those of the reference; an example counts for both sides or for none."""
    if risk.conditional and (np.isnan(losses) != np.isnan(reference)).any():
        raise LossError(
            f"{_SPLIT}: the losses of {risk.name!r} and those of the reference must count for the "
            f"same examples, but for some only one of the two is NaN. No test is known here for "
            f"the difference of two rates that are taken over different examples: limit each of "
            f"them on its own."
        )
    return np.asarray(losses - reference)


def _read_beside(
    risk: Risk,
    given: LossMapping,
    m: int,
    groups: Mapping[str, Sequence[GroupName]],
    table: LabelTable,
) -> None:
    """Check what stands beside the losses of a risk, and put it into the table.

    ``m``: how many labels are given, of which the table may hold fewer.
    """
    most = table[risk.name].shape[1]
    reference = risk.statistic.reference_name
    if reference is not None:
        numbers = read_numbers(risk, given, reference, "losses of the reference", m, _SPLIT)
        table[reference] = in_range(risk, numbers[:most], _SPLIT)
        _differences(risk, table[risk.name], table[reference])
    if risk.weights is not None:
        read_weights(risk, given, m, _SPLIT)
        weights = read_numbers(risk, given, risk.weights, "weights", m, _SPLIT)
        assert risk.largest_weight is not None
        table[risk.weights] = in_double(weights[:most], risk.largest_weight)
    if risk.needs_groups:
        where = f"{_SPLIT}: the groups {risk.groups!r} of {risk.name!r}"
        if risk.groups not in given:
            raise LossError(
                f"{where} are missing. Pass one group per label beside the losses: "
                f'{{"{risk.name}": losses, "{risk.groups}": array}}.'
            )
        texts = text_array(given[risk.groups], where)
        table[risk.groups] = one_per_example(texts, "group", m, where)[:most]
        _codes(risk, table, groups[risk.name])


def _codes(risk: Risk, table: LabelTable, groups: Sequence[GroupName] | None) -> IntArray | None:
    """The position of each label's group among those of the plan; -1 where it does not count."""
    if not risk.needs_groups or groups is None:
        return None
    assert isinstance(risk.statistic, Grouped)
    place = {name: i for i, name in enumerate(groups)}
    texts = table[risk.groups].tolist()
    odd = next((text for text in texts if text not in place), None)
    if odd is not None and risk.statistic.groups is None:
        raise LossError(
            f"{_SPLIT}: the groups {risk.groups!r} of {risk.name!r} must be those that validation "
            f"data has, but one is {name_in_words(odd)}. Bring validation examples of it, or name "
            f"the groups that count: groups=(...) of the statistic."
        )
    return np.array([place.get(text, -1) for text in texts], dtype=np.int64)


def _digest(name: str, values: Array) -> bytes:
    """The digest of one array of a table, with its name and shape."""
    head = f"{name}:{values.shape}".encode()
    if values.dtype.kind == "U":
        return digest_of_bytes(head, *(text.encode() for text in values.tolist()))
    return digest_of_bytes(head, digest_of_numbers(values))
