"""``riskpilot plan``: what calibration data can show, before any is spent."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from riskpilot.cli import terminal
from riskpilot.cli.options import (
    JsonOption,
    PValueOption,
    RiskOption,
    examples,
    parse_numbers,
    parse_risks,
)
from riskpilot.cli.outputs import check_outputs
from riskpilot.common import bound_in_words, exact
from riskpilot.errors import ProblemError
from riskpilot.guarantee import (
    JudgePlan,
    LabelsPlan,
    RiskPlan,
    plan_calibration,
    plan_judge,
    plan_labels,
    split_labelled,
    unit_risk,
)
from riskpilot.problem import Problem

SCHEMA = "riskpilot-plan/1"

EXAMPLES = examples(
    'riskpilot plan --risk "error<=0.05" --samples 5000',
    'riskpilot plan -r "error<=0.05" --labelled 7500',
    'riskpilot plan -r "error<=0.1" -n 500 -n 5000 --true-risk error=0.08',
    'riskpilot plan -r "precision>=0.9" -n 1000 --true-risk precision=0.93',
    'riskpilot plan -r "error<=0.1" -n 1000 --true-risk error=0.07 --sequential --figure plan.html',
    'riskpilot plan -r "error<=0.1" -n 500 --judge error=0.8 --unlabelled 5000',
    'riskpilot plan -r "cost<=3 in \\[0,10]" -n 2000 --deviation cost=1.5 --true-risk cost=2.8',
)


def plan(
    risk: RiskOption,
    samples: Annotated[
        list[int],
        typer.Option("--samples", "-n", help="Calibration examples. Repeat it to compare sizes."),
    ] = [],  # noqa: B006
    labelled: Annotated[
        list[int],
        typer.Option(help="Labelled examples in all: a third is for validation, the rest counts."),
    ] = [],  # noqa: B006
    true_risk: Annotated[
        list[str],
        typer.Option(
            help="The value that a configuration is believed to have, in the words of the risk: "
            '"error=0.08", "precision=0.93".'
        ),
    ] = [],  # noqa: B006
    deviation: Annotated[
        list[str],
        typer.Option(help='Standard deviation of losses that are not 0/1: "cost=1.5".'),
    ] = [],  # noqa: B006
    delta: Annotated[float, typer.Option(help="How often the promise may fail.")] = 0.1,
    target_power: Annotated[
        float, typer.Option(help="The probability of passing to aim for.")
    ] = 0.9,
    sequential: Annotated[
        bool,
        typer.Option(
            help="Labels arrive one after another, at most as many as --samples says: the chance "
            "to be certified and the labels that it takes."
        ),
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="With --sequential: draw boundary and paths here (.html, .png, .svg)."),
    ] = None,
    judge: Annotated[
        list[str],
        typer.Option(help='Correlation of the losses with a judge\'s scores: "error=0.8".'),
    ] = [],  # noqa: B006
    unlabelled: Annotated[int, typer.Option(help="Examples that the judge alone scores.")] = 10_000,
    p_value: PValueOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Before data is spent: what can pass, and how many examples a margin needs."""
    check_outputs({"--figure": figure})
    problem = Problem(parse_risks(risk, p_value), "the free objective", delta)
    true_risks = parse_numbers(true_risk, "true risk")
    deviations = parse_numbers(deviation, "deviation")
    if not samples and not labelled:
        raise ProblemError(
            "A plan needs a number of examples. Write --samples 5000 for calibration examples, or "
            "--labelled 7500 for labelled ones that are still to be split."
        )
    if figure is not None and not sequential:
        raise ProblemError(
            f"A figure shows labels that arrive one after another, but --figure {figure} stands "
            f"without --sequential. Add --sequential, or leave --figure out."
        )
    splits = [split_labelled(n) for n in labelled]
    sizes = [*samples, *(n_calibration for _, n_calibration in splits)]
    correlations = parse_numbers(judge, "correlation")
    judged = [
        one
        for n in sizes
        if correlations
        for one in plan_judge(problem, n, unlabelled=unlabelled, correlations=correlations)
    ]
    if sequential:
        _plan_sequential(problem, sizes, true_risks, figure, as_json)
        return
    plans = _plans(problem, sizes, true_risks, deviations, target_power)
    if as_json:
        found: dict[str, Any] = {"delta": delta, "plans": [_plan_json(one) for one in plans]}
        if judged:
            found["judges"] = [_plan_json(one) for one in judged]
        terminal.print_json(found, schema=SCHEMA)
        return
    console = terminal.output()
    for n_validation, n_calibration in splits:
        terminal.say(
            console,
            f"Of {n_validation + n_calibration:,} labelled examples, drawn at random: "
            f"{n_validation:,} for validation, {n_calibration:,} for calibration.",
        )
    show_plans(console, plans, delta)
    for one in judged:
        terminal.say(console, one)


def _plan_sequential(
    problem: Problem,
    horizons: Sequence[int],
    true_risks: dict[str, float],
    figure: Path | None,
    as_json: bool,
) -> None:
    """Plan labels that arrive one after another; draw the first plan where that is asked for."""
    plans = [one for m in horizons for one in plan_labels(problem, m, true_risks=true_risks)]
    if figure is not None:
        # As in reports: only who draws loads plotly.
        from riskpilot.plots import labels_ahead, save_figure

        first = plans[0]
        unit, limit = unit_risk(first.risk, first.true_risk), first.risk.unit_limit
        drawn = labels_ahead(np.array(first.steps), first.horizon, limit, unit, first.chances)
        save_figure(drawn, figure)
    if as_json:
        hidden = ("chances", "steps")
        listed = [{k: v for k, v in _plan_json(one).items() if k not in hidden} for one in plans]
        terminal.print_json({"delta": problem.delta, "plans": listed}, schema=SCHEMA)
        return
    console = terminal.output()
    heads = ["risk", "labels at most", "true value", "chance to pass", "labels on average"]
    heads += ["looked at once"]
    rows: list[terminal.Row] = [
        (
            [
                str(one.risk),
                f"{one.horizon:,}",
                f"{one.true_risk:g}",
                f"{one.power:.3f}",
                f"{one.mean_labels:,.0f}",
                f"{one.fixed_power:.3f} with {one.horizon:,}",
            ],
            None,
        )
        for one in plans
    ]
    title = f"Labels one after another at delta = {exact(problem.delta)}"
    terminal.show_table(console, title, heads, rows)
    for one in plans:
        terminal.say(console, one)
    terminal.show_files(console, {"figure": figure})


def show_plans(console: Console, plans: Sequence[RiskPlan], delta: float) -> None:
    """Show what can pass, one row per risk and number of examples; then the same in words."""
    with_power = any(plan.power is not None for plan in plans)
    heads = ["risk", "test", "examples", "just passes", "fewest examples"]
    if with_power:
        heads += ["true value", "power", f"examples for {plans[0].target_power:g}"]
    rows = []
    for plan in plans:
        cells = [
            str(plan.risk),
            plan.family.replace("_", "-"),
            f"{plan.n_calibration:,}",
            "nothing"
            if plan.just_passes is None
            else bound_in_words(plan.just_passes, up=plan.risk.complement, digits=5),
            f"{plan.fewest:,}",
        ]
        if with_power:
            cells += [
                "" if plan.true_risk is None else f"{plan.true_risk:g}",
                "" if plan.power is None else f"{plan.power:.3f}",
                "" if plan.needed is None else f"{plan.needed:,}",
            ]
        rows.append((cells, None if plan.just_passes is not None else "yellow"))
    title = f"What calibration data can show at delta = {exact(delta)}"
    terminal.show_table(console, title, heads, rows)
    for plan in plans:
        terminal.say(console, plan)


def _plans(
    problem: Problem,
    samples: list[int],
    true_risks: dict[str, float],
    deviations: dict[str, float],
    target_power: float,
) -> list[RiskPlan]:
    """Plan every risk for every size."""
    bad = [name for name, value in deviations.items() if not value > 0]
    if bad:
        raise ProblemError(
            f"A standard deviation is above 0, but that of {bad[0]!r} is {deviations[bad[0]]:g}."
        )
    plans = []
    for n in samples:
        # The losses are 0/1 unless a deviation says otherwise, for each risk on its own.
        by_kind = [
            plan_calibration(
                problem,
                n,
                true_risks=true_risks,
                target_power=target_power,
                binary=binary,
                deviations=deviations,
            )
            for binary in (True, False)
        ]
        for binary_plan, other_plan in zip(*by_kind, strict=True):
            plans.append(other_plan if binary_plan.risk.name in deviations else binary_plan)
    return plans


def _plan_json(one: RiskPlan | LabelsPlan | JudgePlan) -> dict[str, Any]:
    """Write a plan for programs."""
    return {**asdict(one), "risk": one.risk.to_dict(), "message": str(one)}
