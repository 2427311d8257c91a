"""What differs between a certificate and the one that was computed again, in words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from riskpilot.common import canonical, how_many, nearly_equal
from riskpilot.guarantee import Certificate, config_of, p_in_words
from riskpilot.losses import ValidationLosses
from riskpilot.selection.words import ended_rows, first_examples


def differences_in_words(
    found: Certificate, stored: Certificate, seen: ValidationLosses
) -> Iterator[str]:
    """Describe every field that differs; the plan's digest only where nothing else does."""
    words = (found, *found.in_earlier_words)
    found = next((one for one in words if one.promise == stored.promise), found)
    sentences = [*_named_differences(found, stored, seen), *_other_differences(found, stored)]
    if not sentences and found.plan_digest != stored.plan_digest:
        sentences.append("the test plan (problem, tests or seed) is not the one of the certificate")
    yield from sentences


_NAMED = {
    "calibration_digest": "the calibration losses are not the ones of the certificate",
    "passed": "other candidates pass the test than the certificate says",
}
# Fields that get words of their own, or follow from the rest.
_DESCRIBED_APART = {
    *_NAMED,
    "validation_digest",
    "foretold",
    "configs",
    "candidates",
    "log_p",
    "chosen",
    "plan_digest",
}


def _named_differences(
    found: Certificate, stored: Certificate, seen: ValidationLosses
) -> Iterator[str]:
    """Write the differences that have a sentence of their own."""
    if found.validation_digest != stored.validation_digest:
        yield _of_validation(stored, seen)
    if found.foretold != stored.foretold:
        yield differing_marks(found.evaluated, stored)
    for name, words in _NAMED.items():
        if getattr(found, name) != getattr(stored, name):
            yield words
    yield from _configurations(found, stored)
    rows = [[candidate["row"] for candidate in one.candidates] for one in (found, stored)]
    if rows[0] != rows[1]:
        yield (
            f"the validation losses lead to the testing order {_short(rows[0])}, "
            f"the certificate has {_short(rows[1])}"
        )
    elif not nearly_equal(found.candidates, stored.candidates):
        yield (
            f"the candidates are {_brief(found.candidates)}, "
            f"the certificate has {_brief(stored.candidates)}"
        )
    yield from _p_values(found, stored)
    if found.chosen != stored.chosen:
        yield f"the choice would be {_chosen(found)}, the certificate has {_chosen(stored)}"


def _of_validation(stored: Certificate, seen: ValidationLosses) -> str:
    """Say that validation losses differ, and which of them nobody can evaluate again."""
    words = "the validation losses are not the ones of the certificate"
    if not stored.evaluated:
        return words
    return (
        f"{words}. A race ended {ended_rows(stored)} after the first {first_examples(stored)} and "
        f"foretold their other losses: whoever evaluates them on all examples finds others, and "
        f"only the recorded losses, those of the study or of export_losses, can be the same."
        f"{_of_whole_candidates(stored, seen)}"
    )


def _of_whole_candidates(stored: Certificate, seen: ValidationLosses) -> str:
    """Say after a space whether candidates that were evaluated in full differ as well."""
    names = [risk.name for risk in seen.problem.risks]
    whole = [one for one in stored.candidates if one["row"] not in stored.evaluated]
    if not whole:
        return " No candidate was evaluated in full."
    differing = [
        one["row"]
        for one in whole
        if not nearly_equal(
            [*map(float, seen.values[one["row"]]), float(seen.free[one["row"]])],
            [*(one["validation_loss"].get(name) for name in names), one["free"]],
        )
    ]
    few = f"{len(whole):,} of {how_many(len(stored.candidates), 'candidate')}"
    if not differing:
        return f" For those that were evaluated in full, {few}, the means are the same."
    return (
        f" Of those that were evaluated in full, {few}, {len(differing):,} "
        f"{'differs' if len(differing) == 1 else 'differ'} as well (row {differing[0]}), which no "
        f"race explains."
    )


def differing_marks(found: Mapping[int, int], stored: Certificate) -> str:
    """Name the first row of which something else is said to have been evaluated."""
    said = stored.evaluated
    row = min(row for row in {*found, *said} if found.get(row) != said.get(row))
    one, other = (
        "all validation examples" if n is None else how_many(n, "validation example")
        for n in (found.get(row), said.get(row))
    )
    return f"row {row} was evaluated on {one}, the certificate has {other}"


def _configurations(found: Certificate, stored: Certificate) -> Iterator[str]:
    """Name the first row that stands for another configuration."""
    if canonical(found.configs) == canonical(stored.configs):
        return
    for row in range(found.n_configs):
        one = config_of(found.configs, row)
        known = stored.configs is None or row < len(stored.configs)
        other = config_of(stored.configs, row) if known else None
        if canonical(one) != canonical(other):
            yield f"row {row} of the losses is the configuration {one}, the certificate has {other}"
            return
    yield "the configurations are not those of the certificate"


def _p_values(found: Certificate, stored: Certificate) -> Iterator[str]:
    """Name every p-value that differs."""
    if len(found.log_p) != len(stored.log_p):
        yield f"the number of tested candidates is {len(found.log_p)}, not {len(stored.log_p)}"
        return
    for position, (row, other) in enumerate(zip(found.log_p, stored.log_p, strict=True), 1):
        if row.keys() != other.keys():
            yield f"candidate {position}: p-values of {list(row)} were computed, not {list(other)}"
            continue
        for name, value in row.items():
            if not math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-9):
                yield (
                    f"candidate {position}: p-value of {name} is {p_in_words(value)}, "
                    f"the certificate has {p_in_words(other[name])}"
                )


def _other_differences(found: Certificate, stored: Certificate) -> Iterator[str]:
    """Name every other field that differs, with both values."""
    for field in fields(Certificate):
        one, other = getattr(found, field.name), getattr(stored, field.name)
        if field.name not in _DESCRIBED_APART and not nearly_equal(one, other):
            words = field.name.removeprefix("n_").replace("_", " ")
            words = f"number of {words}" if field.name.startswith("n_") else words
            yield f"{words}: computed {_brief(one)}, the certificate has {_brief(other)}"


def _brief(value: Any) -> str:
    """Write a value in at most 200 characters."""
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _chosen(certificate: Certificate) -> str:
    """Write the choice of a certificate."""
    return "nothing" if certificate.config is None else str(certificate.config)


def _short(order: Sequence[int]) -> str:
    first = ", ".join(map(str, order[:8]))
    return f"[{first}{', ...' if len(order) > 8 else ''}]"
