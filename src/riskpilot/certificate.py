"""The promise, and all that is needed to check it again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.errors import CertificateError
from riskpilot.notebook import card
from riskpilot.plan import TestPlan, TestResult
from riskpilot.problem import Problem, Risk
from riskpilot.procedures import Procedure, describe

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
    """A selection in a form that can be stored, read and recomputed. Every field is plain JSON.

    ``estimates``: of the risks of every configuration that was considered, in rows, where filter
    and order of the candidates went by smoothed ones; None where they went by the means.
    """

    schema: str
    created: str
    problem: dict[str, Any]
    level: float
    promise: str
    n_validation: int
    n_calibration: int
    n_configs: int
    candidates: list[dict[str, Any]]
    estimates: list[list[float]] | None
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
            "log_p_validation": finite(log_p),
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
        promise=promise_of(plan.problem, None if chosen is None else _plain(configs[chosen]), use),
        n_validation=plan.n_validation,
        n_calibration=result.n_calibration,
        n_configs=plan.n_configs,
        candidates=candidates,
        estimates=None if plan.estimates is None else [list(row) for row in plan.estimates],
        procedure=_plain(describe(procedure)),
        families=dict(plan.families),
        log_p=[dict(zip(names, map(finite, row), strict=True)) for row in result.log_p],
        calibration_means=[dict(zip(names, map(float, row), strict=True)) for row in result.means],
        passed=[bool(p) for p in result.passed],
        chosen=chosen,
        validation_digest=plan.validation_digest,
        calibration_digest=result.calibration_digest,
        plan_digest=plan.digest,
        seeds={"test": plan.seed, "shuffle": plan.shuffle, "search": search_seed},
        use=asdict(use),
        versions=dict(_versions()),
    )


def promise_of(problem: Problem, config: Mapping[str, Any] | None, use: Use) -> str:
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
    return f"{risk} ({risk.words})" if risk.words else str(risk)


def choose(plan: TestPlan, result: TestResult) -> int | None:
    """eq:select: the position of the candidate that passed with the best free objective."""
    valid = np.flatnonzero(result.passed)
    return int(min(valid, key=lambda i: plan.free[i])) if len(valid) else None


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("riskpilot", "numpy", "scipy", "optuna")}


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def finite(log_p: float) -> float:
    """JSON has no infinity; nothing distinguishes p-values this small."""
    return max(float(log_p), -1e300)


def _plain(value: Any) -> Any:
    """A JSON-ready copy; numpy numbers become Python's."""
    return json.loads(json.dumps(value, default=_to_python))


def _to_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
