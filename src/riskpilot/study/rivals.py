"""What a trial in a race competes with: the whole evaluations of its study, on validation data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from riskpilot.common.arrays import Array, FloatArray
from riskpilot.guarantee import Interval
from riskpilot.losses import ValidationLosses, validation_losses
from riskpilot.problem import Problem
from riskpilot.search import (
    Guess,
    filled,
    foretold,
    foretold_number,
    is_known_well,
    is_odd_order,
    is_worth_finishing,
)
from riskpilot.statistics import Mean
from riskpilot.study.kept.attributes import SAFE_KEY, settings_of
from riskpilot.study.kept.foretold import Foretold, foretold_of
from riskpilot.study.kept.records import record_of, validation_of
from riskpilot.study.kept.stopped import Course, Stopped, course_of
from riskpilot.study.kept.trial_losses import read_validation
from riskpilot.study.kept.trials import finished_with_losses, n_calibration_of, trials_of
from riskpilot.study.sampler import steering_region
from riskpilot.study.space import to_unit

# So many of the nearest whole evaluations tell how the first examples differ from all of them.
_NEIGHBOURS = 4
# Losses that are foretold have a mean that lies above what is foretold by so many of its errors.
_CAUTION = 0.5


@dataclass(frozen=True)
class Rivals:
    """The whole evaluations that a trial competes with.

    ``n_examples``: how many validation examples they have, None where there is none; ``known``:
    their objectives, (n, c + 1); ``region``: what passes, empty where nothing can be judged. Of
    the r nearest: ``losses`` by name, (r, n_examples), and ``courses``, how a free objective that
    is a number went, with its last value.
    """

    n_examples: int | None = None
    known: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    region: Sequence[Interval] = ()
    losses: Mapping[str, FloatArray] = field(default_factory=dict)
    courses: Sequence[tuple[Course, float]] = ()
    has_safe: bool = True

    def judged(self, seen: ValidationLosses, free: Course | Array) -> Stopped | Foretold | None:
        """Judge a trial by what it showed so far; None while it goes on.

        ``seen``: its losses so far; ``free``: its free objective, by example or as a course. It is
        `Stopped` where it can no longer become the choice, and `Foretold` where enough is known.
        """
        n, k = seen.n_examples, self.n_examples
        assert k is not None
        if not self.region or any(is_odd_order(self.losses[name], n) for name in seen.risks):
            return None
        guesses = self._guesses(seen, free)
        # All k examples are a sample, too: what they show differs from the truth by this much.
        of_sample = np.append(seen.standard_errors[0], _or_zero(seen.free_error)) * math.sqrt(n / k)
        if not is_worth_finishing(guesses, self.known, self.region, has_safe=self.has_safe):
            errors = np.hypot([guess.error for guess in guesses], of_sample).tolist()
            known = [error if math.isfinite(error) else None for error in errors]
            return Stopped([guess.value for guess in guesses], known, n, k)
        if is_known_well(guesses, of_sample, self.known, n / k):
            return _noted(guesses, n, k)
        return None

    def foretold_from(self, seen: ValidationLosses, free: Course | Array) -> Foretold:
        """Foretell a trial from what it showed, however clear that is; the arguments of `judged`.

        A trial that was told that enough is known may end at a later block.
        """
        assert self.n_examples is not None
        return _noted(self._guesses(seen, self._known(free)), seen.n_examples, self.n_examples)

    def _guesses(self, seen: ValidationLosses, free: Course | Array) -> list[Guess]:
        """Foretell each risk, and behind them the free objective."""
        rows = {name: losses.rows([0])[0] for name, losses in seen.risks.items()}
        guesses = [foretold(row, self.losses[name]) for name, row in rows.items()]
        return [*guesses, self._free(seen.problem.minimize, free)]

    def completed(
        self, problem: Problem, seen: Mapping[str, Array], course: Course
    ) -> dict[str, Array]:
        """Complete the losses of the first examples with what is foretold of the others.

        Risks are filled in cautiously: of candidates that seem alike, the one of which more is
        known is tested first. Losses in single precision stay so: the end of a range such as 0.1
        is a larger number there.

        ``seen``: by name; ``course``: that of a free objective that is a number, else empty.
        """
        free = problem.minimize
        whole: dict[str, Array] = {
            name: filled(
                np.asarray(values, dtype=np.float64),
                self.losses[name],
                0.0 if name == free else _CAUTION,
            ).astype(values.dtype if values.dtype.kind == "f" else np.float64)
            for name, values in seen.items()
            if values.ndim
        }
        if course:
            whole[free] = np.array(self._free(free, self._known(course)).value)
        return whole

    def _known(self, free: Course | Array) -> Course | Array:
        """Leave the steps of a course out after the last one from which something is foretold.

        Neighbours may have had no number after so many examples. Losses by example stay as they
        are.
        """
        if not isinstance(free, list):
            return free
        for n_steps in range(len(free), 0, -1):
            if math.isfinite(self._free("", free[:n_steps]).error):
                return free[:n_steps]
        return free

    def _free(self, name: str, free: Course | Array) -> Guess:
        """Foretell the free objective from what it is on the first examples."""
        assert self.n_examples is not None
        if not isinstance(free, list):
            nothing = np.empty((0, self.n_examples))
            return foretold(np.asarray(free, dtype=np.float64), self.losses.get(name, nothing))
        n, value = free[-1]
        changes = [last - dict(course)[n] for course, last in self.courses if n in dict(course)]
        return foretold_number(value, np.array(changes))


def _noted(guesses: Sequence[Guess], n_evaluated: int, n_examples: int) -> Foretold:
    """Note what is foretold of all objectives."""
    values, errors = map(list, zip(*guesses, strict=True))
    return Foretold(values, errors, n_evaluated, n_examples)


def _or_zero(errors: FloatArray | None) -> float:
    """Return the standard error of one configuration, 0 for a number."""
    return 0.0 if errors is None else float(errors[0])


def rivals_of(study: optuna.Study, problem: Problem, trial: optuna.Trial) -> Rivals:
    """Collect what a running trial competes with.

    There is nothing to judge by for the safe configuration, before a trial is whole and has losses
    that differ, with open limits, where nothing can pass, and where a risk is no plain mean. Nor is
    there for a trial that has not named a parameter yet which all others have: the search would
    take what it showed for a branch without that parameter.
    """
    plain = all(risk.statistic == Mean() and risk.weights is None for risk in problem.risks)
    done = finished_with_losses(trials_of(study))
    records = [record for record in map(record_of, done) if record is not None]
    if not records:
        return Rivals()
    k, free = records[0].n_validation, problem.minimize
    has_all = frozenset.intersection(*(frozenset(other.params) for other in done)) <= (
        trial.params.keys()
    )
    if not (plain and has_all) or problem.has_open_limits or SAFE_KEY in trial.user_attrs:
        return Rivals(k)
    validation = validation_of(problem, records)
    n_calibration = n_calibration_of(records, settings_of(study).get("n_calibration"))
    region = steering_region(study, validation, n_calibration)
    if not all(part.feasible and part.noise > 0 for part in region):
        return Rivals(k)
    near = _nearest([other for other in done if foretold_of(other) is None], trial)
    tables = [read_validation(study, problem, other) for other in near]
    read = [validation_losses(problem, table) for table in tables]
    losses = {
        name: np.vstack([each.risks[name].rows([0]) for each in read]) for name in problem.names
    }
    if all(np.shape(table[free]) == (1, k) for table in tables):
        losses[free] = np.vstack([np.asarray(table[free], dtype=np.float64) for table in tables])
    courses = [
        (course_of(other), float(each.free[0])) for other, each in zip(near, read, strict=True)
    ]
    has_safe = any(SAFE_KEY in other.user_attrs for other in done)
    return Rivals(k, validation.objectives, region, losses, courses, has_safe)


def _nearest(done: Sequence[FrozenTrial], trial: optuna.Trial) -> list[FrozenTrial]:
    """Return the finished trials whose configurations are nearest; a missing parameter is far."""

    def distance(other: FrozenTrial) -> float:
        gaps = [
            to_unit(dist, trial.params[name]) - to_unit(dist, other.params[name])
            if other.distributions.get(name) == dist
            else 1.0
            for name, dist in trial.distributions.items()
        ]
        return sum(gap**2 for gap in gaps)

    return sorted(done, key=distance)[:_NEIGHBOURS]
