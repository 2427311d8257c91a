"""Scores of a judge where labels arrive: fresh ones before the first label, the others with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskpilot.common import FloatArray
from riskpilot.errors import LossError, shown
from riskpilot.losses.beside import digest_of_bytes, digest_of_numbers
from riskpilot.losses.evaluation import check_names
from riskpilot.losses.example_ids import read_example_ids
from riskpilot.losses.intake import TextArray
from riskpilot.losses.judges import check_judged, part_of, score_rows
from riskpilot.losses.labels import LabelTable, score_name
from riskpilot.losses.ranges import in_range, to_unit
from riskpilot.problem import Problem, Risk

_FRESH, _LABELLED = "unlabelled", "labelled"


@dataclass(frozen=True)
class FreshScores:
    """A judge's scores of fresh examples without a label, given before the first label.

    ``scores``: by risk, in the units of the losses, shape (n, M), or (1, M) where they are the
    same for all candidates. ``ids``: of the M examples, where they are known.
    """

    scores: Mapping[str, FloatArray]
    ids: TextArray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The risks with which the judge helps."""
        return tuple(self.scores)

    def of(self, rows: Sequence[int]) -> "FreshScores":
        """Take the scores of some rows; one row for all of them serves these, too."""
        scores = {
            name: values if len(values) == 1 else values[list(rows)]
            for name, values in self.scores.items()
        }
        return FreshScores(scores, self.ids)

    def unit(self, risk: Risk) -> FloatArray:
        """Return the scores for a risk on the unit scale of its losses."""
        return to_unit(self.scores[risk.name], risk)

    def digest(self, n: int) -> str:
        """Compute the digest of the scores of n candidates. It is the same for one row for all of
        them and for n equal rows."""
        parts = []
        for name in sorted(self.scores):
            rows = [digest_of_numbers(row) for row in self.scores[name]]
            parts += [name.encode(), *(rows * n if len(rows) == 1 else rows)]
        return digest_of_bytes(*parts).hex()


def read_fresh(problem: Problem, judge: Any, n: int) -> FreshScores | None:
    """Check the scores of fresh examples; ``n``: how many candidates there are."""
    if judge is None:
        return None
    known = isinstance(judge, Mapping) and _FRESH in judge and set(judge) <= {_FRESH, "ids"}
    if not known or not isinstance(judge[_FRESH], Mapping) or not judge[_FRESH]:
        raise LossError(
            f"judge holds the scores of fresh examples that will never be labelled, by risk, but "
            f'it is {shown(judge)}. Write judge={{"unlabelled": {{"{problem.names[0]}": array}}}}; '
            f"the scores of labelled examples come with their losses: add(losses, judge=...)."
        )
    given = judge[_FRESH]
    check_names(given, part_of(_FRESH))
    odd = sorted(set(given) - set(problem.names))
    if odd:
        raise LossError(
            f"A judge scores risks of the problem ({', '.join(problem.names)}), but "
            f"{shown(odd[0])} is none. Give the scores under the name of the risk."
        )
    ids = read_example_ids(judge.get("ids"), "judge, ids")
    m = None if ids is None else len(ids)
    scores = {}
    for risk in problem.risks:
        if risk.name in given:
            check_judged(risk)
            array = score_rows(risk, given[risk.name], _FRESH, n, m)
            scores[risk.name] = in_range(risk, array, part_of(_FRESH))
    return FreshScores(scores, ids)


def read_label_scores(
    problem: Problem,
    judge: Any,
    names: Sequence[str],
    losses: LabelTable,
    shape: tuple[int, ...],
    rows: Sequence[int],
) -> LabelTable:
    """Check a judge's scores of labelled examples, which stand beside their losses.

    ``names``: the risks with which the judge helps; ``losses``: those of the rows and labels that
    are looked at; ``shape``: that of the losses that were given, of which ``rows`` are looked at.
    """
    if judge is None and not names:
        return {}
    given = judge.get(_LABELLED) if isinstance(judge, Mapping) else None
    alone = isinstance(judge, Mapping) and set(judge) == {_LABELLED}
    if not names:
        raise LossError(
            "These labels are tested without a judge, but its scores are given. Leave judge= out, "
            "or begin with the scores of fresh examples: "
            'Calibration(..., judge={"unlabelled": {...}}).'
        )
    if not alone or not isinstance(given, Mapping) or set(given) != set(names):
        raise LossError(
            f"A judge helps with {', '.join(names)}, so that its scores of the labelled examples "
            f"come with every batch of losses, but they are {shown(judge)}. Write "
            f'add(losses, judge={{"labelled": {{"{names[0]}": array}}}}).'
        )
    table: LabelTable = {}
    for risk in problem.risks:
        if risk.name not in names:
            continue
        array = score_rows(risk, given[risk.name], _LABELLED, *shape, missing_as_nan=True)
        chosen = np.broadcast_to(array, shape)[list(rows), : losses[risk.name].shape[1]]
        table[score_name(risk.name)] = in_range(risk, chosen, part_of(_LABELLED))
        _check_pattern(risk.name, losses[risk.name], table[score_name(risk.name)])
    return table


def _check_pattern(name: str, losses: FloatArray, scores: FloatArray) -> None:
    """Refuse scores of examples that do not count, and losses without a score."""
    if (np.isnan(losses) != np.isnan(scores)).any():
        raise LossError(
            f"{part_of(_LABELLED)}: a score of {name!r} is NaN exactly where the loss is, but for "
            f"some label only one of them is. Whether an example counts must be known without its "
            f"label, and be the same for losses and scores."
        )
