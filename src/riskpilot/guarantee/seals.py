"""Seals: the digest of a frozen plan, to be deposited elsewhere before its question is asked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from riskpilot.common import (
    Shape,
    anything,
    canonical,
    card,
    digest_of,
    how_many,
    list_of,
    mapping_of,
    moment,
    optional,
    record,
    signed_files,
    text,
    whole,
)
from riskpilot.guarantee.certificate import Certificate
from riskpilot.guarantee.certificate_shape import CONTENT, VERSIONS
from riskpilot.guarantee.question import Question, question_in_words
from riskpilot.guarantee.signed_records import SignedRecord
from riskpilot.guarantee.uses import stamp
from riskpilot.problem import Problem
from riskpilot.statistics import GroupName

SCHEMA = "riskpilot-seal/1"

_FIELDS = record(
    schema=text,
    created=moment,
    study=text,
    problem=text,
    **CONTENT,
    configs=optional(list_of(mapping_of(anything))),
    questions=whole(),
    versions=VERSIONS,
)
_WORDS = {
    "asked": "problem",
    "level": "level",
    "spend": "share of delta",
    "procedure": "procedure",
    "groups": "groups",
    "seeds": "seeds",
    "trials": "trials",
    "horizon": "horizon",
    "configs": "configurations",
    "plan": "plan",
}


@dataclass(frozen=True)
class Seal(SignedRecord):
    """A question that was settled before it was put to calibration data.

    It is made from validation data alone, so that it cannot know whether other studies, or people,
    had looked at the calibration losses by then; it knows the ledger of its own study.

    Whoever keeps a copy that the asker cannot change can tell later whether the certificate
    answers this question, see ``verify(certificate, ..., seal=...)``.

    Attributes
    ----------
    schema : str
        The name of this form.
    created : str
        When the seal was made, in UTC, by the clock of whoever made it.
    study : str
        The name of the study.
    problem : str
        What is asked, in words.
    asked : dict
        The same, as ``Problem.to_dict`` writes it.
    level, spend : float
        The delta of the test, and the share of the problem's delta that it is.
    procedure, groups, seeds : dict
        How several candidates are tested, the groups that limits are about, and the seeds.
    trials : list of pairs
        The numbers of the trials that are considered, as first and last of each run.
    horizon : int, or None
        The largest number of labels, where they arrive one after another (`Calibration`).
    plan : str
        The digest of the frozen plan.
    configs : list of dict
        The configurations that are considered.
    questions : int
        How many questions the study's ledger had when the seal was made.
    versions : dict
        The versions of the packages that made the plan.
    """

    _kind: ClassVar[str] = "seal"
    _schema: ClassVar[str] = SCHEMA
    _form: ClassVar[Shape] = _FIELDS

    schema: str
    created: str
    study: str
    problem: str
    asked: dict[str, Any]
    level: float
    spend: float
    procedure: dict[str, Any]
    groups: dict[str, list[str]]
    seeds: dict[str, int | None]
    trials: list[list[int]] | None
    horizon: int | None
    plan: str
    configs: list[dict[str, Any]] | None
    questions: int
    versions: dict[str, str]

    def __str__(self) -> str:
        n = 0 if self.configs is None else len(self.configs)
        ledger = f"The ledger of study {self.study!r}"
        if not self.questions:
            known = f"{ledger} had no question yet."
        else:
            asked = how_many(self.questions, "question")
            known = f"{ledger} had {asked} by then: calibration data was open already."
        return (
            f"Sealed on {self.created}, before this question was asked: {self.problem} "
            f"{how_many(n, 'configuration')}. {known}\nDigest: {self.digest}"
        )

    def _repr_html_(self) -> str:
        return card("Seal", str(self).splitlines(), rows=[("created", self.created)])


def make_seal(question: Question, study: str, questions: int) -> Seal:
    """Write down a question before it is asked."""
    return Seal(
        schema=SCHEMA,
        study=study,
        problem=str(question),
        **question.content,
        configs=None if question.configs is None else list(question.configs),
        questions=questions,
        **stamp(),
    )


def differences_from_seal(seal: Seal, certificate: Certificate) -> list[str]:
    """Say where a certificate answers another question than the one that was sealed."""
    sealed: Mapping[str, Any] = asdict(seal)
    signed_files.check_form(sealed, "seal", _FIELDS)
    found = {**certificate.content, "configs": certificate.configs}
    differing = [name for name in _WORDS if canonical(sealed[name]) != canonical(found[name])]
    found_apart = [
        f"the seal has the {_WORDS[name]} {_shown(name, sealed)}, "
        f"the certificate has {_shown(name, found)}"
        for name in differing
        if name != "plan" or differing == ["plan"]  # it differs where anything else does
    ]
    words = _in_words(seal)
    if words != seal.problem:
        found_apart.append(
            f"the seal says {_cut(seal.problem)!r} in words, but what it holds is {_cut(words)!r}"
        )
    if certificate.created < seal.created:
        found_apart.append(
            f"the question was asked on {certificate.created}, before it was sealed on "
            f"{seal.created}"
        )
    return found_apart


def _in_words(seal: Seal) -> str:
    """Say what a seal asks, from the fields that a certificate is compared with."""
    asked = Problem.from_dict(seal.asked)
    groups: dict[str, list[GroupName]] = {
        name: [
            (str(group[0]), str(group[1]))
            if isinstance(group, list) and len(group) == 2
            else str(group)
            for group in groups
        ]
        for name, groups in seal.groups.items()
    }
    return question_in_words(asked.spending(seal.spend), groups, seal.horizon)


def _shown(name: str, data: Mapping[str, Any]) -> str:
    value = data[name]
    if name == "configs" and value is not None:
        return f"{how_many(len(value), 'configuration')} with the digest {digest_of(value)[:16]}"
    return _cut(str(value))


def _cut(words: str) -> str:
    return words if len(words) <= 200 else words[:197] + "..."
