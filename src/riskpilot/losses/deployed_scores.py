"""Scores of a judge beside the losses of a deployed configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from riskpilot.common import FloatArray
from riskpilot.errors import LossError, shown
from riskpilot.losses.deployed import DeployedLosses
from riskpilot.losses.judges import PARTS, part_of, score_rows
from riskpilot.losses.ranges import in_range, to_unit
from riskpilot.problem import Problem


def read_deployed_scores(
    problem: Problem,
    judge: Any,
    names: Sequence[str],
    labels: Mapping[str, DeployedLosses],
    n_fresh: int | None,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Check a judge's scores of labelled and of fresh examples, both on the unit scale, by risk.

    ``names``: the risks with which the judge helps; ``labels``: their losses; ``n_fresh``: the
    number of fresh examples, where their ids are given.
    """
    both = isinstance(judge, Mapping) and set(PARTS) <= set(judge) <= {*PARTS, "ids"}
    if not both or not all(
        isinstance(judge[part], Mapping) and set(judge[part]) == set(names) for part in PARTS
    ):
        raise LossError(
            f"judge holds the scores of the labelled examples and of fresh ones of the same time, "
            f"for {', '.join(names) or 'no risk: the watch began without a judge'}, but it is "
            f'{shown(judge)}. Write judge={{"labelled": {{"error": (b,)}}, "unlabelled": '
            f'{{"error": (B,)}}}}, and begin with Watch(..., judge=["error"]).'
        )
    found = {}
    for risk in problem.risks:
        if risk.name not in names:
            continue
        parts = []
        sizes = (len(labels[risk.name].own), n_fresh)
        for part, size in zip(PARTS, sizes, strict=True):
            rows = score_rows(risk, judge[part][risk.name], part, 1, size)
            parts.append(to_unit(in_range(risk, rows, part_of(part)), risk)[0])
        if (np.isnan(labels[risk.name].own) != np.isnan(parts[0])).any():
            raise LossError(
                f"{part_of(PARTS[0])}: a score of {risk.name!r} is NaN exactly where the loss is, "
                f"but for some label only one of them is. Whether an example counts must be known "
                f"without its label."
            )
        found[risk.name] = (parts[0], parts[1])
    return found
