"""Selecting from counts: 0/1 losses that were summed where they live, such as in a warehouse."""

from collections.abc import Mapping, Sequence
from typing import Any

from riskpilot.errors import LossError, ProblemError, shown, type_in_words
from riskpilot.guarantee import (
    Procedure,
    Question,
    check_procedure,
    fixed_sequence,
    freeze_plan,
    run_test,
)
from riskpilot.losses import CountedLosses, calibration_losses, validation_losses
from riskpilot.problem import Problem
from riskpilot.selection.from_table import (
    check_limits,
    check_same_configs,
    every_config,
    named_configs,
)
from riskpilot.selection.verdict import Selection, conclude

COUNTS: Mapping[str, Any] = {"kind": "counts"}
"""What a certificate says of losses that came as counts."""


def select_from_counts(
    problem: Problem,
    *,
    validation: Mapping[str, Any],
    calibration: Mapping[str, Any],
    configs: Sequence[Mapping[str, Any]] | None = None,
    procedure: Procedure = fixed_sequence,
) -> Selection:
    """Select among n configurations whose 0/1 losses were counted elsewhere.

    The test of a mean of 0/1 losses needs how many there are and how many of them are 1, and
    nothing else. A table of any size sends one line per configuration and split.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective, and delta. Every risk is a mean.
    validation : mapping of str to pair of arrays
        For each risk the sums of the losses and the numbers of losses, shape (n,) each; the free
        objective as one array of shape (n,).
    calibration : mapping of str to pair of arrays
        The same for the calibration losses; the free objective is not needed.
    configs : sequence of mappings, optional
        What the n entries stand for; their index by default.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.

    Returns
    -------
    Selection
        What was chosen, with its certificate; its ``config`` is None where nothing passed.

    Raises
    ------
    ProblemError
        If the problem cannot be used, or a limit is open.
    LossError
        If counts are missing, do not fit each other, or are not enough for the test: bets, groups,
        tails and differences need the losses themselves.

    Examples
    --------
    >>> from riskpilot import Problem, Risk
    >>> selection = select_from_counts(
    ...     Problem([Risk("error", limit=0.1)], minimize="cost"),
    ...     validation={"error": ([50, 80, 300], [1000, 1000, 1000]), "cost": [3.0, 2.0, 1.0]},
    ...     calibration={"error": ([55, 79, 290], [1000, 1000, 1000])},
    ...     configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
    ... )
    >>> selection.config
    {'size': 'medium'}
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"select_from_counts takes a Problem first, but got {type_in_words(problem)}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    check_limits(problem)
    check_procedure(procedure)
    seen = validation_losses(problem, counted(problem, validation, "validation"))
    names = named_configs(configs, seen.n_configs)
    plan = freeze_plan(seen, procedure=procedure)
    question = Question(problem, plan, procedure, names, table=COUNTS)
    sealed = calibration_losses(problem, counted(problem, calibration, "calibration"))
    check_same_configs(seen, sealed)
    result = run_test(plan, sealed, procedure)
    return conclude(question, seen, result, background=every_config(names, seen.n_configs))


def counted(problem: Problem, given: Mapping[str, Any], split: str) -> dict[str, Any]:
    """Take the pair of a sum and a number for each risk as counts."""
    if not isinstance(given, Mapping):
        raise LossError(
            f"{split} must map names to counts, but it is {type_in_words(given)}. "
            f'Write {split}={{"{problem.names[0]}": (sums, numbers), ...}}.'
        )
    found = dict(given)
    for name in problem.names:
        if name not in found:
            continue  # refused in words when all are read
        pair = found[name]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise LossError(
                f"{split}: the counts of {name!r} are a pair, the sums of the losses and their "
                f"numbers, but they are {shown(pair)}. Write "
                f'{{"{name}": (sums, numbers)}}.'
            )
        found[name] = CountedLosses(*pair)
    return found
