"""Selecting from a table: the losses of every configuration are already there."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from riskpilot.common import canonical, plain_configs
from riskpilot.errors import LossError, ProblemError, shown
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
    JudgeMapping,
    LossMapping,
    calibration_losses,
    check_disjoint,
    check_ids,
    check_memory,
    judged_risks,
    read_judge,
    validation_losses,
)
from riskpilot.problem import Problem
from riskpilot.selection.verdict import Selection, conclude


def select_from_losses(
    problem: Problem,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    configs: Sequence[Mapping[str, Any]] | None = None,
    procedure: Procedure = fixed_sequence,
    validation_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    calibration_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    seed: int = 0,
    judge: JudgeMapping | None = None,
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
    validation_ids : sequence, optional
        The identities of the k validation examples.
    calibration_ids : sequence, optional
        The identities of the m calibration examples. Where both are given, they must not overlap.
    seed : int, default 0
        The order in which the betting test sees the calibration examples is drawn from the
        validation losses; another seed makes another draw.
    judge : mapping, optional
        Scores of a judge, such as a large model, that was fixed before the calibration labels were
        seen: ``{"labelled": {"error": (n, m)}, "unlabelled": {"error": (n, M)}}``, of the same m
        calibration examples and of M fresh ones without a label, in the range of the losses. One
        row, or shape (m,) and (M,), where they are the same for all configurations. The promise
        stays one about the labels, whatever the judge is worth.

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
        If validation and calibration share examples.

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
            f"select_from_losses takes a Problem first, but got a {type(problem).__name__}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    check_limits(problem)
    check_procedure(procedure)
    check_ids(validation_ids, calibration_ids)
    seen = validation_losses(problem, validation)
    names = named_configs(configs, seen.n_configs)
    helped = judged_risks(problem, judge)
    plan = freeze_plan(seen, procedure=procedure, seed=seed, judged=helped)
    question = Question(problem, plan, procedure, names)
    check_memory(validation, calibration, problem.minimize)
    sealed = calibration_losses(problem, calibration)
    if sealed.n_configs != seen.n_configs:
        raise LossError(
            f"Validation has {seen.n_configs} configurations and calibration {sealed.n_configs}. "
            f"Row i of both must belong to the same configuration."
        )
    check_disjoint(seen, sealed)
    scores = read_judge(problem, judge, seen.n_configs, sealed.n_examples)
    result = run_test(question.plan, sealed, procedure, judge=scores)
    rows = range(seen.n_configs)
    background = Background([config_of(names, row) for row in rows], rows)
    return conclude(question, seen, result, background=background)


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
            f"configs must be a list with one mapping per row of losses, but it is a "
            f'{type(configs).__name__}. Write configs=[{{"threshold": 0.5}}, ...].'
        )
    if len(configs) != n:
        raise LossError(
            f"There are {n} rows of losses but {len(configs)} configs. Give one config per row."
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
