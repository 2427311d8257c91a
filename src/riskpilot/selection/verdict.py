"""The verdict: the best configuration that passed, or None, with the reasons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from riskpilot.common import card, plain_configs
from riskpilot.errors import LossError, ProblemError
from riskpilot.guarantee import (
    Certificate,
    Procedure,
    Question,
    TestPlan,
    TestResult,
    Use,
    check_procedure,
    config_of,
    fixed_sequence,
    freeze_plan,
    issue,
    p_in_words,
    run_test,
    samples_to_pass,
)
from riskpilot.losses import (
    GroupSummary,
    LossMapping,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    check_ids,
    check_memory,
    fewest_examples,
    name_in_words,
    steering_family,
    validation_losses,
)
from riskpilot.plots import Background, Search, trade_off
from riskpilot.problem import Problem
from riskpilot.selection.report import write_report

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """What was chosen, and why that is safe.

    Attributes
    ----------
    config : dict, or None
        The certified configuration with the smallest free objective; None where nothing could be
        certified.
    candidates : tuple of dict
        The tested configurations, in testing order.
    certificate : Certificate
        The selection in a form that can be stored and verified.
    left_out : tuple of int
        The numbers of finished trials that could not be considered: they carry no losses.
    """

    problem: Problem
    config: dict[str, Any] | None
    candidates: tuple[dict[str, Any], ...]
    certificate: Certificate
    plan: TestPlan = field(repr=False)
    result: TestResult = field(repr=False)
    validation: ValidationLosses = field(repr=False)
    search: Search | None = field(repr=False, default=None)
    background: Background = field(repr=False, default=Background())
    left_out: tuple[int, ...] = ()

    @property
    def p_values(self) -> FloatArray:
        """The p-value of each candidate, shape (n_candidates,)."""
        return np.exp(self.result.worst_log_p)

    @property
    def valid(self) -> tuple[dict[str, Any], ...]:
        """The candidates that passed."""
        return tuple(
            config
            for config, passed in zip(self.candidates, self.result.passed, strict=True)
            if passed
        )

    @property
    def message(self) -> str:
        """The verdict in plain words."""
        if self.certificate.chosen is None:
            verdict = _nothing_certified(self.problem, self.candidates, self.plan, self.result)
        else:
            verdict = _certified(self)
        return verdict + left_out_in_words(self.left_out, "\n")

    def report(self, path: str | Path) -> Path:
        """Write a page that shows the selection, for people.

        Parameters
        ----------
        path : str or Path
            The HTML file to write.

        Returns
        -------
        Path
            The same path.

        Raises
        ------
        PlotError
            If the file cannot be written.
        """
        return write_report(
            path,
            message=self.message,
            certificate=self.certificate,
            plan=self.plan,
            result=self.result,
            validation=self.validation,
            search=self.search,
            background=self.background,
        )

    def figure(self) -> go.Figure:
        """The trade-off: every configuration, the region, the order of the test, the choice."""
        return trade_off(
            self.plan,
            self.result,
            self.validation,
            self.certificate.chosen,
            self.search,
            self.background,
        )

    def __str__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        chosen, result = self.certificate.chosen, self.result
        at = int(np.argmin(result.worst_log_p)) if chosen is None else chosen
        rows = [
            (
                risk.title,
                float(result.means[at, i]),
                f"{risk.limit:g}",
                p_in_words(result.log_p[at, i]),
            )
            for i, risk in enumerate(self.problem.risks)
        ]
        if chosen is None:
            title, lines = "Nothing could be certified", [f"Closest: {self.candidates[at]}"]
        else:
            title, lines = f"Certified: {self.config}", [self.certificate.promise]
        lines.append(f"{self.problem.minimize}: {self.plan.free[at]:.4g} on validation data")
        head = ("risk", "on calibration data", "limit", "p-value")
        return card(title, lines, head=head, rows=rows, good=chosen is not None)


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
) -> Selection:
    """Select among n configurations whose losses are all there (Algorithm alg:selection).

    Parameters
    ----------
    problem : Problem
        The risks with their limits, the free objective and delta.
    validation, calibration : mapping
        Losses by name: risks of shape (n, k) and (n, m), the free objective of shape (n,) or
        (n, k), needed on validation only.
    configs : sequence of mapping, optional
        What the n rows stand for, in values that JSON keeps; their index by default.
    procedure : Procedure, default fixed_sequence
        How several candidates are tested.
    validation_ids, calibration_ids : sequence, optional
        Ids of the examples, which must not overlap.
    seed : int, default 0
        A whole number of at least 0. The order in which the betting test sees the calibration
        examples is drawn from the validation losses; another seed makes another draw.

    Returns
    -------
    Selection
        What was chosen, or None, with its certificate.

    Raises
    ------
    ProblemError
        If the problem has open limits, or the procedure is none.
    LossError
        If losses or configurations cannot be used.
    LeakageError
        If validation and calibration share examples.

    Examples
    --------
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
    names = _configs(configs, seen.n_configs)
    plan = freeze_plan(seen, procedure=procedure, seed=seed)
    question = Question(problem, plan, procedure, names)
    check_memory(validation, calibration)
    sealed = calibration_losses(problem, calibration)
    if sealed.n_configs != seen.n_configs:
        raise LossError(
            f"Validation has {seen.n_configs} configurations and calibration {sealed.n_configs}. "
            f"Row i of both must belong to the same configuration."
        )
    check_disjoint(seen, sealed)
    result = run_test(question.plan, sealed, procedure)
    rows = range(seen.n_configs)
    background = Background([config_of(names, row) for row in rows], rows)
    return conclude(question, seen, result, background=background)


def check_limits(problem: Problem) -> None:
    """Refuse to open calibration data while a limit is open."""
    for risk in problem.risks:
        _ = risk.unit_limit


def conclude(
    question: Question,
    validation: ValidationLosses,
    result: TestResult,
    use: Use | None = None,
    *,
    search: Search | None = None,
    background: Background | None = None,
    left_out: tuple[int, ...] = (),
) -> Selection:
    """Choose among what passed, and write it down."""
    certificate = issue(question, result, use or Use())
    return Selection(
        question.problem,
        certificate.config,
        question.candidates,
        certificate,
        question.plan,
        result,
        validation,
        search,
        background or Background(),
        left_out,
    )


def left_out_in_words(numbers: Sequence[int], before: str = "") -> str:
    """Say how many finished trials were left out, and why; nothing where none was."""
    if not numbers:
        return ""
    some = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    trials = "trial" if len(numbers) == 1 else "trials"
    return (
        f"{before}Left out: {len(numbers)} finished {trials} ({some}) without losses, told to "
        f"Optuna directly and not through riskpilot.objective."
    )


def _configs(
    configs: Sequence[Mapping[str, Any]] | None, n: int
) -> tuple[dict[str, Any], ...] | None:
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
                f"configs must be mappings of parameters to values, but one is {config!r}. "
                f'Write {{"threshold": 0.5}}.'
            )
    return plain_configs(configs, LossError)


def _certified(selection: Selection) -> str:
    chosen = selection.certificate.chosen
    assert chosen is not None
    plan, result, problem = selection.plan, selection.result, selection.problem
    lines = [f"Chosen: {selection.config}", selection.certificate.promise]
    for i, risk in enumerate(problem.risks):
        lines.append(
            f"  {risk.title}: {result.means[chosen, i]:.4g} on {result.n[chosen, i]:,} calibration "
            f"examples, limit {risk.limit:g}, p = {p_in_words(result.log_p[chosen, i])}"
        )
    lines.append(f"  {problem.minimize}: {plan.free[chosen]:.4g} on validation")
    lines.append(
        f"{int(result.passed.sum())} of {len(plan.order)} candidates passed; "
        f"{plan.n_configs} configurations were considered."
    )
    return "\n".join(lines)


def _nothing_certified(
    problem: Problem,
    candidates: Sequence[Mapping[str, Any]],
    plan: TestPlan,
    result: TestResult,
) -> str:
    worst = result.worst_log_p
    closest = int(np.argmin(worst))
    lines = [
        "Nothing could be certified: no configuration is shown to keep every limit.",
        f"Closest: {dict(candidates[closest])}",
    ]
    for i, risk in enumerate(problem.risks):
        mean, n = float(result.means[closest, i]), int(result.n[closest, i])
        line = (
            f"  {risk.title}: {mean:.4g} on {n:,} calibration examples, limit {risk.limit:g}, "
            f"p = {p_in_words(result.log_p[closest, i])}"
        )
        if result.log_p[closest, i] >= math.log(plan.aims[closest]):
            line += f"; {_what_would_decide(plan, result, i, closest)}"
        lines.append(line)
    if worst[closest] < math.log(plan.aims[closest]):
        lines.append(
            "It stands behind a candidate that failed, so the order of the test did not reach it."
        )
    return "\n".join(lines)


def _what_would_decide(plan: TestPlan, result: TestResult, i: int, at: int) -> str:
    risk = plan.problem.risks[i]
    mean, n = float(result.means[at, i]), int(result.n[at, i])
    few = _too_few(plan, result, i, at)
    if few is not None:
        return few
    if n == 0:
        return "no calibration example counts for it"
    unit = risk.to_unit(mean)
    if unit >= risk.unit_limit:
        return "more examples would not help at this value: it is not below the limit"
    family, std = plan.families[risk.name], None
    if steering_family(risk, family) == "normal" and result.calibration is not None:
        family = "normal"
        deviations = result.calibration.risks[risk.name].summary.standard_deviation
        std = float(deviations[result.rows[at]])
    needed = samples_to_pass(family, risk.unit_limit, unit, plan.aims[at], std)
    each = " in each group" if risk.needs_groups else ""
    return f"about {needed:,} examples{each} with this value would have passed"


def _too_few(plan: TestPlan, result: TestResult, i: int, at: int) -> str | None:
    """Whether a group is so small that nothing could have been shown about it."""
    risk = plan.problem.risks[i]
    if result.calibration is None:
        return None
    summary = result.calibration.risks[risk.name].summary
    if not isinstance(summary, GroupSummary):
        return None
    sizes = [int(part.n[result.rows[at]]) for part in summary.sums]
    smallest = int(np.argmin(sizes))
    needs = fewest_examples(risk, plan.families[risk.name], plan.aims[at])
    if sizes[smallest] >= needs:
        return None
    return (
        f"group {name_in_words(summary.names[smallest])} cannot be certified with "
        f"{sizes[smallest]:,} examples; "
        f"it needs {needs:,}"
    )
