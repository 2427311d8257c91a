"""The promise, and all that is needed to check it again."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskpilot.common import Shape, card, digest_of, signed_files
from riskpilot.guarantee.certificate_shape import SCHEMA, a_certificate
from riskpilot.guarantee.promise_words import in_earlier_words, promise_of
from riskpilot.guarantee.question import (
    Question,
    evaluated_rows,
    foretold_rows,
    numbers_of,
    runs,
)
from riskpilot.guarantee.signed_records import SignedRecord
from riskpilot.guarantee.testing import Labelling, TestPlan, TestResult
from riskpilot.guarantee.uses import Use


@dataclass(frozen=True)
class Certificate(SignedRecord):
    """A selection in a form that can be stored, read and recomputed. Every field is plain JSON.

    Attributes
    ----------
    schema : str
        The name of this form.
    created : str
        When the question was first asked, in UTC.
    problem : dict
        The problem, as ``Problem.to_dict`` writes it.
    level : float
        The share of the problem's delta that was spent: the delta of the test.
    promise : str
        What is promised, in words.
    groups : dict
        For each risk that is about groups, the groups that it is about.
    n_validation, n_calibration, n_configs : int
        The numbers of examples, and of configurations that were considered.
    configs : list of dict, or None
        What every row that was considered stands for; None where rows go by their index.
    table : dict, or None
        That the losses came as counts; or which columns of a table said what its rows are about,
        and the seed with which its examples were drawn into two splits, where they were. None
        where the losses came as arrays.
    known_order : bool
        Whether the testing order was known before any data; ``validation_loss`` of the candidates
        is empty where no validation losses were needed.
    candidates : list of dict
        The configurations that were tested, in testing order, each with its numbers on
        validation: ``validation_loss`` by risk, ``free``, and the log p-value that the order went
        by.
    space : dict, or None
        The search space over which the risks were smoothed, where they were.
    estimates : list of list of float, or None
        The smoothed losses of every configuration, one for each risk, by which filter and order
        went; None where they went by ``validation_loss``. Validation losses, ``configs`` and
        ``space`` give them again.
    procedure, families : dict
        How several candidates were tested, and the test of each risk.
    sequential : dict, or None
        Where labels arrived one after another (`Calibration`): their largest number ``horizon``,
        how delta is spent on the way, how many ``labels`` each candidate got, after how many
        somebody looked (``looks``, as first and last of each run), and by risk of 0/1 losses that
        all count the ``boundary``: the label at which a count of 0, 1, 2, ... begins to pass.
        ``calibration_digest`` is then that of the losses in the order of the labels.
    judge : dict, or None
        Where a judge helped: how many ``unlabelled`` examples it scored, the ``correlation`` of its
        scores with the losses and about how many labels it ``saved``, by candidate and risk, and
        the ``digest`` of the scores.
    log_p, calibration_loss : list of dict
        What the calibration data said of each candidate, by risk: the log p-value, and the mean or
        other statistic of the losses. As ``limit`` in ``problem`` it is a loss: of
        ``precision >= 0.9`` it is one minus the precision, and at most 0.1.
    passed : list of bool
        Which candidates passed.
    chosen : int, or None
        The place of the chosen one among the candidates.
    validation_digest, calibration_digest, plan_digest : str
        Digests of the losses, and of all that was settled before calibration was opened.
    trials : list of pairs, or None
        The numbers of the trials that were considered, as first and last of each run.
    seeds : dict
        The seed that was given for the test, the seed of the order in which bets saw the
        calibration examples (drawn from it and the validation losses), the randomness that was
        drawn for that order where validation losses are hardly random, and the search's seed.
    use : dict
        Which question this is to the same calibration data, and where others were asked.
    versions : dict
        The versions of the packages that computed it.
    foretold : list of dict, or None
        Of the rows whose evaluation a race ended when enough was known: ``row``, and how many of
        the ``n_validation`` examples were evaluated, ``n_evaluated``. Their validation losses of
        the other examples are foretold from neighbouring configurations, and so is what
        ``validation_loss``, ``free`` and the order make of them; calibration losses never are.
        None, and absent from the file, where every row was evaluated on all examples.
    """

    _kind: ClassVar[str] = "certificate"
    _schema: ClassVar[str] = SCHEMA
    _form: ClassVar[Shape] = a_certificate
    _absent: ClassVar[frozenset[str]] = frozenset({"foretold"})

    schema: str
    created: str
    problem: dict[str, Any]
    level: float
    promise: str
    groups: dict[str, list[str]]
    n_validation: int
    n_calibration: int
    n_configs: int
    configs: list[dict[str, Any]] | None
    table: dict[str, Any] | None
    known_order: bool
    candidates: list[dict[str, Any]]
    space: dict[str, Any] | None
    estimates: list[list[float]] | None
    procedure: dict[str, Any]
    families: dict[str, str]
    sequential: dict[str, Any] | None
    judge: dict[str, Any] | None
    log_p: list[dict[str, float]]
    calibration_loss: list[dict[str, float]]
    passed: list[bool]
    chosen: int | None
    validation_digest: str
    calibration_digest: str
    plan_digest: str
    trials: list[list[int]] | None
    seeds: dict[str, int | None]
    use: dict[str, Any]
    versions: dict[str, str]
    foretold: list[dict[str, int]] | None = None

    @property
    def config(self) -> dict[str, Any] | None:
        """The certified configuration, or None."""
        return None if self.chosen is None else dict(self.candidates[self.chosen]["config"])

    @property
    def trial(self) -> int | None:
        """The number of the certified trial in its study; None without a study or a choice."""
        if self.chosen is None or self.trials is None:
            return None
        row: int = self.candidates[self.chosen]["row"]
        return numbers_of(self.trials)[row]

    @property
    def fingerprint(self) -> str:
        """The digest of all fields with numbers to six digits, which is that of every machine."""
        return digest_of(_coarse(self._fields()))

    @property
    def evaluated(self) -> dict[int, int]:
        """The numbers of validation examples of the rows whose evaluation a race ended."""
        return evaluated_rows(self.foretold)

    @property
    def in_earlier_words(self) -> "tuple[Certificate, ...]":
        """The same certificate with its promise in the words that earlier certificates had."""
        promises = in_earlier_words(self.promise, self.config, self.level)
        return tuple(replace(self, promise=promise) for promise in promises)

    def has_fingerprint(self, fingerprint: str) -> bool:
        """Whether a ledger's fingerprint is that of this certificate, in whichever words.

        Earlier certificates did not say what is foretold.
        """
        words = (self, *self.in_earlier_words)
        found = (*words, *(replace(one, foretold=None) for one in words))
        return any(fingerprint == one.fingerprint for one in found)

    @property
    def outcome(self) -> dict[str, Any]:
        """What a ledger keeps of this certificate: the choice, the promise and two digests."""
        return {
            "config": self.config,
            "promise": self.promise,
            "certificate": self.digest,
            "fingerprint": self.fingerprint,
        }

    @property
    def content(self) -> dict[str, Any]:
        """The question that this certificate answers, in the form of `Question.content`."""
        return {
            "asked": self.problem,
            "level": self.level,
            "spend": self.use["spend"],
            "procedure": self.procedure,
            "groups": self.groups,
            "seeds": self.seeds,
            "trials": self.trials,
            "horizon": None if self.sequential is None else self.sequential["horizon"],
            "plan": self.plan_digest,
        }

    def __str__(self) -> str:
        return self.promise

    def _repr_html_(self) -> str:
        rows = [
            ("configurations", f"{self.n_configs:,}, of which {len(self.candidates):,} tested"),
            ("examples", f"{self.n_validation:,} validation, {self.n_calibration:,} calibration"),
            ("procedure", self.procedure["name"]),
            ("question to this data", self.use["number"]),
            ("created", self.created),
            ("digest", self.digest[:16]),
        ]
        return card("Certificate", [self.promise], rows=rows, good=self.chosen is not None)


def issue(question: Question, result: TestResult, use: Use | None = None) -> Certificate:
    """Write down the answer to a question; the first to its data unless ``use`` says otherwise."""
    use = use or Use()
    plan, content = question.plan, question.content
    names = plan.problem.names
    chosen = choose(plan, result)
    candidates = [
        {
            "config": config,
            "row": row,
            "validation_loss": dict(zip(names, risks, strict=True)) if plan.n_validation else {},
            "free": free,
            "log_p_validation": finite(log_p),
        }
        for config, row, risks, free, log_p in zip(
            question.candidates,
            plan.order,
            plan.risks,
            plan.free,
            plan.log_p_validation,
            strict=True,
        )
    ]
    return Certificate(
        schema=SCHEMA,
        created=use.created,
        problem=content["asked"],
        level=content["level"],
        promise=promise_of(question, chosen, use, result),
        groups=content["groups"],
        n_validation=plan.n_validation,
        n_calibration=result.n_calibration,
        n_configs=plan.n_configs,
        configs=None if question.configs is None else list(question.configs),
        table=None if question.table is None else dict(question.table),
        known_order=plan.known_order,
        candidates=candidates,
        space=question.space,
        estimates=None if plan.estimates is None else [list(row) for row in plan.estimates],
        procedure=content["procedure"],
        families=dict(plan.families),
        sequential=None if result.labelling is None else labelling_as_json(result.labelling),
        judge=None if result.judge is None else result.judge.to_dict(),
        log_p=[dict(zip(names, map(finite, row), strict=True)) for row in result.log_p],
        calibration_loss=[dict(zip(names, map(float, row), strict=True)) for row in result.means],
        passed=[bool(p) for p in result.passed],
        chosen=chosen,
        validation_digest=plan.validation_digest,
        calibration_digest=result.calibration_digest,
        plan_digest=content["plan"],
        trials=content["trials"],
        seeds=content["seeds"],
        use={
            "number": use.number,
            "spend": question.spend,
            "ledger": use.ledger,
            "elsewhere": [dict(other) for other in use.elsewhere],
        },
        versions=dict(use.versions),
        foretold=foretold_rows(question.evaluated),
    )


def check_certificate(certificate: Certificate) -> None:
    """Raise one sentence where a field is not what it must be."""
    signed_files.check_form(certificate._fields(), "certificate", a_certificate)


def labelling_as_json(labelling: Labelling) -> dict[str, Any]:
    """Write how labels came, for a certificate."""
    return {
        "horizon": labelling.horizon,
        "spending": "delta * (labels / horizon)**2",
        "labels": [int(labels) for labels in labelling.labels],
        "looks": runs(labelling.looks),
        "boundary": {name: list(steps) for name, steps in labelling.steps.items()},
    }


def choose(plan: TestPlan, result: TestResult) -> int | None:
    """Find the position of the candidate that passed with the best free objective."""
    # eq:select
    valid = np.flatnonzero(result.passed)
    return int(min(valid, key=lambda i: plan.free[i])) if len(valid) else None


def finite(log_p: float) -> float:
    """Replace minus infinity, which JSON does not have, by a number below every other log p."""
    return max(float(log_p), -1e300)


def _coarse(value: Any) -> Any:
    """Round every number that is not whole to six digits."""
    if isinstance(value, dict):
        return {name: _coarse(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_coarse(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
