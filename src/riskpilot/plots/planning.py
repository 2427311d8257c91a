"""Before any data is spent: the probability to pass, against the number of examples."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from riskpilot.common import bound_in_words, exact
from riskpilot.errors import PlotError, ProblemError, shown, with_article
from riskpilot.guarantee import (
    as_number,
    family,
    passing_probability,
    plan_calibration,
    planning_family,
    power_is_unknown,
    unit_risk,
)
from riskpilot.plots.points import escaped
from riskpilot.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, styled
from riskpilot.problem import Problem, Risk

_MARGINS = (0.5, 0.7, 0.8, 0.9)
# From the safest to the closest: light blue to orange, apart also in grey.
_COLOURS = (SKY, BLUE, GREEN, ORANGE, PURPLE, RED)
_DASHES = ("solid", "dash", "dot", "dashdot")


def power_curves(
    problem: Problem,
    risk: str | None = None,
    *,
    true_risks: Sequence[float] | None = None,
    n_calibration: int | None = None,
    binary: bool = True,
    deviations: Mapping[str, float] | None = None,
) -> go.Figure:
    """The probability to pass against the number of calibration examples, by true risk.

    Parameters
    ----------
    problem : Problem
        The risks with their limits, and delta.
    risk : str, optional
        The name of a risk; the first by default.
    true_risks : sequence of float, optional
        One curve each, in the words of the risk; by default such that their losses are 50, 70, 80
        and 90 % of the largest loss allowed.
    n_calibration : int, optional
        The size that is planned, drawn as a line.
    binary : bool, default True
        Whether the losses are 0 or 1.
    deviations : mapping of str to float, optional
        Standard deviations of losses that are not, by the name of the risk.

    Returns
    -------
    plotly.graph_objects.Figure
        One curve for each true risk.

    Raises
    ------
    PlotError
        If there is no such risk, or the true risks are no numbers.
    ProblemError
        If a number cannot be meant, or a true risk cannot be certified.
    """
    # The plan's own checks decide what numbers can be meant.
    plan_calibration(
        problem,
        1 if n_calibration is None else n_calibration,
        binary=binary,
        deviations=deviations,
    )
    chosen = _risk(problem, risk)
    deviation = (deviations or {}).get(chosen.name)
    unknown = power_is_unknown(chosen, deviation)
    if unknown is not None:
        raise ProblemError(f"The power for {chosen.name!r} cannot be drawn. {unknown}")
    steering, std = planning_family(chosen, family(chosen, binary), deviation)
    limit = chosen.unit_limit
    units = [share * limit for share in _MARGINS]
    if true_risks is not None:
        units = [unit_risk(chosen, value) for value in _numbers(true_risks)]
    sizes = np.unique(np.geomspace(20, max(100_000, 3 * (n_calibration or 0)), 160).astype(int))
    true = escaped(chosen.subject) if chosen.complement else "risk"
    figure = go.Figure()
    for i, unit in enumerate(units):
        power = [
            passing_probability(steering, limit, unit, int(m), problem.delta, std) for m in sizes
        ]
        figure.add_scatter(
            x=sizes,
            y=power,
            mode="lines",
            name=f"true {true} {chosen.in_words(chosen.from_unit(unit)):.3g}",
            line={
                "color": _COLOURS[i % len(_COLOURS)],
                "dash": _DASHES[i % len(_DASHES)],
                "width": 2.5,
            },
            text=[bound_in_words(100 * chance, up=False, digits=2) for chance in power],
            hovertemplate="%{x:,} examples: %{text} %<extra>%{fullData.name}</extra>",
        )
    figure.add_hline(y=problem.delta, line={"color": RED, "dash": "dash"})
    figure.add_annotation(
        x=1,
        xref="paper",
        y=problem.delta,
        text=f"delta = {exact(problem.delta)}: {with_article(true)} at the limit",
        font={"color": RED},
        showarrow=False,
        xanchor="right",
        yanchor="bottom",
    )
    if n_calibration is not None:
        figure.add_vline(x=n_calibration, line={"color": GREY, "width": 2})
        figure.add_annotation(
            text=f"{n_calibration:,}",
            showarrow=False,
            x=math.log10(n_calibration),  # placed by the exponent on a logarithmic axis
            y=1.02,
            yanchor="bottom",
        )
    figure.update_xaxes(title_text="calibration examples", type="log", tickformat=",~s")
    figure.update_yaxes(title_text="probability to pass", range=[0, 1.02], tickformat=".0%")
    title = f"What it takes to certify {escaped(chosen.says(at_most='≤', at_least='≥'))}"
    return styled(figure, title, height=440)


def _risk(problem: Problem, name: str | None) -> Risk:
    """Find the risk of that name; the first one where no name is given."""
    if name is None:
        return problem.risks[0]
    for risk in problem.risks:
        if isinstance(name, str) and name == risk.name:
            return risk
    raise PlotError(
        f"The problem has the risks {', '.join(problem.names)}, but the curves were asked for "
        f"{shown(name)}. Name one of them."
    )


def _numbers(true_risks: Sequence[float]) -> list[float]:
    """Read the true risks of the curves."""
    try:
        values = list(true_risks)
    except TypeError as error:
        raise PlotError(
            f"true_risks is a list of numbers, one for each curve, but it is {shown(true_risks)}. "
            f"Write true_risks=[0.05, 0.08]."
        ) from error
    numbers = []
    for value in values:
        number = as_number(value)
        if number is None:
            raise PlotError(
                f"A true risk is a finite number, but one is {shown(value)}. Leave it out."
            )
        numbers.append(number)
    return numbers
