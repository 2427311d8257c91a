"""The promise, and all that is needed to check it again."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot import measures
from riskpilot.errors import CertificateError, RiskpilotError
from riskpilot.losses import LossMapping, calibration_losses, validation_losses
from riskpilot.notebook import card
from riskpilot.plan import TestPlan, TestResult, freeze_plan, run_test
from riskpilot.problem import Problem, Risk
from riskpilot.procedures import Procedure, describe, from_description

SCHEMA = "riskpilot-certificate/1"


@dataclass(frozen=True)
class Use:
    """Which question this is to the same calibration data, and what share of delta it may spend;
    ``ledger``: the digest of the study's ledger up to this question, where there is one."""

    number: int = 1
    spend: float = 1.0
    ledger: str | None = None


@dataclass(frozen=True)
class Certificate:
    """A selection in a form that can be stored, read and recomputed. Every field is plain JSON."""

    schema: str
    created: str
    problem: dict[str, Any]
    level: float
    promise: str
    n_validation: int
    n_calibration: int
    n_configs: int
    candidates: list[dict[str, Any]]
    procedure: dict[str, Any]
    families: dict[str, str]
    log_p: list[dict[str, float]]
    calibration_means: list[dict[str, float]]
    passed: list[bool]
    chosen: int | None
    validation_digest: str
    calibration_digest: str
    plan_digest: str
    seeds: dict[str, int | None]
    use: dict[str, Any]
    versions: dict[str, str]

    @property
    def config(self) -> dict[str, Any] | None:
        """The certified configuration, or None."""
        return None if self.chosen is None else dict(self.candidates[self.chosen]["config"])

    @property
    def digest(self) -> str:
        return _digest(asdict(self))

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "digest": self.digest}, indent=2, sort_keys=False)

    def save(self, path: str | Path) -> Path:
        """Write the certificate as JSON and return where it is."""
        path = Path(path)
        path.write_text(self.to_json() + "\n", encoding="utf-8")
        return path

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise CertificateError(
                f"A certificate is a JSON file, but this is not JSON: {error}. "
                f"Give the file that certificate.save() wrote."
            ) from error
        if not isinstance(data, dict) or "schema" not in data:
            raise CertificateError(
                "This JSON is not a riskpilot certificate: it has no schema. "
                "Give the file that certificate.save() wrote."
            )
        if data["schema"] != SCHEMA:
            raise CertificateError(
                f"This certificate has the schema {data['schema']!r}, and this version reads "
                f"{SCHEMA!r}. Verify it with the version it names: {data.get('versions')}."
            )
        stored = data.pop("digest", None)
        names = {field.name for field in fields(cls)}
        if data.keys() != names:
            odd = sorted(data.keys() ^ names)
            raise CertificateError(
                f"The certificate is incomplete or has been edited: see {', '.join(odd)}. "
                f"Take an untouched copy."
            )
        if stored != _digest(data):
            raise CertificateError(
                "The certificate was changed after it was written: its digest does not match its "
                "content. Take an untouched copy."
            )
        return cls(**data)

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CertificateError(
                f"The certificate {str(path)!r} cannot be read: {error}. "
                f"Give the path of a file that certificate.save() wrote."
            ) from error
        return cls.from_json(text)

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


@dataclass(frozen=True)
class Verification:
    """What a second computation found: ``ok``, and every difference in words."""

    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.ok:
            return "The certificate holds: the losses lead to the same selection."
        return "The certificate does not hold:\n" + "\n".join(f"- {d}" for d in self.differences)


def issue(
    plan: TestPlan,
    result: TestResult,
    procedure: Procedure,
    configs: Sequence[Mapping[str, Any]],
    chosen: int | None,
    *,
    created: str,
    use: Use,
    problem: Problem,
    search_seed: int | None,
) -> Certificate:
    """The certificate of one test; ``configs`` belong to the candidates, in testing order."""
    names = plan.problem.names
    candidates = [
        {
            "config": _plain(config),
            "row": row,
            "validation": dict(zip(names, risks, strict=True)),
            "free": free,
            "log_p_validation": _finite(log_p),
        }
        for config, row, risks, free, log_p in zip(
            configs, plan.order, plan.risks, plan.free, plan.log_p_validation, strict=True
        )
    ]
    return Certificate(
        schema=SCHEMA,
        created=created,
        problem=problem.to_dict(),
        level=plan.problem.delta,
        promise=_promise(plan.problem, None if chosen is None else _plain(configs[chosen]), use),
        n_validation=plan.n_validation,
        n_calibration=result.n_calibration,
        n_configs=plan.n_configs,
        candidates=candidates,
        procedure=_plain(describe(procedure)),
        families=dict(plan.families),
        log_p=[dict(zip(names, map(_finite, row), strict=True)) for row in result.log_p],
        calibration_means=[dict(zip(names, map(float, row), strict=True)) for row in result.means],
        passed=[bool(p) for p in result.passed],
        chosen=chosen,
        validation_digest=plan.validation_digest,
        calibration_digest=result.calibration_digest,
        plan_digest=plan.digest,
        seeds={"test": plan.seed, "search": search_seed},
        use=asdict(use),
        versions=dict(_versions()),
    )


def _promise(problem: Problem, config: Mapping[str, Any] | None, use: Use) -> str:
    if config is None:
        return "Nothing is promised: no configuration could be certified."
    limits = " and ".join(map(_limit, problem.risks))
    again = (
        ""
        if use.number == 1
        else f" This is question {use.number} to the same calibration data: the promise holds for "
        f"each question on its own, not for all of them at once."
    )
    return (
        f"With probability at least {100 * (1 - problem.delta):g}% over the draw of the "
        f"calibration data, the configuration {dict(config)} has {limits} on new data from the "
        f"same distribution.{again}"
    )


def _limit(risk: Risk) -> str:
    what = measures.words(risk.statistic)
    return f"{risk} ({what})" if what else str(risk)


def verify(
    certificate: Certificate,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    procedure: Procedure | None = None,
) -> Verification:
    """Recompute a certificate from the losses and say what differs.

    ``validation`` and ``calibration``: the tables of `select_from_losses`; calibration may hold
    the candidates alone, in testing order. ``procedure``: needed where the certificate was made
    with one of the user's own.
    """
    chosen_procedure = procedure or from_description(certificate.procedure)
    if chosen_procedure is None:
        raise CertificateError(
            f"The certificate was made with the procedure {certificate.procedure['name']!r}, which "
            f"riskpilot does not have. Pass it: verify(..., procedure=...)."
        )
    problem = Problem.from_dict({**certificate.problem, "delta": certificate.level})
    try:
        return _compare(certificate, problem, chosen_procedure, validation, calibration)
    except CertificateError:
        raise
    except RiskpilotError as error:
        return Verification((f"the losses cannot be used: {error}",))


def _compare(
    certificate: Certificate,
    problem: Problem,
    procedure: Procedure,
    validation: LossMapping,
    calibration: LossMapping,
) -> Verification:
    seed = certificate.seeds["test"] or 0
    seen = validation_losses(problem, validation)
    plan = freeze_plan(seen, seed=seed)
    differences = []
    if plan.validation_digest != certificate.validation_digest:
        differences.append("the validation losses are not the ones of the certificate")
    rows = [candidate["row"] for candidate in certificate.candidates]
    if list(plan.order) != rows:
        differences.append(
            f"the validation losses lead to the testing order {_short(plan.order)}, "
            f"the certificate has {_short(rows)}"
        )
    if plan.digest != certificate.plan_digest and not differences:
        differences.append(
            "the test plan (problem, tests or seed) is not the one of the certificate"
        )
    opened = calibration_losses(problem, calibration)
    whole = opened.n_configs == seen.n_configs
    if not whole and opened.n_configs != len(plan.order):
        return Verification(
            (
                *differences,
                f"calibration has {opened.n_configs} configurations, but {seen.n_configs} were "
                f"considered and {len(plan.order)} tested",
            )
        )
    candidates = range(len(plan.order))
    if whole and opened.digest(candidates) == certificate.calibration_digest:
        whole = False  # every configuration is a candidate, and they are in testing order
    result = run_test(plan, opened, procedure, None if whole else candidates)
    if result.calibration_digest != certificate.calibration_digest:
        differences.append("the calibration losses are not the ones of the certificate")
    differences.extend(_compare_results(certificate, problem, result))
    differences.extend(_compare_words(certificate, plan, result))
    chosen = choose(plan, result)
    if chosen != certificate.chosen:
        differences.append(
            f"the choice would be {_name(certificate, chosen)}, "
            f"the certificate has {_name(certificate, certificate.chosen)}"
        )
    return Verification(tuple(differences))


def _compare_results(certificate: Certificate, problem: Problem, result: TestResult) -> list[str]:
    if len(result.log_p) != len(certificate.log_p):
        return [f"{len(result.log_p)} candidates were tested, not {len(certificate.log_p)}"]
    differences = []
    for position, (row, stored) in enumerate(zip(result.log_p, certificate.log_p, strict=True)):
        for name, value in zip(problem.names, row, strict=True):
            if not math.isclose(_finite(value), stored[name], rel_tol=1e-9, abs_tol=1e-9):
                differences.append(
                    f"candidate {position + 1}: p-value of {name} is {math.exp(value):.6g}, "
                    f"the certificate has {math.exp(stored[name]):.6g}"
                )
    if list(map(bool, result.passed)) != certificate.passed:
        differences.append("other candidates pass the test than the certificate says")
    return differences


def _compare_words(certificate: Certificate, plan: TestPlan, result: TestResult) -> list[str]:
    """What the certificate tells its reader, against what the losses say."""
    names = plan.problem.names
    told: dict[str, tuple[Any, Any]] = {
        "number of configurations": (plan.n_configs, certificate.n_configs),
        "number of validation examples": (plan.n_validation, certificate.n_validation),
        "number of calibration examples": (result.n_calibration, certificate.n_calibration),
        "p-value family": (dict(plan.families), certificate.families),
        "level": (
            certificate.problem["delta"] * certificate.use["spend"],
            certificate.level,
        ),
        "promise": (
            _promise(plan.problem, certificate.config, Use(**certificate.use)),
            certificate.promise,
        ),
        "calibration means": (
            [dict(zip(names, map(float, row), strict=True)) for row in result.means],
            certificate.calibration_means,
        ),
        "validation means": (
            [dict(zip(names, row, strict=True)) for row in plan.risks],
            [candidate["validation"] for candidate in certificate.candidates],
        ),
        "free objective": (
            list(plan.free),
            [candidate["free"] for candidate in certificate.candidates],
        ),
        "p-values on validation": (
            list(map(_finite, plan.log_p_validation)),
            [candidate["log_p_validation"] for candidate in certificate.candidates],
        ),
    }
    return [
        f"the {what} is {_brief(found)}, the certificate has {_brief(stored)}"
        for what, (found, stored) in told.items()
        if not _close(found, stored)
    ]


def _close(one: Any, other: Any) -> bool:
    """Equal, up to the rounding of another machine."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def choose(plan: TestPlan, result: TestResult) -> int | None:
    """eq:select: the position of the candidate that passed with the best free objective."""
    valid = np.flatnonzero(result.passed)
    return int(min(valid, key=lambda i: plan.free[i])) if len(valid) else None


def _name(certificate: Certificate, position: int | None) -> str:
    if position is None:
        return "nothing"
    if position >= len(certificate.candidates):
        return f"candidate {position + 1}"
    return str(certificate.candidates[position]["config"])


def _short(order: Sequence[int]) -> str:
    told = ", ".join(map(str, order[:8]))
    return f"[{told}{', ...' if len(order) > 8 else ''}]"


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("riskpilot", "numpy", "scipy", "optuna")}


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _finite(log_p: float) -> float:
    """JSON has no infinity; nothing distinguishes p-values this small."""
    return max(float(log_p), -1e300)


def _plain(value: Any) -> Any:
    """A JSON-ready copy; numpy numbers become Python's."""
    return json.loads(json.dumps(value, default=_to_python))


def _to_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
