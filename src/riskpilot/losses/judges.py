"""Scores of a judge on their way in: of the labelled calibration examples, and of fresh ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from riskpilot.common import Array, FloatArray, how_many
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.losses.beside import digest_of_bytes, digest_of_numbers
from riskpilot.losses.evaluation import check_names
from riskpilot.losses.example_ids import read_example_ids
from riskpilot.losses.intake import number_array
from riskpilot.losses.ranges import in_range, to_unit
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Mean

JudgeMapping = Mapping[str, Any]
"""``{"labelled": {...}, "unlabelled": {...}}``: scores by the name of the risk; the ``"ids"`` of
the unlabelled examples may stand beside them."""

PARTS = ("labelled", "unlabelled")


@dataclass(frozen=True)
class JudgeScores:
    """Scores of a frozen judge on the unit scale of the losses.

    ``labelled``: by risk, of the m calibration examples, shape (n, m), or (1, m) where they are the
    same for all configurations; ``unlabelled``: of M fresh examples, shape (n, M) or (1, M).
    """

    labelled: Mapping[str, FloatArray]
    unlabelled: Mapping[str, FloatArray]

    def rows(self, name: str, rows: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the scores of some configurations, of one risk."""
        found = (self.labelled[name], self.unlabelled[name])
        one, other = (part if len(part) == 1 else part[list(rows)] for part in found)
        return one, other

    def digest(self, rows: Sequence[int]) -> str:
        """Compute the digest of the scores of some configurations."""
        parts = []
        for name in sorted(self.labelled):
            for part in self.rows(name, rows):
                parts += [name.encode(), f"{part.shape}".encode(), digest_of_numbers(part)]
        return digest_of_bytes(*parts).hex()


def judged_risks(problem: Problem, judge: Any) -> tuple[str, ...]:
    """Say which risks a judge helps with; it must be known before calibration is opened.

    Only names and shapes of the mapping are looked at.
    """
    if judge is None:
        return ()
    both = isinstance(judge, Mapping) and set(PARTS) <= set(judge) <= {*PARTS, "ids"}
    if not both or not all(isinstance(judge[part], Mapping) for part in PARTS):
        raise LossError(
            f"judge holds the scores of the labelled calibration examples and of fresh unlabelled "
            f"ones, by risk, but it is {shown(judge)}. Write "
            f'judge={{"labelled": {{"{problem.names[0]}": array}}, '
            f'"unlabelled": {{"{problem.names[0]}": array}}}}.'
        )
    for part in PARTS:
        check_names(judge[part], f"judge, {part}")
    one, other = (set(judge[part]) for part in PARTS)
    odd = sorted((one ^ other) | (one - set(problem.names)))
    if odd or not one:
        raise LossError(
            f"A judge scores risks of the problem ({', '.join(problem.names)}), each on labelled "
            f"and on unlabelled examples, but {shown(odd[0]) if odd else 'it scores none'}"
            f"{' does not fit' if odd else ''}. Give both kinds of scores under the same names."
        )
    for risk in problem.risks:
        if risk.name in one:
            check_judged(risk)
    return tuple(name for name in problem.names if name in one)


def check_judged(risk: Risk) -> None:
    """Refuse a judge of what is no plain mean: its scores stand for the loss itself."""
    plain = isinstance(risk.statistic, Mean) and risk.weights is None
    if not plain or risk.p_value not in ("auto", "betting"):
        what = risk.words or f"p_value={risk.p_value!r}"
        raise ProblemError(
            f"Risk {risk.name!r}: a judge helps with the mean of losses, tested by betting, but "
            f"this risk has {what}: the scores stand for the loss of an example, not for what is "
            f"limited here. Leave this risk out of judge=."
        )


def read_judge(
    problem: Problem, judge: JudgeMapping | None, n_configs: int, n_examples: int
) -> JudgeScores | None:
    """Check the scores of a judge; the calibration examples are ``n_examples``."""
    names = judged_risks(problem, judge)
    if judge is None or not names:
        return None
    risks = {risk.name: risk for risk in problem.risks}

    def read(part: str, m: int | None) -> dict[str, FloatArray]:
        found = {}
        for name in names:
            array = score_rows(risks[name], judge[part][name], part, n_configs, m)
            found[name] = to_unit(in_range(risks[name], array, part_of(part)), risks[name])
        return found

    ids = read_example_ids(judge.get("ids"), "judge, ids")
    n_fresh = None if ids is None else len(ids)
    return JudgeScores(read("labelled", n_examples), read("unlabelled", n_fresh))


def part_of(part: str) -> str:
    """Name a part of a judge's scores in messages."""
    return f"judge, {part}"


def score_rows(
    risk: Risk,
    given: Any,
    part: str,
    n_configs: int,
    m: int | None,
    *,
    missing_as_nan: bool | None = None,
) -> Array:
    """Read scores with one row, or one for each configuration; their range is not looked at.

    ``m``: the number of examples, where it is known; ``missing_as_nan``: as the risk has it by
    default.
    """
    what = f"{part_of(part)}: the scores of {risk.name!r}"
    as_nan = risk.conditional if missing_as_nan is None else missing_as_nan
    array: Array = number_array(given, what, missing_as_nan=as_nan)
    array = array[None] if array.ndim == 1 else array
    fits = array.ndim == 2 and len(array) in (1, n_configs) and m in (None, array.shape[1])
    if not fits or array.size == 0:
        examples = "at least one example" if m is None else how_many(m, "example")
        raise LossError(
            f"{what} are those of {examples}, one row for all configurations or one for each of "
            f"{n_configs}, but their shape is {array.shape}. Score the same examples in the same "
            f"order as the losses."
        )
    return array
