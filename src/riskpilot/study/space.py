"""A search space of Optuna distributions as a unit cube that surrogates understand.

A space may be a tree: some parameters are active under a condition alone. Where one is not active,
its coordinate is NaN.
"""

import contextlib
import itertools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from riskpilot.common import canonical, plain_configs
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import RiskpilotError, StudyError, shown
from riskpilot.search import default_pool_size
from riskpilot.study.branches import Branches, learned_branches

_ENUMERATE_UP_TO = 4096
_WHOLE = 10**9  # characters: a value is compared in full, however long
_END = 40  # characters: so much is shown of the end of a range


def n_values(distribution: BaseDistribution) -> float:
    """Count the values that a parameter can take; infinite for continuous ones."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.low == distribution.high:
        return 1
    if distribution.step is None:
        return math.inf
    return math.floor((distribution.high - distribution.low) / distribution.step + 1e-9) + 1


def pool_size(space: Mapping[str, BaseDistribution], *, at_least: int = 0) -> int:
    """Choose the size of the initial pool for the parameters that are known.

    ``at_least``: how many parameters there are at least, where others may not be known yet.
    """
    has_choices = any(isinstance(dist, CategoricalDistribution) for dist in space.values())
    return default_pool_size(max(len(space), at_least), has_choices=has_choices)


def range_in_words(distribution: BaseDistribution) -> str:
    """Say which values a parameter can take, with all digits of its ends."""
    if isinstance(distribution, CategoricalDistribution):
        return f"the choices {shown(list(distribution.choices))[1:-1]}"
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    is_int = isinstance(distribution, IntDistribution)
    kind, usual = ("whole numbers", 1) if is_int else ("numbers", None)
    step = f" in steps of {distribution.step}" if distribution.step != usual else ""
    scale = " on a logarithmic scale" if distribution.log else ""
    return f"{kind} from {distribution.low} to {distribution.high}{step}{scale}"


def to_unit(distribution: BaseDistribution, value: Any) -> float:
    """Find the place of a value in [0, 1]; a choice sits in the middle of its share."""
    if isinstance(distribution, CategoricalDistribution):
        index = distribution.to_internal_repr(value)
        return (index + 0.5) / len(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high, at = float(distribution.low), float(distribution.high), float(value)
    if low == high:
        return 0.5
    if distribution.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return min(max((at - low) / (high - low), 0.0), 1.0)


def from_unit(distribution: BaseDistribution, u: float) -> Any:
    """Find the allowed value nearest to a place in [0, 1]."""
    if isinstance(distribution, CategoricalDistribution):
        k = len(distribution.choices)
        return distribution.choices[min(int(u * k), k - 1)]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.low == distribution.high:  # whatever its step, which may be beyond all floats
        return distribution.low
    low, high = float(distribution.low), float(distribution.high)
    if distribution.log:
        value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    else:
        value = low + u * (high - low)
    if distribution.step is not None:
        value = low + round((value - low) / distribution.step) * distribution.step
    value = min(max(value, low), high)
    return round(value) if isinstance(distribution, IntDistribution) else value


def check_width(name: str, distribution: BaseDistribution) -> None:
    """Refuse a range with ends or a width beyond all numbers, in which nothing can be proposed."""
    if isinstance(distribution, FloatDistribution | IntDistribution):
        low, high = distribution.low, distribution.high
        check_ends(name, low, high)
        if not math.isfinite(float(high) - float(low)):
            raise StudyError(
                f"The range of a parameter is at most as wide as the largest number, but {name!r} "
                f"goes from {shown(low, _END)} to {shown(high, _END)}. Give it ends that values "
                f"can have, or log=True."
            )


def check_ends(name: str, low: Any, high: Any, kind: type[int] | type[float] = float) -> None:
    """Refuse an end of a range that is too large for a number of its kind, as Optuna keeps it."""
    if _is_beyond(low, kind) or _is_beyond(high, kind):
        raise StudyError(
            f"The ends of a range are numbers up to {sys.float_info.max:.1e}, the largest that "
            f"Optuna keeps, but {name!r} goes from {shown(low, _END)} to {shown(high, _END)}. "
            f"Give it ends that values can have, or suggest the logarithm of the value."
        )


def _is_beyond(value: Any, kind: type[int] | type[float] = float) -> bool:
    """Tell whether a value is too large for a float, or for what is made of it."""
    try:
        kind(float(value))
    except OverflowError:
        return True
    except (TypeError, ValueError):  # no number, which Optuna refuses
        return False
    return False


def check_choices(
    name: str, distribution: BaseDistribution, error: type[RiskpilotError] = StudyError
) -> None:
    """Refuse choices that are equal in Python yet not the same, such as 1, 1.0 and True.

    Optuna stores the first one that is equal to the choice that was evaluated, so that a
    certificate would name a configuration that nobody evaluated. Numbers that are too large for
    Optuna to compare are refused, too.
    """
    if not isinstance(distribution, CategoricalDistribution):
        return
    seen: dict[Any, Any] = {}
    for choice in distribution.choices:
        if isinstance(choice, Real) and _is_beyond(choice):  # Optuna could not compare it
            raise error(
                f"A choice that is a number is at most {sys.float_info.max:.1e}, the largest that "
                f"Optuna compares, but one of {name!r} is {shown(choice, _END)}. Give it as a text."
            )
        key = choice
        with contextlib.suppress(StudyError):  # what JSON cannot hold is compared as it is
            key = _hashable(plain_configs([{name: choice}], StudyError)[0][name])
        try:
            first = seen.setdefault(key, choice)
        except TypeError:  # not hashable, and refused by name once it is drawn
            continue
        if shown(first, _WHOLE) != shown(choice, _WHOLE):  # the same one may stand there twice
            raise error(
                f"The choices of {name!r} must differ in more than their type, but Optuna and a "
                f"certificate cannot tell {shown(first)} from {shown(choice)}: one would be stored "
                f"under the name of the other. Give them as texts, such as {str(first)[:80]!r}, or "
                f"as values that are not equal."
            )


def check_drawn(name: str, distribution: BaseDistribution, value: Any) -> None:
    """Refuse a value that Optuna stores as another one: True of a grid, where the choice is 1.

    A range that no search can go through is refused, whoever drew the value.
    """
    check_width(name, distribution)
    check_choices(name, distribution)
    if not isinstance(distribution, CategoricalDistribution):
        return
    stored = distribution.choices[int(distribution.to_internal_repr(value))]
    drawn, kept = plain_configs([{name: value}, {name: stored}], StudyError)
    if canonical(drawn) != canonical(kept):
        raise StudyError(
            f"The trial was evaluated with {name} = {shown(value)}, but Optuna stores the choice "
            f"{shown(stored)}, which is equal in Python and not the same. Give the sampler the "
            f"choice itself, {shown(stored)}."
        )


def _hashable(value: Any) -> Any:
    """Turn plain JSON values into what a dictionary takes as a key, equal where they are equal."""
    if isinstance(value, dict):
        return ("mapping", frozenset((key, _hashable(inner)) for key, inner in value.items()))
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Space:
    """Named distributions. Points are rows of unit coordinates, one column per parameter.

    ``branches``: which parameters are active where; None where all of them always are.
    """

    distributions: Mapping[str, BaseDistribution]
    branches: Branches | None = None

    def learned_from(self, points: FloatArray) -> "Space":
        """Return the space whose branches are those of evaluated points, in their order, (n, d)."""
        kinds = enumerate(self.distributions.values())
        parents = [column for column, dist in kinds if n_values(dist) < math.inf]
        return replace(self, branches=learned_branches(points, parents))

    def point(self, params: Mapping[str, Any]) -> FloatArray:
        """Compute the unit coordinates of a configuration, shape (d,)."""
        return np.array(
            [
                to_unit(dist, params[name]) if name in params else math.nan
                for name, dist in self.distributions.items()
            ]
        )

    def config(self, point: FloatArray) -> dict[str, Any]:
        """Find the configuration at unit coordinates, shape (d,)."""
        return {
            name: from_unit(dist, float(u))
            for (name, dist), u in zip(self.distributions.items(), point, strict=True)
            if not math.isnan(u)
        }

    def is_whole(self, params: Mapping[str, Any]) -> bool:
        """Tell whether a configuration has all the parameters that are active in it."""
        if self.branches is None:
            return self.distributions.keys() <= params.keys()
        point = self.point(params)[None]
        expected = ~np.isnan(self.branches.masked(np.nan_to_num(point, nan=0.5)))
        return bool((expected <= ~np.isnan(point)).all())

    def untried_choices(
        self, points: FloatArray, *, everywhere: bool = False
    ) -> dict[int, FloatArray]:
        """Find the choices that no point has, as coordinates by column.

        ``everywhere``: whether to look at all choices, or at those under a condition alone.
        """
        rules = {} if self.branches is None else self.branches.rules
        found = {
            i: np.setdiff1d(_places(dist, len(dist.choices)), points[:, i])
            for i, dist in enumerate(self.distributions.values())
            if (everywhere or i in rules) and isinstance(dist, CategoricalDistribution)
        }
        return {column: places for column, places in found.items() if len(places)}

    def cover(self, rng: np.random.Generator) -> FloatArray:
        """Make points that cover the space: all of a small discrete one, else Sobol points."""
        d = len(self.distributions)
        sizes = [n_values(dist) for dist in self.distributions.values()]
        if math.prod(sizes) <= _ENUMERATE_UP_TO:
            axes = [
                [to_unit(dist, from_unit(dist, u)) for u in _places(dist, int(size))]
                for dist, size in zip(self.distributions.values(), sizes, strict=True)
            ]
            return self._distinct(self.masked(np.array(list(itertools.product(*axes)))))
        if d == 1:
            return self.snap(np.linspace(0.0, 1.0, 1025)[:, None])
        # Only a search over such a space needs scipy.stats, which is slow to import.
        from scipy.stats import qmc

        sobol = qmc.Sobol(d, rng=rng).random_base2(11 if d <= 3 else 12)
        corners = np.array(list(itertools.product((0.0, 1.0), repeat=min(d, 6))))
        filled = np.where(rng.random((len(corners), d)) < 0.5, 0.0, 1.0)
        filled[:, : corners.shape[1]] = corners
        return self._distinct(self.snap(np.vstack([sobol, filled])))

    def between(self, a: FloatArray, b: FloatArray, share: float) -> FloatArray:
        """Compute the point that lies a share of the way from ``a`` to ``b``, shape (d,).

        Choices, what decides on branches, and parameters that ``a`` has not are those of ``b``.
        """
        fixed = np.isnan(a)
        for i, dist in enumerate(self.distributions.values()):
            is_choice = isinstance(dist, CategoricalDistribution)
            fixed[i] |= is_choice or (self.branches is not None and n_values(dist) < math.inf)
        point: FloatArray = self.snap(np.where(fixed, b, a + share * (b - a))[None])[0]
        return point

    def near(
        self, points: FloatArray, scale: float, n: int, rng: np.random.Generator, few: int
    ) -> FloatArray:
        """Draw ``n`` points around each of ``points``; choices are drawn anew now and then.

        Of many parameters about ``few`` move, so that what is good about the others is kept. Where
        a point moves to another branch, the parameters that become active are drawn anew.
        """
        d = len(self.distributions)
        centres = np.repeat(points, n, axis=0)
        steps = scale * rng.standard_normal(centres.shape)
        if d > few:
            stays = rng.random(centres.shape) >= few / d
            stays[np.arange(len(stays)), rng.integers(d, size=len(stays))] = False
            steps[stays] = 0.0
        moved = centres + steps
        for i, dist in enumerate(self.distributions.values()):
            if isinstance(dist, CategoricalDistribution):
                redraw = rng.random(len(moved)) < 1 / (d + 1)
                moved[:, i] = np.where(redraw, rng.random(len(moved)), centres[:, i])
        inactive = np.isnan(centres)
        moved[inactive] = rng.random(int(inactive.sum()))
        return self.snap(np.clip(moved, 0.0, 1.0))

    def snap(self, points: FloatArray) -> FloatArray:
        """Move coordinates to values that exist; those of inactive parameters become NaN."""
        snapped = points.copy()
        for i, dist in enumerate(self.distributions.values()):
            if n_values(dist) < math.inf:
                active = ~np.isnan(points[:, i])
                unique, where = np.unique(points[active, i], return_inverse=True)
                places = np.array([to_unit(dist, from_unit(dist, float(u))) for u in unique])
                snapped[active, i] = places[where]
        return self.masked(snapped)

    def encode(self, points: FloatArray) -> FloatArray:
        """Compute coordinates for the surrogate: each choice of a categorical becomes a column.

        A parameter that is not active stands in the middle, or has none of its choices, so that
        two configurations of one branch differ in their active parameters alone.
        """
        columns: list[FloatArray] = []
        for i, dist in enumerate(self.distributions.values()):
            inactive = np.isnan(points[:, i])
            if isinstance(dist, CategoricalDistribution):
                k = len(dist.choices)
                index = np.minimum((np.where(inactive, 0.0, points[:, i]) * k).astype(int), k - 1)
                chosen = np.where(inactive[:, None], 0.0, np.eye(k)[index])
                columns.extend(chosen.T / math.sqrt(2))  # two choices lie 1 apart
            else:
                columns.append(np.where(inactive, 0.5, points[:, i]))
        return np.column_stack(columns)

    def masked(self, points: FloatArray) -> FloatArray:
        """Set the coordinates of parameters that are not active to NaN."""
        return points if self.branches is None else self.branches.masked(points)

    def _distinct(self, points: FloatArray) -> FloatArray:
        """Leave out points of a tree that differ in parameters that are not active alone."""
        if self.branches is None:
            return points
        _, first = np.unique(with_numbers(points), axis=0, return_index=True)
        return points[np.sort(first)]


def with_numbers(points: FloatArray) -> FloatArray:
    """Put numbers outside [0, 1] where parameters are not active, for comparisons of places."""
    return np.nan_to_num(points, nan=-1.0)


def _places(distribution: BaseDistribution, size: int) -> FloatArray:
    """Return one place in [0, 1] for each value of a discrete parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return (np.arange(size) + 0.5) / size
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    step = distribution.step or 1
    return np.array([to_unit(distribution, distribution.low + i * step) for i in range(size)])
