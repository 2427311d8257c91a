"""Which use of the calibration data a certificate is, when it was made and with which versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _installed() -> Mapping[str, str]:
    return {name: version(name) for name in ("riskpilot", "numpy", "scipy", "optuna")}


def versions() -> dict[str, str]:
    """Return the versions of the packages that compute a certificate."""
    return dict(_installed())


def stamp() -> dict[str, Any]:
    """Say when something is written, and by which versions, as its fields of these names."""
    return {"created": now(), "versions": versions()}


@dataclass(frozen=True)
class Use:
    """The place of a question among all to the same calibration data, its time and its versions.

    ``ledger``: the digest of the study's ledger up to this question, where there is one;
    ``elsewhere``: the questions of other studies to the same data that came before it.
    """

    number: int = 1
    ledger: str | None = None
    elsewhere: tuple[Mapping[str, Any], ...] = ()
    created: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=versions)
