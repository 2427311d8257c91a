"""Selecting from a table: the losses of every configuration are already there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common import canonical, how_many, plain_configs
from riskpilot.errors import LossError, ProblemError, shown, type_in_words
from riskpilot.guarantee import (
    Background,
    Procedure,
    Question,
    check_procedure,
    config_of,
    fixed_sequence,
    freeze_plan,
    run_test,
)
from riskpilot.losses import (
    CalibrationLosses,
    JudgeMapping,
    LossMapping,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    check_fresh,
    check_memory,
    free_objective_alone,
    judged_risks,
    read_ids,
    read_judge,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.selection.file_ledger import enter, ledger_place
from riskpilot.selection.verdict import Selection, conclude


def select_from_losses(
    problem: Problem,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    configs: Sequence[Mapping[str, Any]] | None = None,
    procedure: Procedure = fixed_sequence,
    order: Sequence[int] | npt.NDArray[Any] | None = None,
    validation_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    calibration_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    seed: int = 0,
    judge: JudgeMapping | None = None,
    ledger: str | Path | None = None,
    n_evaluated: Sequence[int] | npt.NDArray[Any] | None = None,
) -> Selection:
    """Select among n configurations whose losses are all there (the paper's Algorithm 2).

    Validation losses decide which configurations are tested and in what order; only then are the
    calibration losses looked at.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective, and delta.
    validation : mapping of str to array
        Validation losses by name: risks of shape (n, k), the free objective of shape (n,) or
        (n, k). Groups, weights and references stand beside them under their own names.
    calibration : mapping of str to array
        Calibration losses by name: risks of shape (n, m). The free objective is not needed.
    configs : sequence of mappings, optional
        What the n rows stand for; their index by default.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.
    order : sequence of int, optional
        The rows from the safest to the riskiest, in an order that was known before any of these
        losses, such as that of thresholds. They are tested in this order, and ``validation`` needs
        only the free objective. Losses are then 0/1 where their name or their type says so:
        a metric that riskpilot knows, booleans, or whole numbers.
    validation_ids : sequence, optional
        The identities of the k validation examples: one for each, no two alike.
    calibration_ids : sequence, optional
        The identities of the m calibration examples likewise. Where both are given, they must not
        overlap.
    seed : int, default 0
        The order in which the betting test sees the calibration examples is drawn from the
        validation losses; another seed makes another draw.
    judge : mapping, optional
        Scores of a judge, such as a large model, that was fixed before the calibration labels were
        seen: ``{"labelled": {"error": (n, m)}, "unlabelled": {"error": (n, M)}}``, of the same m
        calibration examples and of M fresh ones, which are neither labelled nor validation
        examples, in the range of the losses. One row, or shape (m,) and (M,), where they are the
        same for all configurations. The ``"ids"`` of the fresh ones, shape (M,), may stand beside
        them. The promise stays one about the labels, whatever the judge is worth.
    ledger : str or Path, optional
        A file that counts the questions to these losses.
    n_evaluated : sequence of int, optional
        How many of the k validation examples were evaluated in each row, where a race ended some
        evaluations and foretold the other losses. It changes nothing but what the certificate and
        the report say.

    Returns
    -------
    Selection
        What was chosen, with its certificate; its ``config`` is None where nothing passed.

    Raises
    ------
    ProblemError
        If the problem or the seed cannot be used, or a limit is open.
    LossError
        If losses are missing, of the wrong shape or outside their range, or ``configs`` does not
        fit them or names one configuration twice.
    LeakageError
        If validation and calibration share examples, or a fresh example of the judge is of them.

    Examples
    --------
    >>> import numpy as np
    >>> from riskpilot import Problem, Risk
    >>> rng = np.random.default_rng(0)
    >>> error, cost = np.array([[0.05], [0.08], [0.3]]), np.array([3.0, 2.0, 1.0])
    >>> selection = select_from_losses(
    ...     Problem([Risk("error", limit=0.1)], minimize="cost"),
    ...     validation={"error": rng.random((3, 2000)) < error, "cost": cost},
    ...     calibration={"error": rng.random((3, 2000)) < error},
    ...     configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
    ... )
    >>> selection.config
    {'size': 'medium'}
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"select_from_losses takes a Problem first, but got {type_in_words(problem)}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    check_limits(problem)
    check_procedure(procedure)
    ids = read_ids(validation_ids, calibration_ids)
    seen = seen_losses(problem, validation, calibration, known_order=order is not None)
    names = named_configs(configs, seen.n_configs)
    known = None if order is None else checked_order(order, seen.n_configs)
    helped = judged_risks(problem, judge)
    plan = freeze_plan(seen, procedure=procedure, seed=seed, known_order=known, judged=helped)
    ended = checked_evaluated(n_evaluated, seen.n_configs, seen.n_examples)
    question = Question(problem, plan, procedure, names, evaluated=ended)
    check_memory(validation, calibration, problem.minimize)
    sealed = calibration_losses(problem, calibration)
    check_same_configs(seen, sealed)
    ids.check_size("calibration", sealed.n_examples)
    if seen.n_examples:
        ids.check_size("validation", seen.n_examples)
        check_disjoint(seen, sealed, ids=ids)
    scores = read_judge(problem, judge, seen.n_configs, sealed.n_examples)
    check_fresh(judge, validation, seen, ids)
    opened = sealed.digest(plan.order)
    place = ledger_place(ledger)
    use = None if place is None else enter(place, question, opened)
    result = run_test(question.plan, sealed, procedure, judge=scores)
    return conclude(question, seen, result, use, every_config(names, seen.n_configs))


def seen_losses(
    problem: Problem,
    validation: LossMapping,
    calibration: LossMapping,
    *,
    known_order: bool,
    largest: float | None = None,
) -> ValidationLosses:
    """Read validation losses; with a known order the free objective may be all that there is.

    ``largest``: the largest value of the free objective, where it is not what is taken today.
    """
    given = validation if isinstance(validation, Mapping) else {}
    alone = problem.minimize in given and not any(name in given for name in problem.names)
    if known_order and alone and isinstance(calibration, Mapping):
        return free_objective_alone(problem, validation, calibration, largest)
    return validation_losses(problem, validation, largest)


def checked_order(order: Any, n: int) -> tuple[int, ...]:
    """Check that an order names rows of the losses, each at most once."""
    rows = np.asarray(order) if isinstance(order, Sequence | np.ndarray) else np.zeros(0)
    if isinstance(order, str) or rows.ndim != 1 or rows.dtype.kind not in "iu" or not rows.size:
        raise LossError(
            f"order lists the rows of the losses from the safest to the riskiest, as whole "
            f"numbers, but it is {shown(order)}. Write order=range({n})."
        )
    if rows.min() < 0 or rows.max() >= n or len(np.unique(rows)) != len(rows):
        raise LossError(
            f"order names rows from 0 to {n - 1}, each at most once, but it is {shown(order)}. "
            f"Leave out what is named twice or is no row."
        )
    return tuple(map(int, rows))


def checked_evaluated(n_evaluated: Any, n: int, n_examples: int) -> dict[int, int]:
    """Find the rows that were evaluated on some of the examples alone, and on how many."""
    if n_evaluated is None:
        return {}
    given = isinstance(n_evaluated, Sequence | np.ndarray) and not isinstance(n_evaluated, str)
    numbers = np.asarray(n_evaluated if given else [], dtype=object)
    odd = bool | np.bool_ | np.timedelta64  # these are whole numbers to Python or NumPy
    whole = all(
        isinstance(one, int | np.integer) and not isinstance(one, odd) for one in numbers.flat
    )
    if not whole or numbers.shape != (n,) or not all(1 <= one <= n_examples for one in numbers):
        raise LossError(
            f"n_evaluated has a whole number from 1 to {n_examples} for each of the "
            f"{how_many(n, 'row')} of losses, but it is {shown(n_evaluated)}. Leave it out where "
            f"all examples were evaluated."
        )
    return {row: int(one) for row, one in enumerate(numbers) if one < n_examples}


def every_config(configs: Sequence[Mapping[str, Any]] | None, n: int) -> Background:
    """Make the background of a selection from a table: all of its configurations."""
    return Background([config_of(configs, row) for row in range(n)], range(n))


def check_same_configs(validation: ValidationLosses, calibration: CalibrationLosses) -> None:
    """Refuse calibration losses of another number of configurations."""
    if calibration.n_configs != validation.n_configs:
        raise LossError(
            f"Validation has {how_many(validation.n_configs, 'configuration')} and calibration "
            f"{calibration.n_configs}. Row i of both must belong to the same configuration."
        )


def check_limits(problem: Problem) -> None:
    """Refuse to open calibration data while a limit is open."""
    for risk in problem.risks:
        _ = risk.unit_limit


def named_configs(
    configs: Sequence[Mapping[str, Any]] | None, n: int
) -> tuple[dict[str, Any], ...] | None:
    """Check that there is one plain mapping for each of the n rows of losses."""
    if configs is None:
        return None
    if isinstance(configs, str | Mapping) or not isinstance(configs, Sequence):
        raise LossError(
            f"configs must be a list with one mapping per row of losses, but it is "
            f'{type_in_words(configs)}. Write configs=[{{"threshold": 0.5}}, ...].'
        )
    if len(configs) != n:
        raise LossError(
            f"There are {how_many(n, 'row of losses', 'rows of losses')} but "
            f"{how_many(len(configs), 'config')}. Give one config per row."
        )
    for config in configs:
        if not isinstance(config, Mapping):
            raise LossError(
                f"configs must be mappings of parameters to values, but one is {shown(config)}. "
                f'Write {{"threshold": 0.5}}.'
            )
    plain = plain_configs(configs, LossError)
    rows_of: dict[str, int] = {}
    for row, config in enumerate(plain):
        first = rows_of.setdefault(canonical(config), row)
        if first != row:
            raise LossError(
                f"configs must be different, because a promise names one row of losses, but rows "
                f"{first} and {row} are both {shown(config)}. Leave one of them out, or add what "
                f'tells them apart, such as "seed".'
            )
    return plain
