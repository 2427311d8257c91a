"""What a study knows of an earlier one with the same parameters: validation results, no more."""

import warnings
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution

from riskpilot.common import (
    Shape,
    ShapeError,
    anything,
    digest,
    digest_of,
    list_of,
    mapping_of,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import StudyError, shown
from riskpilot.losses import Sketch
from riskpilot.search import (
    Observations,
    Surrogate,
    cut_at,
    fit_model,
    penalised,
    without_penalties,
)
from riskpilot.study.kept.attributes import as_written, attributes_of, changed
from riskpilot.study.kept.stored_space import space_from_json
from riskpilot.study.space import Space, range_in_words

EARLIER_KEY = "riskpilot:earlier"
# Values are alike that differ by at most this share of what they differ by between evaluations.
_ALIKE = 0.3
# Risks contradict an earlier study that miss what it foretells by more than this share of what they
# differ by in the study at hand, and this share of what they differed by in the earlier one.
_CONTRARY, _LEEWAY = 0.4, 0.1

_SHAPES: dict[str, Shape] = {
    "study": text,
    "space": mapping_of(anything),
    "configs": list_of(mapping_of(anything)),
    "first": list_of(mapping_of(anything)),
    "values": list_of(list_of(real)),
    "variances": list_of(list_of(optional(real))),
    "digests": mapping_of(list_of(digest)),
    "ids": optional(record(id=text, sha256=digest)),
    "digest": digest,
}
_SKETCH = record(n=whole(1), k=whole(1), in_order=optional(digest), patterns=text)
# What not every study has: of one with races, sketches are kept of the evaluations that were ended,
# and of one in which evaluations gave no result, where that was.
_IF_ANY: dict[str, Shape] = {
    "evaluated": mapping_of(list_of(_SKETCH)),
    "failed": list_of(mapping_of(anything)),
}


@dataclass(frozen=True)
class Earlier:
    """The validation results of an earlier study.

    ``study``: its name; ``space``: its parameters; ``configs``: n configurations, with their
    ``values``, (n, c + 1), and the ``variances`` of their noise, NaN where it is not known;
    ``first``: those to be tried first, as long as the earlier study is not seen to mislead;
    ``digests``: those of their validation losses, by risk, and of the studies that it was itself
    started from; ``ids``: where the ids of the validation examples of all these are, if known;
    ``evaluated``: what is kept of evaluations that races ended, by risk; ``failed``: the
    configurations of evaluations that gave no result.
    """

    study: str
    space: Mapping[str, BaseDistribution]
    configs: Sequence[Mapping[str, Any]]
    first: Sequence[Mapping[str, Any]]
    values: FloatArray
    variances: FloatArray
    digests: Mapping[str, Collection[str]]
    ids: Mapping[str, str] | None
    evaluated: Mapping[str, Sequence[Sketch]]
    failed: Sequence[Mapping[str, Any]]

    @cached_property
    def points(self) -> FloatArray:
        """Unit coordinates of the configurations, NaN where a parameter is not active, (n, d)."""
        space = Space(self.space)
        return np.array([space.point(config) for config in self.configs])

    @property
    def points_with_results(self) -> FloatArray:
        """The points at which an evaluation gave a result that is no penalty, (n', d)."""
        return self.points[~self._penalised]

    @cached_property
    def failed_points(self) -> FloatArray:
        """The points at which an evaluation gave no result, or a penalty, (f, d)."""
        space = Space(self.space)
        failed = [space.point(config) for config in self.failed]
        return np.vstack([self.points[self._penalised], *failed])

    @cached_property
    def surrogates(self) -> tuple[Surrogate, ...]:
        """One surrogate for each objective of the earlier study."""
        x = Space(self.space).encode(self.points)
        seen = Observations(
            x,
            without_penalties(self.values),
            self.variances,
            np.empty((0, x.shape[1])),
            penalised=self._penalised if self._penalised.any() else None,
        )
        fitted = fit_model(seen, misfit=True).surrogates
        return tuple(each for each in fitted if isinstance(each, Surrogate))

    def agrees_with(self, points: FloatArray, values: FloatArray) -> bool:
        """Tell whether evaluations are about as the earlier study foretells them.

        ``points``: their unit coordinates, (n, d); ``values``: their objectives, (n, c + 1). Where
        the earlier study evaluated the same configuration, it is enough that its own values are
        alike: a surrogate smooths what rises steeply, and may be wrong about the place itself.
        """
        before, gaps = self._gaps(points, values)
        spread = np.maximum(np.ptp(before, axis=0), 1e-12)
        return bool((gaps <= _ALIKE * spread).all())

    def is_contradicted_by(self, points: FloatArray, values: FloatArray) -> bool:
        """Tell whether risks are far from what the earlier study foretells, beside their spread.

        The arguments are those of `agrees_with`. Where risks rise twice as fast as in the earlier
        study, or half as fast, the two agree at the safe configuration and near it. Misses show it
        beside the spread of the evaluations themselves, which may be small at first. Free
        objectives are not asked: that of a run that failed tells nothing about the earlier study.
        """
        before, gaps = self._gaps(points, values)
        allowed = _CONTRARY * np.ptp(values, axis=0) + _LEEWAY * np.ptp(before, axis=0)
        return bool((gaps > np.maximum(allowed, 1e-12))[:, :-1].any())

    def _gaps(self, points: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute by how much evaluations miss what is foretold, (n, c + 1), as `agrees_with` does.

        The earlier values come first, (m, c + 1), with penalties cut off.
        """
        x = Space(self.space).encode(points)
        expected = np.column_stack([surrogate.mean(x) for surrogate in self.surrogates])
        line = float(self.values[~self._penalised, -1].max())
        before = cut_at(self.values, line)
        now = cut_at(values, line) if self._penalised.any() else values
        gaps = np.abs(now - expected)
        for row, point in enumerate(points):
            same = np.isclose(self.points, point, rtol=0, atol=1e-9, equal_nan=True).all(axis=1)
            own = np.abs(now[row] - before[same])
            gaps[row] = np.vstack([gaps[row], own]).min(axis=0)
        return before, gaps

    @cached_property
    def _penalised(self) -> BoolArray:
        """Which of the free objectives are penalties, (n,)."""
        return penalised(self.values)

    def check_space(self, space: Mapping[str, BaseDistribution], *, finished: bool = False) -> None:
        """Refuse parameters that the earlier study has not, or has with another range.

        ``finished``: whether these are all parameters that finished trials have had.
        """
        if finished:
            self._warn_of_missing(space)
        for name, distribution in space.items():
            before = self.space.get(name)
            if before is None:
                raise StudyError(
                    f"warm_start takes a study with the same parameters, but {name!r} is new: "
                    f"those of {self.study!r} are {shown(sorted(self.space))[1:-1]}. Make a study "
                    f"without warm_start, or leave the parameter as it was."
                )
            if before != distribution:
                raise StudyError(
                    f"warm_start takes a study with the same parameters, but {name!r} takes "
                    f"{range_in_words(distribution)} here and {range_in_words(before)} in "
                    f"{self.study!r}. Make a study without warm_start, or give the parameter the "
                    f"range that it had."
                )

    def _warn_of_missing(self, space: Mapping[str, BaseDistribution]) -> None:
        """Say which parameters of all earlier trials no finished trial has had so far.

        The trials may be of another branch of the search space, or the parameter is gone.
        """
        always = [name for name in self.space if all(name in config for config in self.configs)]
        missing = [name for name in always if name not in space]
        if space and missing:
            warnings.warn(
                f"warm_start takes a study with the same parameters, but no finished trial has "
                f"{missing[0]!r}, which all trials of {self.study!r} had. What was best there may "
                f"not be best without it: make a study without warm_start, or suggest it.",
                UserWarning,
                stacklevel=2,
            )


_known: weakref.WeakKeyDictionary[optuna.Study, Earlier | None] = weakref.WeakKeyDictionary()


def earlier_of(study: optuna.Study) -> Earlier | None:
    """Read what a study knows of an earlier one; None where it was not started from one.

    It is written when the study is made and never changes, so that it is read once.
    """
    if study not in _known:
        _known[study] = _read(study)
    return _known[study]


def _read(study: optuna.Study) -> Earlier | None:
    """Read what a study keeps of an earlier one."""
    stored = attributes_of(study).get(EARLIER_KEY)
    if stored is None:
        return None
    try:
        more = {name: shape for name, shape in _IF_ANY.items() if name in stored}
        content = as_written(stored, record(**_SHAPES, **more))
        content["space"] = space_from_json(content["space"])
        content["evaluated"] = {
            name: [_sketch_from_json(one) for one in found]
            for name, found in content.get("evaluated", {}).items()
        }
        content.setdefault("failed", [])
    except (ShapeError, LookupError, TypeError, ValueError) as error:
        raise changed(study, "warm start", error) from error
    values = np.array(content["values"], dtype=np.float64)
    variances = np.array(content["variances"], dtype=np.float64)
    digests = {name: dict.fromkeys(found) for name, found in content["digests"].items()}
    return Earlier(**{**content, "values": values, "variances": variances, "digests": digests})


def sketch_to_json(sketch: Sketch) -> dict[str, Any]:
    """Write a sketch as plain values."""
    return {
        "n": sketch.n_evaluated,
        "k": sketch.n_examples,
        "in_order": sketch.in_order,
        "patterns": sketch.patterns.astype(">u4").tobytes().hex(),
    }


def _sketch_from_json(data: Mapping[str, Any]) -> Sketch:
    """Read a sketch that `sketch_to_json` wrote."""
    patterns = np.frombuffer(bytes.fromhex(data["patterns"]), dtype=">u4").astype(np.uint32)
    return Sketch(data["n"], data["k"], data["in_order"], patterns)


def copy_earlier(study: optuna.Study, copy: optuna.Study) -> None:
    """Let a new study know of the same earlier one."""
    stored = attributes_of(study).get(EARLIER_KEY)
    if stored is not None:
        copy.set_user_attr(EARLIER_KEY, stored)


def write_earlier(study: optuna.Study, content: dict[str, Any]) -> None:
    """Store what a new study is to know of an earlier one."""
    study.set_user_attr(EARLIER_KEY, {**content, "digest": digest_of(content)})
