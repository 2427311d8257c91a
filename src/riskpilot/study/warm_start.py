"""A study that is started from an earlier one: what is read of it, and what is tried first."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from riskpilot.common import plain_configs
from riskpilot.errors import StudyError, shown
from riskpilot.guarantee import non_dominated, region_of
from riskpilot.losses import digest_in_any_order, sketch_of_row, validation_losses
from riskpilot.problem import Problem
from riskpilot.search import best_rows, values_and_variances
from riskpilot.study.kept.attributes import problem_of, settings_of
from riskpilot.study.kept.earlier import earlier_of, sketch_to_json
from riskpilot.study.kept.foretold import foretold_of
from riskpilot.study.kept.records import record_of, validation_of
from riskpilot.study.kept.seen_ids import seen_ids
from riskpilot.study.kept.stored_space import space_as_json
from riskpilot.study.kept.trial_losses import read_validation
from riskpilot.study.kept.trials import (
    changing_ranges,
    failed,
    finished,
    n_calibration_of,
    space_of,
    trials_of,
)
from riskpilot.study.space import range_in_words

# So many evaluations of the earlier study are kept; those on its front come first.
_MOST = 100
# So many digests of validation losses are kept of the studies before it, the latest first.
_MOST_BEFORE = 200
# So many sketches are kept of evaluations that races ended, and of those of the studies before.
_MOST_SKETCHES = 20
# At most so many configurations that were best in the earlier study are tried first.
_MOST_FIRST = 4


def read_earlier(problem: Problem, earlier: object) -> dict[str, Any]:
    """Read what a new study may know of an earlier one, as `write_earlier` takes it.

    Only validation results are read. All but the ids of the examples are plain JSON values.
    """
    if not isinstance(earlier, optuna.Study):
        raise StudyError(
            f"warm_start is an earlier study of riskpilot's, but it is {shown(earlier)}. Load it: "
            f"riskpilot.load_study(storage=..., study_name=...)."
        )
    before = problem_of(earlier)
    if not problem.has_quantities_of(before):
        raise StudyError(
            f"warm_start takes a study of the same risks and the same free objective; limits may "
            f"differ. The earlier study has: {before} This one: {problem}"
            f"{_differing_settings(before, problem)}"
        )
    done = finished(earlier)
    for name, (one, another) in changing_ranges(done.trials).items():
        raise StudyError(
            f"warm_start takes a study whose parameters kept their ranges, but in "
            f"{earlier.study_name!r} {name!r} took {range_in_words(one)} in some trials and "
            f"{range_in_words(another)} in others. Leave warm_start out, or start from a study in "
            f"which it has one range."
        )
    space = space_of(done.trials)
    if len(done.trials) < 2 or not space:
        raise StudyError(
            f"warm_start learns from two or more finished trials with parameters, but the study "
            f"{earlier.study_name!r} has {len(done.trials)}. Leave warm_start out."
        )
    validation = validation_of(problem, done.records)
    values, variances = values_and_variances(validation)
    rows = np.lexsort([-np.arange(len(values)), ~non_dominated(values)])[:_MOST]
    configs = plain_configs(
        [{n: v for n, v in done.trials[row].params.items() if n in space} for row in rows],
        StudyError,
    )
    in_any_order = _in_any_order(earlier, before, [done.trials[row] for row in rows])
    known = [[None if np.isnan(value) else value for value in row] for row in variances[rows]]
    content = {
        "study": earlier.study_name,
        "space": space_as_json(space),
        "configs": list(configs),
        "values": values[rows].tolist(),
        "variances": [[None if v is None else float(v) for v in row] for row in known],
        "digests": {
            name: [
                *(losses.row_digests[row].hex() for row in rows),
                *in_any_order[name],
                *_before(earlier, name),
            ]
            for name, losses in validation.risks.items()
        },
        "ids": seen_ids(earlier),
        "first": [],
    }
    content |= _without_result(earlier, space)
    chosen = [done.trials[row] for row in rows]
    if problem.has_open_limits:
        return {**content, **_evaluated(earlier, before, chosen)}
    m = n_calibration_of(done.records, settings_of(earlier).get("n_calibration"))
    n_first = min(2 ** (len(space) - 1), _MOST_FIRST)  # more parameters, more ways to be good
    first = best_rows(values[rows], region_of(validation, m), n_first)
    # Those that are tried first come first: a later study is sure to have losses of theirs.
    chosen = [*(chosen[row] for row in first), *(t for i, t in enumerate(chosen) if i not in first)]
    content |= _evaluated(earlier, before, chosen)
    return {**content, "first": [configs[row] for row in first]}


def _without_result(earlier: optuna.Study, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Keep the configurations of the latest evaluations that gave no result; none if there is none.

    Those in which a parameter has another range say nothing.
    """
    found = [
        trial.params
        for trial in failed(trials_of(earlier))
        if all(space.get(name) == dist for name, dist in trial.distributions.items())
    ]
    return {"failed": list(plain_configs(found[-_MOST:], StudyError))} if found else {}


def _evaluated(
    earlier: optuna.Study, problem: Problem, trials: Sequence[FrozenTrial]
) -> dict[str, Any]:
    """Keep what tells the examples on which trials were evaluated that a race ended, by risk.

    Nothing is kept where neither the study nor one before it has such a trial.
    """
    known = earlier_of(earlier)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in problem.names}
    notes = [(trial, foretold_of(trial)) for trial in trials]
    for trial, note in [(t, note) for t, note in notes if note is not None][:_MOST_SKETCHES]:
        with suppress(StudyError):  # its losses may no longer be at hand
            losses = validation_losses(problem, read_validation(earlier, problem, trial))
            for name, part in losses.risks.items():
                found[name].append(sketch_to_json(sketch_of_row(part, note.n_evaluated)))
    for name, sketches in ({} if known is None else known.evaluated).items():
        found[name] += map(sketch_to_json, sketches[:_MOST_SKETCHES])
    return {"evaluated": found} if any(found.values()) else {}


def _differing_settings(before: Problem, now: Problem) -> str:
    """Say which settings of risks differ that a problem in words does not name, such as ranges."""
    if before.names != now.names:
        return ""
    found = [
        f"{key} of {old.name!r} was {shown(was)} and is {shown(new.to_dict()[key])}"
        for old, new in zip(before.risks, now.risks, strict=True)
        for key, was in old.to_dict().items()
        if key not in ("limit", "p_value") and new.to_dict()[key] != was
    ]
    return f" What differs: {'; '.join(found)}." if found else ""


def _in_any_order(
    earlier: optuna.Study, problem: Problem, trials: Sequence[FrozenTrial]
) -> dict[str, list[str]]:
    """Compute digests of validation losses in any order of the examples, by risk.

    The losses are read where some are not 0/1, which tell nothing without their order. Where they
    are no longer at hand, there are the digests of the trials' records alone.
    """
    found: dict[str, list[str]] = {name: [] for name in problem.names}
    for trial in trials:
        record = record_of(trial)
        assert record is not None
        if all(risk.binary for risk in record.risks.values()):
            continue
        try:
            losses = validation_losses(problem, read_validation(earlier, problem, trial))
        except StudyError:
            continue
        for name, part in losses.risks.items():
            digest = digest_in_any_order(part, 0)
            found[name] += [] if digest is None else [digest]
    return found


def _before(earlier: optuna.Study, name: str) -> list[str]:
    """Return the digests of losses of one risk by which the studies before an earlier one went."""
    before = earlier_of(earlier)
    return [] if before is None else list(before.digests[name])[:_MOST_BEFORE]
