"""Tables with one row per configuration and example, turned into one row per configuration."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.errors import LeakageError, LossError, TableError
from riskpilot.losses import is_missing, text_array

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

SPLITS = ("validation", "calibration")
NOT_LOSSES = ("split", "config", "example")


@dataclass(frozen=True)
class LossTable:
    """The losses of n configurations: risks of shape (n, k) and (n, m), others (n,) or (n, k).

    ``configs``: what the rows stand for, or None; ids of the examples where the file gives them.
    """

    validation: dict[str, Array]
    calibration: dict[str, Array]
    configs: tuple[dict[str, Any], ...] | None = None
    validation_ids: Array | None = None
    calibration_ids: Array | None = None

    def only(self, risks: Sequence[str], minimize: str) -> "LossTable":
        """The same table with the named quantities alone; the free objective where it is."""
        for split, losses in (("validation", self.validation), ("calibration", self.calibration)):
            wanted = [*risks, minimize] if split == "validation" else risks
            missing = [name for name in wanted if name not in losses]
            if missing:
                raise TableError(
                    f"The table has no {split} losses of {missing[0]!r}; it has "
                    f"{', '.join(sorted(losses))}. Name a quantity of the table, or add its losses."
                )
        kept = [*risks, minimize]
        return LossTable(
            {name: self.validation[name] for name in kept},
            {name: self.calibration[name] for name in kept if name in self.calibration},
            self.configs,
            self.validation_ids,
            self.calibration_ids,
        )


@dataclass(frozen=True)
class Labels:
    """A column of labels: the different ``values``, and for each row which of them it has."""

    values: Sequence[Any]
    codes: IntArray


@dataclass(frozen=True)
class LongTable:
    """The columns of a file: those of `NOT_LOSSES` that it has, its losses and the numbers beside
    them, shape (rows,), and the names beside them: groups, labels."""

    labels: Mapping[str, Labels]
    losses: Mapping[str, Array]
    names: Mapping[str, Labels] = field(default_factory=dict)


def tabulate(file: str, table: LongTable) -> LossTable:
    """Bring rows in any order to one row per configuration.

    Configurations are sorted by their parameters and examples by their ids, so that the order of
    the rows in the file changes nothing; examples without ids keep the order of the file.
    """
    _check_rows(file, table)
    configs, config_codes = _configs(file, table.labels["config"])
    which = _split_codes(file, table.labels["split"])
    example_labels = table.labels.get("example")
    examples = None if example_labels is None else _examples(file, example_labels)
    parts, ids = {}, {}
    for i, split in enumerate(SPLITS):
        rows = np.flatnonzero(which == i)
        if examples is None:
            _check_spelling(file, split, table.labels["config"], config_codes, rows)
        order, ids[split] = _rectangle(file, split, configs, config_codes, examples, rows)
        shaped = {name: column[order] for name, column in table.losses.items()}
        # A column that is empty throughout a split was not measured on it.
        parts[split] = {name: part for name, part in shaped.items() if not _is_empty(part)}
        for name, column in table.names.items():
            names = _names(file, name, column, order)
            parts[split] |= {} if names is None else {name: names}
    _check_ids(file, ids["validation"], ids["calibration"])
    return LossTable(
        parts["validation"],
        parts["calibration"],
        tuple(configs),
        ids["validation"],
        ids["calibration"],
    )


def _is_empty(part: Array) -> bool:
    return part.dtype.kind == "f" and bool(np.isnan(part).all())


def _names(file: str, name: str, column: Labels, order: IntArray) -> Array | None:
    """The names of the examples of a split, as the file has them, shape (m,); None where it has
    none."""
    codes = column.codes[order]
    differing = np.argwhere(codes != codes[0])
    if len(differing):
        row, place = differing[0]
        one, other = (column.values[codes[i, place]] for i in (0, row))
        raise TableError(
            f"{file!r}: {name!r} must be the same for every configuration, but one example has "
            f"{one!r} in one and {other!r} in another. Give every example one group and one label; "
            f"without a column example, list the examples of all configurations in one order."
        )
    values = [column.values[code] for code in codes[0]]
    if all(map(is_missing, values)):
        return None
    try:
        return text_array(values, f"{file!r}: the values of {name!r}")
    except LossError as error:
        raise TableError(str(error)) from error


def parse_config(label: Any) -> dict[str, Any]:
    """A configuration from the text of a JSON object; any other label stands for itself.

    >>> parse_config('{"threshold": 0.5}'), parse_config("large"), parse_config("0.5")
    ({'threshold': 0.5}, {'config': 'large'}, {'config': 0.5})
    """
    if not isinstance(label, str):
        return {"config": label}
    try:
        value = json.loads(label, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {"config": label}
    if isinstance(value, dict):
        return value
    return {"config": value if isinstance(value, int | float) else label}


def _refuse_constant(name: str) -> float:
    raise ValueError(name)  # NaN and Infinity are no JSON: such a text is a label


def check_header(file: str, names: Sequence[str]) -> None:
    """Refuse a file that lacks a column, or has one twice, before its losses are read."""
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise TableError(
            f"{file!r} has two columns named {twice!r}. Give every column a name of its own."
        )
    missing = [name for name in ("split", "config") if name not in names]
    if missing:
        raise TableError(
            f"{file!r} needs the columns split and config, and one per risk or objective, "
            f"separated by commas, but {missing[0]!r} is missing; it has "
            f"{', '.join(names) or 'none'}. Add it: split is validation or calibration, config a "
            f"JSON object or a label."
        )
    if set(names) <= set(NOT_LOSSES):
        raise TableError(
            f"{file!r} has no column of losses, only {', '.join(names)}. Add one column per risk "
            f"and one for the free objective."
        )


def _check_rows(file: str, table: LongTable) -> None:
    if not len(table.labels["split"].codes):
        raise TableError(
            f"{file!r} has columns but no rows. Give one row per configuration and example."
        )


def _configs(file: str, labels: Labels) -> tuple[list[dict[str, Any]], IntArray]:
    if any(value is None or not str(value).strip() for value in labels.values):
        raise TableError(
            f"{file!r}: every row needs its configuration, but a field of the column config is "
            f"empty. Write a JSON object or a label there."
        )
    parsed = [parse_config(value) for value in labels.values]
    texts = [json.dumps(config, sort_keys=True, default=str) for config in parsed]
    by_text = dict(zip(texts, parsed, strict=True))
    ranked = sorted(by_text, key=lambda text: _sort_key(by_text[text]))
    rank = {text: i for i, text in enumerate(ranked)}
    codes = np.array([rank[text] for text in texts], dtype=np.int64)[labels.codes]
    return [by_text[text] for text in ranked], codes


def _check_spelling(
    file: str, split: str, labels: Labels, config_codes: IntArray, rows: IntArray
) -> None:
    """Refuse one configuration under two names where examples have no ids: were they two, each
    example would count twice."""
    meant = np.zeros(len(labels.values), dtype=np.int64)
    meant[labels.codes] = config_codes
    first: dict[int, int] = {}
    for code in np.unique(labels.codes[rows]).tolist():
        other = first.setdefault(int(meant[code]), code)
        if other != code:
            raise TableError(
                f"{file!r}: a configuration has one name, but {labels.values[other]!r} and "
                f"{labels.values[code]!r} mean the same one and both have {split} rows. Write it "
                f"in one way; if they are two, give them labels that are no numbers."
            )


def _sort_key(config: Mapping[str, Any]) -> list[tuple[str, int, float, str]]:
    """Numbers by their size, before texts by their letters."""
    key = []
    for name in sorted(config):
        value = config[name]
        number = isinstance(value, int | float)
        key.append((name, int(not number), value if number else 0.0, "" if number else str(value)))
    return key


def _split_codes(file: str, labels: Labels) -> IntArray:
    """0 for validation, 1 for calibration."""
    names = [str(value).lower() for value in labels.values]
    unknown = [
        value for value, name in zip(labels.values, names, strict=True) if name not in SPLITS
    ]
    if unknown:
        raise TableError(
            f"{file!r}: split is either 'validation' or 'calibration', but a row has "
            f"{unknown[0]!r}. Rename it, or leave such rows out."
        )
    codes: IntArray = np.array([SPLITS.index(name) for name in names], dtype=np.int64)[labels.codes]
    for i, split in enumerate(SPLITS):
        if not (codes == i).any():
            raise TableError(
                f"{file!r} has no {split} rows. Both splits are needed: validation to choose what "
                f"is tested, calibration to test it."
            )
    return codes


def _examples(file: str, labels: Labels) -> Labels:
    """Ids in sorted order: by size where all are numbers, as text otherwise."""
    if any(value is None or not str(value).strip() for value in labels.values):
        raise TableError(
            f"{file!r}: some rows have no example id and others do. Give every row one, or leave "
            f"the column out."
        )
    texts = [str(value) for value in labels.values]
    try:
        sizes = [float(value) for value in labels.values]
        if not all(map(math.isfinite, sizes)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        sizes = [0.0] * len(texts)
    # "1" and "01" are two ids of one size.
    order = sorted(range(len(texts)), key=lambda i: (sizes[i], texts[i]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Labels([labels.values[i] for i in order], rank[labels.codes])


def _rectangle(
    file: str,
    split: str,
    configs: Sequence[dict[str, Any]],
    config_codes: IntArray,
    examples: Labels | None,
    rows: IntArray,
) -> tuple[IntArray, Array | None]:
    """Where in the file the losses of a split stand, shape (n, m), and the ids of the examples."""
    counts = np.bincount(config_codes[rows], minlength=len(configs))
    usual = int(np.bincount(counts).argmax())
    if (counts != counts[0]).any():
        odd = int(np.flatnonzero(counts != usual)[0])
        raise TableError(
            f"{file!r}: every configuration needs the same number of {split} examples, but "
            f"{configs[odd]} has {counts[odd]} and others have {usual}. Complete or remove it; "
            f"leave a loss empty where an example does not count."
        )
    if examples is None:
        order = rows[np.argsort(config_codes[rows], kind="stable")]
        return order.reshape(len(configs), -1), None
    keys = (examples.codes[rows], config_codes[rows])
    order = rows[np.lexsort(keys)].reshape(len(configs), -1)
    ids = examples.codes[order]
    repeated = np.argwhere(ids[:, 1:] == ids[:, :-1])
    if len(repeated):
        row, column = repeated[0]
        raise TableError(
            f"{file!r}: a configuration has one row per {split} example, but {configs[row]} has "
            f"two for example {examples.values[ids[row, column]]!r}. Remove one."
        )
    differing = np.argwhere(ids != ids[0])
    if len(differing):
        row, column = differing[0]
        raise TableError(
            f"{file!r}: every configuration needs the same {split} examples, but {configs[row]} "
            f"and {configs[0]} differ, as at example {examples.values[ids[row, column]]!r}. "
            f"Evaluate all of them on the same examples."
        )
    texts = np.array([str(value) for value in examples.values], dtype=np.object_)
    return order, texts[ids[0]]


def _check_ids(file: str, validation: Array | None, calibration: Array | None) -> None:
    if validation is None or calibration is None:
        return
    shared = np.intersect1d(validation, calibration)
    if len(shared):
        raise LeakageError(
            f"{file!r}: validation and calibration must not share examples, but {len(shared)} ids "
            f"occur in both, such as {str(shared[0])!r}. Remove them from one of the two; if "
            f"they are different examples that are counted from 0 in each split, give them ids of "
            f"their own, or leave the column example out."
        )
