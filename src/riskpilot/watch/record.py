"""All that a watch knows: what is watched, the bets, the past; written as signed JSON."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import (
    FloatArray,
    anything,
    digest,
    digest_of,
    finite_number,
    list_of,
    mapping_of,
    number,
    optional,
    record,
    signed_files,
    text,
    whole,
)
from riskpilot.errors import CertificateError, ProblemError, RiskpilotError, shown
from riskpilot.guarantee import VERSIONS, Certificate, check_certificate, stamp
from riskpilot.losses import Seen, check_judged
from riskpilot.problem import Problem
from riskpilot.watch.blocks import Block
from riskpilot.watch.capital import Accounts
from riskpilot.watch.history import History, no_history
from riskpilot.watch.promises import Promise, Stream, promises_of
from riskpilot.watch.rule import Rule, make_rule
from riskpilot.watch.state import State, begin, from_dict, to_dict

SCHEMA = "riskpilot-watch-file/1"
# Below this, the capital that raises an alarm is no number of double precision any more.
_SMALLEST_DELTA = 1e-100


@dataclass(frozen=True)
class Subject:
    """What is watched: what a watch needs of its certificate, and how it began.

    ``certificate``: its digest. ``asked``, ``groups``, ``config``, ``promise``: as it has them.
    ``judged``: the risks with which a judge helps; ``entropy``: what the order in which its scores
    of fresh examples are used is drawn from, where one does.
    """

    certificate: str
    asked: dict[str, Any]
    groups: dict[str, list[Any]]
    config: dict[str, Any]
    promise: str
    delta: float
    largest_weight: float | None
    judged: list[str] = field(default_factory=list)
    entropy: int | None = None

    @classmethod
    def of(
        cls,
        certificate: Certificate | str | Path,
        delta: float,
        largest_weight: float | None,
        judge: str | Sequence[str] | None,
    ) -> "Subject":
        """Take what is needed from a certificate; refuse one that promises nothing."""
        read = read_certificate(certificate)
        if read.config is None:
            raise CertificateError(
                "A watch is about a promise, but this certificate promises nothing: no "
                "configuration could be certified. Certify one first."
            )
        level = finite_number(delta)
        if level is None or not _SMALLEST_DELTA <= level <= 0.5:
            raise ProblemError(
                f"delta is the probability of a false alarm over the whole life of the watch and "
                f"must lie in [{_SMALLEST_DELTA:g}, 0.5], but it is {shown(delta)}. Use delta=0.05."
            )
        largest = None if largest_weight is None else finite_number(largest_weight)
        if largest_weight is not None and (largest is None or not largest > 0):
            raise ProblemError(
                f"largest_weight is one over the smallest probability with which an example is "
                f"labelled, a number above 0, but it is {shown(largest_weight)}. Leave it out "
                f"where all examples are labelled with the same probability."
            )
        judged = [] if judge is None else _judged(read, judge, sampled=largest is not None)
        return cls(
            certificate=read.digest,
            asked=read.problem,
            groups=read.groups,
            config=read.config,
            promise=read.promise,
            delta=level,
            largest_weight=largest,
            judged=judged,
            entropy=secrets.randbits(53) if judged else None,
        )

    @cached_property
    def problem(self) -> Problem:
        """The problem of the certificate."""
        return Problem.from_dict(self.asked)

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """How each risk is watched."""
        return promises_of(self.problem, self.groups, sampled=self.largest_weight is not None)

    @cached_property
    def streams(self) -> tuple[tuple[str, Stream], ...]:
        """Every stream with the name of its risk, in the order of the columns of values."""
        return tuple(
            (promise.risk.name, stream) for promise in self.promises for stream in promise.streams
        )

    @cached_property
    def weighted(self) -> bool:
        """Whether the labels of any risk have weights."""
        return any(promise.weighted for promise in self.promises)

    def rule(self) -> Rule:
        """Choose the bets: every risk may raise an equal share of the false alarms."""
        n = len(self.promises)
        return make_rule(
            [stream.unit_limit for _, stream in self.streams],
            delta=self.delta,
            shares=[stream.share / n for _, stream in self.streams],
            weighted=[p.weighted for p in self.promises for _ in p.streams],
            judged=[p.risk.name in self.judged for p in self.promises for _ in p.streams],
        )

    def check_same(
        self,
        certificate: Certificate | str | Path | None,
        delta: float | None,
        largest_weight: float | None,
        place: str,
    ) -> None:
        """Refuse another certificate, delta or largest weight than those it was begun with."""
        for name, given in (("delta", delta), ("largest_weight", largest_weight)):
            kept = getattr(self, name)
            if given is not None and finite_number(given) != kept:
                raise ProblemError(
                    f"A watch keeps the {name} that it was begun with: the one in {place} has "
                    f"{shown(kept)}, but {shown(given)} is given. Leave it out, or begin a new "
                    f"watch in a place of its own."
                )
        if certificate is None:
            return
        found = read_certificate(certificate)
        if found.digest != self.certificate:
            raise CertificateError(
                f"The watch in {place} is of the certificate {self.certificate[:16]}, but the one "
                f"that is given is {found.digest[:16]}. Begin the watch of a new certificate in a "
                f"place of its own."
            )


def read_certificate(certificate: Certificate | str | Path) -> Certificate:
    """Load a certificate, or check the one that is given."""
    if isinstance(certificate, str | Path):
        return Certificate.load(certificate)
    if not isinstance(certificate, Certificate):
        raise CertificateError(
            f"A watch takes a Certificate or the path of one, but got {shown(certificate)}. "
            f"Write Watch(selection.certificate), or Watch("
            f'"certificate.json").'
        )
    check_certificate(certificate)
    return certificate


def _judged(certificate: Certificate, judge: str | Sequence[str], *, sampled: bool) -> list[str]:
    """Check the names of the risks with which a judge helps."""
    problem = Problem.from_dict(certificate.problem)
    names = [judge] if isinstance(judge, str) else judge
    known = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    if not known or not names or not set(names) <= set(problem.names):
        raise ProblemError(
            f"judge names the risks with which a judge helps, among {', '.join(problem.names)}, "
            f"but it is {shown(judge)}. Write judge={problem.names[:1]!r}, or leave it out."
        )
    if sampled:
        raise ProblemError(
            "A judge helps where all examples are labelled with the same probability, but "
            "largest_weight says that they are not. Leave one of the two out."
        )
    for risk in problem.risks:
        if risk.name in names:
            check_judged(risk)
    return [name for name in problem.names if name in names]


class WatchRecord:
    """What a watch knows, from its beginning on.

    ``blocks``: for each promise, the blocks of examples that it fills. ``alarm_times``: when each
    alarm of the state came. ``seen``: the ids of labels that were counted; ``fresh``:
    those of a judge's fresh examples that were used. ``repeated``: how many labels were passed over
    because of theirs. ``files``: the digests of whole files that were counted.
    """

    def __init__(
        self,
        subject: Subject,
        rule: Rule,
        state: State,
        *,
        blocks: tuple[tuple[Block, ...], ...],
        history: History,
        alarm_times: tuple[str, ...] = (),
        seen: Seen | None = None,
        fresh: Seen | None = None,
        repeated: int = 0,
        files: tuple[str, ...] = (),
    ) -> None:
        self.subject, self.rule = subject, rule
        self.accounts = Accounts(rule, state)
        self.blocks, self.history = blocks, history
        self.alarm_times = alarm_times
        self.seen = Seen() if seen is None else seen
        self.fresh = Seen() if fresh is None else fresh
        self.repeated, self.files = repeated, files

    @property
    def state(self) -> State:
        """The capital and the sums of all streams."""
        return self.accounts.state()

    def take(
        self,
        values: FloatArray,
        weights: FloatArray | None,
        scores: FloatArray | None,
        blocks: tuple[tuple[Block, ...], ...],
        time: str,
    ) -> None:
        """Take the next labels; values, weights and scores of shape (b, K), which were checked."""
        accounts, start, n = self.accounts, 0, len(values)
        if weights is not None:
            weights = np.where(np.isnan(values), 0.0, weights)
        while start < n:
            stop = min(start + self.history.until_next(accounts.rows), n)
            part = slice(start, stop)
            w, z = (None if one is None else one[part] for one in (weights, scores))
            accounts.take(values[part], w, z)
            start = stop
            if accounts.rows % self.history.step == 0:
                self.history = self.history.noted(
                    accounts.rows, time, accounts.sums(), accounts.wealth()
                )
        self.blocks = blocks
        self.alarm_times += (time,) * (len(accounts.alarms) - len(self.alarm_times))

    def to_json(self) -> tuple[str, str]:
        """Write the record as signed JSON; return it with its digest."""
        data = {
            "schema": SCHEMA,
            "subject": asdict(self.subject),
            "watch": to_dict(self.rule, self.state),
            "blocks": [[block.to_dict() for block in part] for part in self.blocks],
            "history": self.history.to_dict(),
            "alarm_times": list(self.alarm_times),
            "seen": self.seen.to_text(),
            "fresh": self.fresh.to_text(),
            "repeated": self.repeated,
            "files": list(self.files),
            "versions": stamp()["versions"],
        }
        return signed_files.signed(data), digest_of(data)

    @classmethod
    def from_json(cls, written: str) -> tuple["WatchRecord", str]:
        """Read what `to_json` wrote; return it with its digest."""
        data = signed_files.read_signed(written, "watch", SCHEMA, _NAMES, _FORM)
        try:
            subject = Subject(**data["subject"])
            rule, state = from_dict(data["watch"])
            _ = subject.promises
            found = cls(
                subject,
                rule,
                state,
                blocks=tuple(tuple(map(Block.from_dict, part)) for part in data["blocks"]),
                history=History.from_dict(data["history"], rule.n_streams),
                alarm_times=tuple(data["alarm_times"]),
                seen=Seen.from_text(data["seen"]),
                fresh=Seen.from_text(data["fresh"]),
                repeated=data["repeated"],
                files=tuple(data["files"]),
            )
        except CertificateError:
            raise
        except (RiskpilotError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise CertificateError(
                f"The watch is malformed: {error}. Go back to a copy, or begin a new watch."
            ) from None
        found._check()
        return found, digest_of(data)

    def _check(self) -> None:
        """Refuse parts that do not belong to each other."""
        fits = (
            self.rule.limits == self.subject.rule().limits
            and self.rule.delta == self.subject.delta
            and self.rule.judged == bool(self.subject.judged)
            and [len(part) for part in self.blocks] == [p.n_blocks for p in self.subject.promises]
            and len(self.alarm_times) == len(self.accounts.alarms)
        )
        if not fits:
            raise CertificateError(
                "The watch is malformed: its limits, blocks and alarms are not those of its "
                "certificate. Go back to a copy, or begin a new watch."
            )


def new_record(subject: Subject) -> WatchRecord:
    """Begin a watch, before its first label."""
    rule = subject.rule()
    return WatchRecord(
        subject,
        rule,
        begin(rule),
        blocks=tuple((Block(),) * promise.n_blocks for promise in subject.promises),
        history=no_history(rule.n_streams),
    )


_FORM = record(
    schema=text,
    subject=record(
        certificate=digest,
        asked=mapping_of(anything),
        groups=mapping_of(list_of(anything)),
        config=mapping_of(anything),
        promise=text,
        delta=number(0.0, 0.5),
        largest_weight=optional(number(0.0)),
        judged=list_of(text),
        entropy=optional(whole()),
    ),
    watch=mapping_of(anything),
    blocks=list_of(list_of(mapping_of(anything))),
    history=record(
        step=whole(1),
        rows=list_of(whole(1)),
        times=list_of(text),
        sums=list_of(anything),
        wealth=list_of(anything),
    ),
    alarm_times=list_of(text),
    seen=text,
    fresh=text,
    repeated=whole(),
    files=list_of(digest),
    versions=VERSIONS,
)
_NAMES = (
    "schema",
    "subject",
    "watch",
    "blocks",
    "history",
    "alarm_times",
    "seen",
    "fresh",
    "repeated",
    "files",
    "versions",
)
