"""A plan frozen from a table of validation losses, for calibration labels that will come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from riskpilot.common import Array, FloatArray, card, how_many
from riskpilot.errors import ProblemError, type_in_words
from riskpilot.guarantee import (
    Background,
    Question,
    config_in_words,
    config_of,
    fixed_sequence,
    freeze_plan,
)
from riskpilot.losses import (
    LossMapping,
    TextArray,
    ValidationLosses,
    number_array,
    read_ids,
    text_array,
)
from riskpilot.problem import Problem
from riskpilot.selection.from_table import (
    check_limits,
    checked_order,
    named_configs,
    seen_losses,
)

_SHOWN = 12  # candidates on a card


@dataclass(frozen=True, repr=False)
class FrozenPlan:
    """Which configurations are tested, in which order: settled before the first calibration label.

    `freeze` makes it. Attributes are not meant to be changed.

    Attributes
    ----------
    question : Question
        All that is settled: the problem, the plan, the configurations.
    validation : ValidationLosses
        The validation losses of every configuration, as they were read.
    given : dict of str to array
        The same as they were given.
    ids : array of str or None
        The ids of all examples that the search looked at, where they are known.
    """

    question: Question
    validation: ValidationLosses
    given: dict[str, Array]
    ids: TextArray | None = None

    @property
    def problem(self) -> Problem:
        """The risks with their limits, the free objective, and delta."""
        return self.question.problem

    @property
    def candidates(self) -> tuple[dict[str, Any], ...]:
        """The configurations that will be tested, in testing order."""
        return self.question.candidates

    @property
    def digest(self) -> str:
        """The digest of the plan and its configurations."""
        return self.question.plan_digest

    @property
    def background(self) -> Background:
        """What is shown with a selection: every configuration by its row."""
        rows = range(self.validation.n_configs)
        return Background([config_of(self.question.configs, row) for row in rows], rows)

    def __repr__(self) -> str:
        return f"FrozenPlan({self.problem} {self._tested} are tested.)"

    @property
    def _tested(self) -> str:
        """How many configurations are tested, and out of how many."""
        n = how_many(self.validation.n_configs, "configuration")
        return f"{len(self.candidates):,} of {n}"

    def _repr_html_(self) -> str:
        plan = self.question.plan
        lines = [
            str(self.problem),
            f"{self._tested} will be tested, in this order.",
        ]
        rows = [
            (i + 1, config_in_words(config, 60), float(plan.free[i]))
            for i, config in enumerate(self.candidates[:_SHOWN])
        ]
        head = ("number in the test", "candidate", f"{self.problem.minimize}, validation")
        return card("Frozen plan", lines, head=head, rows=rows)


def freeze(
    problem: Problem,
    *,
    validation: LossMapping,
    configs: Sequence[Mapping[str, Any]] | None = None,
    order: Sequence[int] | npt.NDArray[Any] | None = None,
    validation_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    seed: int = 0,
) -> FrozenPlan:
    """Settle from validation losses which configurations are tested, and in which order.

    The plan is the one of `select_from_losses`. With it `Calibration` takes the calibration labels
    as they arrive.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective, and delta.
    validation : mapping of str to array
        Validation losses by name: risks of shape (n, k), the free objective of shape (n,) or
        (n, k). Groups, weights and references stand beside them under their own names.
    configs : sequence of mappings, optional
        What the n rows stand for; their index by default.
    order : sequence of int, optional
        The rows from the safest to the riskiest, in an order that was known before any data. They
        are tested in this order, and ``validation`` needs only the free objective; losses are then
        0/1 where their name says so, that of a metric that riskpilot knows.
    validation_ids : sequence, optional
        The identities of the k validation examples: one for each, no two alike. None of them can
        then be labelled for calibration, or be a fresh example of a judge.
    seed : int, default 0
        Recorded in the certificate; labels that arrive are seen in the order in which they come.

    Returns
    -------
    FrozenPlan
        The candidates in testing order, and all that a certificate says of them.

    Raises
    ------
    ProblemError
        If the problem or the seed cannot be used, or a limit is open.
    LossError
        If losses are missing, of the wrong shape or outside their range, or ``configs`` does not
        fit them or names one configuration twice.

    Examples
    --------
    >>> import numpy as np
    >>> from riskpilot import Problem, Risk
    >>> rng = np.random.default_rng(0)
    >>> error, cost = np.array([[0.05], [0.08], [0.3]]), np.array([3.0, 2.0, 1.0])
    >>> plan = freeze(
    ...     Problem([Risk("error", limit=0.1)], minimize="cost"),
    ...     validation={"error": rng.random((3, 2000)) < error, "cost": cost},
    ...     configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
    ... )
    >>> plan.candidates
    ({'size': 'large'}, {'size': 'medium'}, {'size': 'small'})
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"freeze takes a Problem first, but got {type_in_words(problem)}. "
            f'Write Problem([Risk("error", limit=0.1)], minimize="cost").'
        )
    ids = read_ids(validation_ids, None)
    frozen = frozen_again(problem, validation, configs, seed, order=order)
    if ids.validation is not None and frozen.validation.n_examples:
        ids.check_size("validation", frozen.validation.n_examples)
    return replace(frozen, ids=ids.validation)


def frozen_again(
    problem: Problem,
    validation: LossMapping,
    configs: Sequence[Mapping[str, Any]] | None,
    seed: int,
    *,
    order: Any = None,
    entropy: int | None = None,
    estimates: FloatArray | None = None,
    judged: Sequence[str] = (),
    spend: float = 1.0,
    **about: Any,
) -> FrozenPlan:
    """Do what `freeze` says, of a table or of what was copied from a study.

    ``entropy``: the randomness that an earlier one drew, if it did; ``estimates``: of the risks, by
    which the order goes; ``judged``: the risks with which a judge helps; ``about``: further fields
    of the question.
    """
    check_limits(problem)
    tested = problem.spending(spend)
    seen = seen_losses(tested, validation, {}, known_order=order is not None)
    names = (
        named_configs(configs, seen.n_configs)
        if about.get("trials") is None or configs is None
        else tuple(map(dict, configs))  # two trials of a study may have the same parameters
    )
    plan = freeze_plan(
        seen,
        estimates=estimates,
        seed=seed,
        entropy=entropy,
        judged=judged,
        known_order=None if order is None else checked_order(order, seen.n_configs),
    )
    question = Question(problem, plan, fixed_sequence, names, spend=spend, **about)
    given = {
        name: text_array(values, f"validation: {name!r}")
        if name in problem.labels
        else number_array(values, f"validation: {name!r}", missing_as_nan=True)
        for name, values in validation.items()
    }
    return FrozenPlan(question, seen, given)
