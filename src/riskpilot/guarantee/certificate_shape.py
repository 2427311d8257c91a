"""What each field of a certificate must be, checked when one is read and before it is verified."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from riskpilot.common import (
    Shape,
    ShapeError,
    also,
    anything,
    canonical,
    digest,
    flag,
    integer,
    list_of,
    mapping_of,
    moment,
    number,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.errors import RiskpilotError, shown
from riskpilot.guarantee.question import how_many_in
from riskpilot.guarantee.sequential import MOST_LABELS
from riskpilot.problem import Problem

SCHEMA = "riskpilot-certificate/3"


def a_problem(value: Any, place: str) -> None:
    """Accept a problem exactly as ``Problem.to_dict`` writes it."""
    try:
        written = canonical(Problem.from_dict(value).to_dict())
    except (RiskpilotError, AttributeError, LookupError, TypeError, ValueError, OverflowError) as e:
        raise ShapeError(f"{place} must be a problem, but it cannot be read: {e}") from None
    if written != canonical(value):
        raise ShapeError(f"{place} must be a problem as riskpilot writes it, but it differs")


_NAMED = record(name=text)
_GRAPHICAL = record(name=text, weights=list_of(real), edges=list_of(list_of(real)))
_CUSTOM = record(name=text, origin=text, digest=digest)
_RUNS = list_of(list_of(whole(), 2))
MOST_TRIALS = 10**6  # that a question may consider


def a_procedure(value: Any, place: str) -> None:
    """Accept the description of a procedure."""
    name = value.get("name") if isinstance(value, dict) else None
    shape = _GRAPHICAL if name == "graphical" else _NAMED
    if isinstance(name, str) and name.startswith("custom: "):
        shape = _CUSTOM
    shape(value, place)


def _ascending_runs(what: str, most: int) -> Shape:
    """Accept numbers as first and last of each run, in ascending order and with gaps between runs.

    Only the ends are compared: a run of a few characters may stand for more numbers than there is
    memory for, and whoever reads the numbers one by one relies on it that there are at most
    ``most`` of them.
    """

    def check(value: Any, place: str) -> None:
        _RUNS(value, place)
        is_ascending = all(first <= last for first, last in value) and all(
            last + 1 < first for (_, last), (first, _) in pairwise(value)
        )
        if not value or not is_ascending:
            raise ShapeError(f"{place} must be ascending runs of {what}, but it is {shown(value)}")
        if how_many_in(value) > most:
            raise ShapeError(
                f"{place} must be at most {most:,} {what}, but there are {how_many_in(value):,}"
            )

    return check


some_runs = _ascending_runs("trial numbers", MOST_TRIALS)
"""Accept the numbers of the trials that were considered."""


def a_table(value: Any, place: str) -> None:
    """Accept what is said of a table of losses: that it held counts, or which columns it had."""
    if isinstance(value, dict) and value.get("kind") == "counts":
        record(kind=text)(value, place)
        return
    record(
        kind=text,
        config=list_of(text),
        example=optional(text),
        split=anything,
        draw=optional(whole()),
    )(value, place)
    share = isinstance(value["split"], float) and 0 < value["split"] < 1
    if value["kind"] != "rows" or not (share or isinstance(value["split"], str)):
        raise ShapeError(
            f"{place} must be counts, or rows with the column or the share of their split, but it "
            f"is {value}"
        )


def a_horizon(value: Any, place: str) -> None:
    """Accept a largest number of labels that a question can have."""
    whole(1)(value, place)
    if value > MOST_LABELS:
        raise ShapeError(f"{place} must be at most {MOST_LABELS:,} labels, but it is {value:,}")


_P = number(-1e300, 1e-6)
_LEVEL = number(0.0, 1.0)
VERSIONS = record(riskpilot=text, numpy=text, scipy=text, optuna=text)
ELSEWHERE = list_of(record(study=text, use=whole(1), digest=digest))
# What ledgers, seals and certificates say of a question alike (`Question.content`).
CONTENT: Mapping[str, Shape] = {
    "asked": a_problem,
    "level": _LEVEL,
    "spend": _LEVEL,
    "procedure": a_procedure,
    "groups": mapping_of(list_of(anything)),
    "seeds": record(
        test=whole(), shuffle=whole(), entropy=optional(whole()), search=optional(integer)
    ),
    "trials": optional(some_runs),
    "horizon": optional(a_horizon),
    "plan": digest,
}
_SEQUENTIAL = record(
    horizon=a_horizon,
    spending=text,
    labels=list_of(whole()),
    looks=_ascending_runs("numbers of labels", MOST_LABELS),
    boundary=mapping_of(list_of(whole(1))),
)
_JUDGE = record(
    unlabelled=mapping_of(whole(1)),
    correlation=list_of(mapping_of(number(-1.0, 1.0))),
    saved=list_of(mapping_of(whole())),
    digest=digest,
)
_CANDIDATE = record(
    config=mapping_of(anything),
    row=whole(),
    validation_loss=mapping_of(number()),
    free=number(),
    log_p_validation=_P,
)
FORETOLD = list_of(record(row=whole(), n_evaluated=whole(1)))
_FIELDS = record(
    schema=text,
    created=moment,
    problem=CONTENT["asked"],
    level=CONTENT["level"],
    promise=text,
    groups=CONTENT["groups"],
    n_validation=whole(),
    n_calibration=whole(1),
    n_configs=whole(1),
    configs=optional(list_of(mapping_of(anything))),
    table=optional(a_table),
    known_order=flag,
    candidates=list_of(_CANDIDATE),
    space=optional(mapping_of(mapping_of(anything))),
    estimates=optional(list_of(list_of(number()))),
    procedure=CONTENT["procedure"],
    families=mapping_of(text),
    sequential=optional(_SEQUENTIAL),
    judge=optional(_JUDGE),
    log_p=list_of(mapping_of(_P)),
    calibration_loss=list_of(mapping_of(number())),
    passed=list_of(flag),
    chosen=optional(whole()),
    validation_digest=digest,
    calibration_digest=digest,
    plan_digest=CONTENT["plan"],
    trials=CONTENT["trials"],
    seeds=CONTENT["seeds"],
    use=record(
        number=whole(1), spend=CONTENT["spend"], ledger=optional(digest), elsewhere=ELSEWHERE
    ),
    versions=VERSIONS,
)


def a_certificate(data: Any, place: str) -> None:
    """Accept the fields of a certificate."""
    also(_FIELDS, foretold=FORETOLD)(data, place)
    candidates, chosen = data["candidates"], data["chosen"]
    if chosen is not None and chosen >= len(candidates):
        raise ShapeError(
            f"chosen must be one of the {len(candidates)} candidates, but it is {chosen}"
        )
    if not data["n_validation"] and not data["known_order"]:
        raise ShapeError("n_validation must be above 0 where the order was not known")
    trials = data["trials"]
    if trials is not None and how_many_in(trials) != data["n_configs"]:
        raise ShapeError(
            f"trials must be as many as the {data['n_configs']} configurations that were "
            f"considered, but there are {how_many_in(trials):,}"
        )
    if data["sequential"] is not None:
        _check_looks(data["sequential"]["looks"], data["sequential"]["labels"])
    if "foretold" in data:
        check_foretold(data["foretold"], data["n_configs"], data["n_validation"])
    if data["use"]["spend"] == 0 or data["level"] == 0:
        raise ShapeError("level and use.spend must be above 0, but one of them is 0")


def _check_looks(looks: Sequence[Sequence[int]], labels: Sequence[int]) -> None:
    """Refuse a last look after more or fewer labels than any candidate has got."""
    if looks[-1][1] != max(labels, default=0):
        raise ShapeError(
            f"sequential.looks must end with the largest of sequential.labels, which is "
            f"{max(labels, default=0)}, but they end with {looks[-1][1]}"
        )


def check_foretold(found: Sequence[Mapping[str, int]], n_configs: int, n_examples: int) -> None:
    """Refuse rows that are not there, are not ascending, or were evaluated on all examples."""
    rows = [one["row"] for one in found]
    if not rows or rows != sorted(set(rows)) or rows[-1] >= n_configs:
        raise ShapeError(
            f"foretold must name ascending rows below {n_configs}, or be absent, but it names "
            f"{rows}"
        )
    most = max(one["n_evaluated"] for one in found)
    if most >= n_examples:
        raise ShapeError(
            f"foretold must have fewer examples than the {n_examples} of validation, but one row "
            f"has {most}"
        )
