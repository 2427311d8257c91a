"""What a study keeps in its attributes: its problem, its settings, the ids of its examples."""

import secrets
import weakref
from collections.abc import Mapping
from typing import Any

import optuna

from riskpilot.common import (
    Shape,
    ShapeError,
    also,
    anything,
    digest,
    digest_of,
    integer,
    list_of,
    mapping_of,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.errors import LossError, RiskpilotError, StudyError, shown
from riskpilot.losses import ExampleIds
from riskpilot.problem import Problem

PROBLEM_KEY = "riskpilot:problem"
SETTINGS_KEY = "riskpilot:settings"
LEDGER_KEY = "riskpilot:ledger"
# With a question and a number behind it: where a batch of labels is that arrived for the question.
LABELS_KEY = "riskpilot:labels:"
ERROR_KEY = "riskpilot:error"
SAFE_KEY = "riskpilot:safe"
WATCH_KEY = "riskpilot:watch"
# With the number of a trial behind it: where calibration losses are that were made after the end of
# that trial. A finished trial takes no more attributes, so that the study keeps them.
CALIBRATION_KEY = "riskpilot:calibration:"
# With the name of a split behind it: the digest of the ids of its examples, as the first trial that
# had ids had them.
IDS_KEY = "riskpilot:ids:"
# The format in which a study keeps its problem and its settings; another one is not read.
STUDY_FORMAT = 2
_PROBLEM = record(risks=list_of(anything), minimize=text, delta=real, digest=digest)
_SETTINGS = also(
    record(
        format=integer,
        seed=whole(),
        n_calibration=optional(whole(1)),
        entropy=whole(),
        digest=digest,
    ),
    safe=mapping_of(anything),
)


def as_written(data: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Return stored values without their digest; `ShapeError` where they were changed."""
    shape(data, "")
    content = {name: value for name, value in data.items() if name != "digest"}
    try:
        found = digest_of(content)
    except (RecursionError, TypeError, ValueError):  # what JSON does not hold was never written
        found = None
    if found != data["digest"]:
        raise ShapeError("its digest does not match its content")
    return content


def require_study(study: object) -> None:
    """Refuse what is no study."""
    if not isinstance(study, optuna.Study):
        raise StudyError(
            f"A study made by riskpilot.create_study is needed, but this is {shown(study)}. "
            f"Load one from its storage: riskpilot.load_study(storage=...)."
        )


def problem_of(study: optuna.Study, otherwise: Problem | None = None) -> Problem:
    """Return the problem that travels with the study, or the other one where it carries none."""
    require_study(study)
    attributes = attributes_of(study)
    stored = attributes.get(PROBLEM_KEY)
    if stored is None and otherwise is not None:
        return otherwise
    if stored is None:
        raise StudyError(
            f"The study {study.study_name!r} carries no riskpilot problem. "
            f"Make studies with riskpilot.create_study(problem, ...)."
        )
    if not _settings(study, attributes):
        raise _other_format(study, None)
    last, problem = _problems.get(study, (None, None))
    if problem is not None and last == stored:
        return problem
    try:
        content = as_written(stored, _PROBLEM)
        problem = Problem.from_dict(content)
    except (ShapeError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise changed(study, "problem", error) from error
    _problems[study] = stored, problem
    return problem


# The problem of each study as it was read last: a search asks for it before every proposal.
_problems: weakref.WeakKeyDictionary[optuna.Study, tuple[Any, Problem]] = (
    weakref.WeakKeyDictionary()
)


def attributes_of(study: optuna.Study) -> dict[str, Any]:
    """Read the attributes of a study, or refuse a storage in which one of them is damaged."""
    try:
        return study.user_attrs
    except RiskpilotError:
        raise
    except (RecursionError, TypeError, ValueError) as error:
        raise changed(study, "attributes", error) from error


def changed(study: optuna.Study, what: str, reason: object) -> StudyError:
    """Make the error that says why what a study keeps cannot be used."""
    return StudyError(
        f"The {what} of the study {study.study_name!r} must be as riskpilot wrote it, but it "
        f"cannot be used: {reason}. The storage was changed from outside; restore it from a copy."
    )


def _other_format(study: optuna.Study, found: object) -> StudyError:
    """Make the error that says that a study is in a format that this version does not read."""
    return StudyError(
        f"A study must be in format {STUDY_FORMAT}, but the study {study.study_name!r} is in "
        f"format {shown(found)}. Read it with the version of riskpilot that wrote it."
    )


def write_problem(study: optuna.Study, problem: Problem) -> None:
    """Store the problem that travels with the study."""
    content = problem.to_dict()
    study.set_user_attr(PROBLEM_KEY, {**content, "digest": digest_of(content)})


def settings_of(study: optuna.Study) -> Mapping[str, Any]:
    """Return the stored settings of a study, or nothing where it has none.

    They are its format, the seed of its search, the stated number of calibration examples, the
    randomness that the order of bets is drawn from, and the safe configuration where one was named.
    """
    return _settings(study, attributes_of(study))


def stated_calibration(study: optuna.Study) -> int | None:
    """Return how many calibration examples a study was told of, None where it was not.

    Settings are written once, and a search asks before every proposal, so that they are kept.
    """
    if study not in _stated and (settings := settings_of(study)):
        _stated[study] = settings["n_calibration"]
    return _stated.get(study)


_stated: weakref.WeakKeyDictionary[optuna.Study, int | None] = weakref.WeakKeyDictionary()


def _settings(study: optuna.Study, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings among the attributes of a study, as they were written."""
    stored = attributes.get(SETTINGS_KEY)
    if stored is None:
        return {}
    found = stored.get("format") if isinstance(stored, Mapping) else None
    if found != STUDY_FORMAT:
        raise _other_format(study, found)
    try:
        return as_written(stored, _SETTINGS)
    except ShapeError as error:
        raise changed(study, "settings", error) from error


def write_settings(
    study: optuna.Study,
    seed: int,
    n_calibration: int | None,
    safe: Mapping[str, Any] | None = None,
) -> None:
    """Store the settings of a study."""
    settings: dict[str, Any] = {
        "format": STUDY_FORMAT,
        "seed": seed,
        "n_calibration": n_calibration,
        # Drawn once: it makes the order of bets random, and the same for the same question.
        "entropy": secrets.randbits(53),
    }
    if safe is not None:
        settings["safe"] = dict(safe)
    study.set_user_attr(SETTINGS_KEY, {**settings, "digest": digest_of(settings)})


def check_same_ids(study: optuna.Study, ids: ExampleIds) -> None:
    """Refuse a trial whose examples have other ids than those of the first trial that had ids."""
    if not ids.digests:
        return
    attributes = attributes_of(study)
    for split, found in ids.digests.items():
        if attributes.get(f"{IDS_KEY}{split}", found) != found:
            raise LossError(
                f"Every trial of a study is evaluated on the same {split} examples, in the same "
                f"order, but {split}_ids are not those of an earlier trial. Use one {split} set."
            )


def keep_ids(study: optuna.Study, ids: ExampleIds) -> None:
    """Keep the digests of the ids of a trial's examples, where no earlier trial had any."""
    if not ids.digests:
        return
    attributes = attributes_of(study)
    for split, found in ids.digests.items():
        if f"{IDS_KEY}{split}" not in attributes:
            study.set_user_attr(f"{IDS_KEY}{split}", found)
