"""The verdict: the best configuration that passed, or None, with the reasons."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riskpilot.common import card, exact
from riskpilot.common.arrays import FloatArray
from riskpilot.errors import PlotError
from riskpilot.guarantee import (
    Background,
    Certificate,
    Question,
    SearchOutline,
    TestPlan,
    TestResult,
    Use,
    issue,
    p_in_words,
)
from riskpilot.losses import ValidationLosses
from riskpilot.problem import Problem
from riskpilot.selection.optimism import optimism_in_words
from riskpilot.selection.words import foretold_in_words, left_out_in_words, verdict_in_words

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Selection:
    """What was chosen, and why that is safe.

    Attributes
    ----------
    problem : Problem
        The problem that was asked about.
    config : dict, or None
        The certified configuration with the smallest free objective; None where nothing could be
        certified.
    candidates : tuple of dict
        The tested configurations, in testing order.
    certificate : Certificate
        The selection in a form that can be stored and verified.
    plan : TestPlan
        The test as validation data fixed it, before calibration data was opened.
    result : TestResult
        What calibration data said of each candidate.
    validation : ValidationLosses
        The validation losses of every configuration.
    background : Background
        What else is shown with the selection: every configuration, the search, the ledger.
    """

    problem: Problem
    config: dict[str, Any] | None
    candidates: tuple[dict[str, Any], ...]
    certificate: Certificate
    plan: TestPlan = field(repr=False)
    result: TestResult = field(repr=False)
    validation: ValidationLosses = field(repr=False)
    background: Background = field(repr=False, default=Background())

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
    def closest(self) -> int:
        """The position of the choice in the test, or of what came closest where nothing passed."""
        chosen = self.certificate.chosen
        return int(np.argmin(self.result.worst_log_p)) if chosen is None else chosen

    @property
    def search(self) -> SearchOutline | None:
        """How the search stood at its end; None where there was none."""
        return self.background.search

    @property
    def left_out(self) -> tuple[int, ...]:
        """The numbers of finished trials that could not be considered: they carry no losses, or a
        free objective that is too large."""
        return self.background.left_out

    @property
    def message(self) -> str:
        """The verdict in plain words."""
        verdict = verdict_in_words(self.certificate, self.plan, self.result, self.closest)
        ended = self.certificate.evaluated
        optimism = optimism_in_words(
            self.plan, self.result, self.validation, ended, "\n", self.background.foretold
        )
        foretold = foretold_in_words(self.certificate, "\n")
        return verdict + optimism + foretold + left_out_in_words(self.left_out, "\n")

    def report(self, path: str | Path) -> Path:
        """Write a page that shows the selection, for people. It needs no network.

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
        # A page has figures, and plotly is slow to import: only who draws loads it.
        from riskpilot.selection.report import write_report

        return write_report(self, path)

    def figure(self) -> "go.Figure":
        """Draw the trade-off: every configuration, the region, the order of the test, the choice.

        Returns
        -------
        plotly.graph_objects.Figure
            The figure, which `riskpilot.plots.save_figure` writes to a file.

        Raises
        ------
        PlotError
            If the testing order was known and there are no validation losses of the risks.
        """
        if not self.plan.n_validation:
            raise PlotError(
                "The trade-off is drawn from validation losses, but the testing order was known "
                "and there are none. Pass them beside the free objective, or see report()."
            )
        # As in `report`: only who draws loads plotly.
        from riskpilot.plots import trade_off

        chosen = self.certificate.chosen
        return trade_off(self.plan, self.result, self.validation, chosen, self.background)

    def __str__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        at, result = self.closest, self.result
        rows = [
            (
                risk.title,
                float(result.means[at, i]) if result.n[at, i] else "no example counts",
                "" if risk.limit is None else exact(risk.limit),
                p_in_words(result.log_p[at, i], self.plan.aims[at]),
            )
            for i, risk in enumerate(self.problem.risks)
        ]
        if self.config is None:
            title, lines = "Nothing could be certified", [f"Closest: {self.candidates[at]}"]
        else:
            title, lines = f"Certified: {self.config}", [self.certificate.promise]
        lines.append(f"{self.problem.minimize}: {self.plan.free[at]:.4g} on validation data")
        if self.certificate.evaluated:
            lines.append(foretold_in_words(self.certificate))
        head = ("risk", "on calibration data", "limit", "p-value")
        return card(title, lines, head=head, rows=rows, good=self.config is not None)


def conclude(
    question: Question,
    validation: ValidationLosses,
    result: TestResult,
    use: Use | None = None,
    background: Background | None = None,
) -> Selection:
    """Choose among the candidates that passed, and issue the certificate."""
    certificate = issue(question, result, use)
    return Selection(
        question.problem,
        certificate.config,
        question.candidates,
        certificate,
        question.plan,
        result,
        validation,
        background or Background(),
    )
