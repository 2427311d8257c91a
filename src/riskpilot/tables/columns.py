"""Which columns of a table say what a row is about, and which of them hold losses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riskpilot.common import finite_number, how_many, is_name
from riskpilot.errors import ProblemError, TableError, shown, type_in_words
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Mean, WorstGroup

SPLITS = ("validation", "calibration")


@dataclass(frozen=True)
class Columns:
    """The columns that say which configuration, example and split a row is of.

    ``config``: the names of the columns that make up a configuration; the one column "config" holds
    JSON objects or labels. ``example``: the column of ids, or None where examples stand in the
    same order for every configuration. ``split``: the column that says validation or calibration,
    or the share of the examples that is drawn for validation. ``draw``: the seed of that draw.
    """

    config: tuple[str, ...] = ("config",)
    example: str | None = None
    split: str | float = "split"
    draw: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, each of which a table must have."""
        split = (self.split,) if isinstance(self.split, str) else ()
        example = () if self.example is None else (self.example,)
        return (*split, *self.config, *example)

    def to_dict(self) -> dict[str, Any]:
        """Write the columns in plain JSON values, for a certificate."""
        return {
            "kind": "rows",
            "config": list(self.config),
            "example": self.example,
            "split": self.split,
            "draw": self.draw,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Columns":
        """Read what `to_dict` wrote."""
        return cls(tuple(data["config"]), data["example"], data["split"], data["draw"])


@dataclass(frozen=True)
class Wanted:
    """The columns that are read beside those of `Columns`.

    ``losses``: numbers of every configuration and example; None for all columns that are nothing
    else. ``turned``: those of them whose losses are one minus what the column holds. ``texts`` and
    ``numbers``: what stands beside the losses and is the same for every configuration. ``free``:
    the one of the losses that is the free objective, which may be one number per configuration.
    """

    losses: tuple[str, ...] | None = None
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    turned: frozenset[str] = field(default_factory=frozenset)
    free: str | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """All that stands beside the losses."""
        return self.texts + self.numbers


def wanted_columns(problem: Problem) -> Wanted:
    """Name the columns that a problem needs of a table, where each holds what its name says."""
    turned = frozenset(risk.name for risk in problem.risks if _holds_good(risk))
    losses = (*problem.names, problem.minimize)
    return Wanted(losses, problem.labels, problem.numbers, turned, free=problem.minimize)


def _holds_good(risk: Risk) -> bool:
    """Say whether the column of a risk holds what is good, so that its losses are one minus it."""
    if not risk.losses_are_complement:
        return False
    if not isinstance(risk.statistic, Mean | WorstGroup):
        raise ProblemError(
            f"A column {risk.name!r} holds what its name says, which is better when larger, and "
            f"for {type_in_words(risk.statistic)} it is not plain how losses follow from it. "
            f"Write the losses, one minus it, into a column of their own and limit that."
        )
    return True


def named_columns(
    config: str | Sequence[str] = "config",
    example: str | None = None,
    split: str | float = "split",
    draw: int | None = None,
) -> Columns:
    """Check the names of columns as a user gives them."""
    names = (config,) if isinstance(config, str) else config
    if not isinstance(names, Sequence) or not names or not all(map(is_name, names)):
        raise TableError(
            f"config names the columns that make up a configuration, but it is {shown(config)}. "
            f'Write config=["model", "prompt"].'
        )
    if example is not None and not is_name(example):
        raise TableError(
            f"example names the column of the examples' ids, but it is {shown(example)}. "
            f'Write example="question_id".'
        )
    if isinstance(split, str) and not is_name(split):
        raise TableError(
            f"split names the column that says validation or calibration, but it is "
            f'{shown(split)}. Write split="split", or a share of the examples: split=0.5.'
        )
    share: str | float = split
    if not isinstance(split, str):
        number = finite_number(split)
        if number is None or not 0 < number < 1:
            raise TableError(
                f"split is the name of a column, or the share of the examples that is drawn for "
                f"validation, between 0 and 1, but it is {shown(split)}. Write split=0.5."
            )
        if example is None:
            raise TableError(
                "A split is drawn by example, but no column names the examples. Name it: "
                'example="question_id"; on the command line, --example question_id.'
            )
        share = number
    columns = Columns(tuple(names), example, share, draw)
    twice = next((name for name in columns.names if columns.names.count(name) > 1), None)
    if twice is not None:
        raise TableError(
            f"config, example and split name columns of their own, but {twice!r} is named twice. "
            f"Name each column once."
        )
    return columns


# How a user says which columns play the parts of a table of losses.
_TABLE_PARTS = "--config-columns, --example and --split, or config=, example= and split="


def check_columns(
    file: str,
    names: Sequence[str],
    columns: Columns,
    wanted: Wanted,
    parts: str | None = _TABLE_PARTS,
) -> tuple[str, ...]:
    """Refuse a table that lacks a column, or has one twice; return the names of its losses.

    ``parts``: how a user says which columns play the parts, for the message; None where nothing
    says it, because the columns have fixed names.
    """
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise TableError(
            f"{file!r} has two columns named {twice!r}. Give every column a name of its own."
        )
    missing = [name for name in columns.names if name not in names]
    if missing:
        named = "rename the one that plays its part"
        if parts is not None:
            named = f"say which columns play these parts: {parts}"
        raise TableError(
            f"{file!r} needs the columns {_listed(columns.names)}, and one per risk or objective, "
            f"but {missing[0]!r} is missing; it has {_listed(names)}. Add it, or {named}."
        )
    rest = tuple(name for name in names if name not in columns.names and name not in wanted.beside)
    if wanted.losses is None:
        if not rest:
            raise TableError(
                f"{file!r} has no column of losses, only {_listed(names)}. Add one column per risk "
                f"and one for the free objective."
            )
        return rest
    for name in (*wanted.losses, *wanted.beside):
        if name not in names:
            raise TableError(
                f"{file!r} has no column {name!r}; it has {_listed(names)}. Name a column of the "
                f"table, or add it."
            )
        if name in columns.names:
            raise TableError(
                f"{file!r}: the column {name!r} cannot hold losses, because it says which "
                f"configuration, example or split a row is of. Name another column."
            )
    return wanted.losses


def _listed(names: Sequence[str]) -> str:
    """Write names in the order of the file, of many the first ones."""
    shown_names = ", ".join(names[:20])
    more = f" and {how_many(len(names) - 20, 'other')}" if len(names) > 20 else ""
    return f"{shown_names}{more}" or "none"
