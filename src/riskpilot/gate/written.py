"""The answer of a gate in words, as JSON, as JUnit XML and as Markdown."""

import math
from typing import Any
from xml.etree import ElementTree

from riskpilot.common import (
    bound_in_words,
    exact,
    how_many,
    on_its_side,
    one_minus,
    signed_files,
)
from riskpilot.gate.checking import CheckedRisk, Gate
from riskpilot.guarantee import p_in_words

SCHEMA = "riskpilot-gate/1"


def in_words(gate: Gate) -> str:
    """Say what was shown, in plain sentences."""
    first = (
        "Passed: every limit is shown to be kept."
        if gate.passed
        else "Not passed: it is not shown that every limit is kept."
    )
    lines = [f"  {_line(checked, gate)}" for checked in gate.risks]
    return "\n".join([first, *lines, _spending(gate)])


def as_json(gate: Gate) -> str:
    """Write all of it as JSON, with its digest."""
    entry = gate.entry
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "passed": gate.passed,
        "delta": gate.delta,
        "level": gate.level,
        "question": None if entry is None else entry.number,
        "share": None if entry is None else entry.share,
        "spent": None if entry is None else entry.spent,
        "seed": gate.seed,
        "n_examples": gate.n_examples,
        "new": dict(gate.new),
        "reference": None if gate.reference is None else dict(gate.reference),
        "risks": [_risk_as_json(checked) for checked in gate.risks],
        "asked": gate.digest,
        **gate.made,
    }
    return signed_files.signed(data)


def as_junit(gate: Gate) -> str:
    """Write a test suite of JUnit with one case for each limit."""
    failures = sum(not checked.passed for checked in gate.risks)
    suite = ElementTree.Element(
        "testsuite",
        name="riskpilot gate",
        tests=str(len(gate.risks)),
        failures=str(failures),
        errors="0",
        skipped="0",
        timestamp=str(gate.made["created"]),
    )
    for checked in gate.risks:
        case = ElementTree.SubElement(
            suite, "testcase", classname="riskpilot.gate", name=str(checked.risk)
        )
        line = _line(checked, gate)
        if not checked.passed:
            failure = ElementTree.SubElement(case, "failure", message=line, type="NotShown")
            failure.text = _spending(gate)
        else:
            ElementTree.SubElement(case, "system-out").text = line
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def as_markdown(gate: Gate) -> str:
    """Write a summary for the page of a pull request."""
    rows = [
        f"| {_escaped(str(checked.risk))} | {'shown' if checked.passed else '**not shown**'} "
        f"| {_number(checked.value, checked)} | {_bound(checked)} | {_p(checked, gate)} "
        f"| {_number(checked.new)} | {_number(checked.reference)} |"
        for checked in gate.risks
    ]
    return "\n".join(
        [
            f"### riskpilot gate: {'passed' if gate.passed else 'not passed'}",
            "",
            f"{how_many(gate.n_examples, 'example')}. {_spending(gate)}",
            "",
            "| limit | | on these examples | shown | p-value | mean loss, new | reference |",
            "|---|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )


def _risk_as_json(checked: CheckedRisk) -> dict[str, Any]:
    """Write one limit, and what the examples say of it, in plain JSON values."""
    return {
        "risk": str(checked.risk),
        "passed": checked.passed,
        "value": checked.value,
        "new": checked.new,
        "reference": checked.reference,
        "upper_bound": checked.upper_bound,
        "p_value": checked.p_value,
        "test": checked.test,
    }


def _p(checked: CheckedRisk, gate: Gate) -> str:
    """Write the p-value of a limit, on its side of the level."""
    p = checked.p_value
    return p_in_words(math.log(p) if p > 0 else -math.inf, gate.level)


def _line(checked: CheckedRisk, gate: Gate) -> str:
    """Say in one line what the examples say of a limit."""
    against = (
        ""
        if checked.reference is None
        else f" (mean loss {_number(checked.new)} against {_number(checked.reference)})"
    )
    return (
        f"{checked.risk}: {'shown' if checked.passed else 'not shown'}; "
        f"{_number(checked.value, checked)} on {how_many(gate.n_examples, 'example')}{against}, "
        f"and {_bound(checked)} is shown (p = {_p(checked, gate)}, {checked.test})"
    )


def _spending(gate: Gate) -> str:
    """Say at which level the question was tested."""
    level = bound_in_words(gate.level, up=True, digits=3)
    if gate.entry is None:
        return f"Tested at level {level}, as a question on its own."
    return (
        f"Question {gate.entry.number} of the ledger, tested at level {level}: a share of "
        f"{gate.entry.share:.3g} of delta = {exact(gate.delta)}; "
        f"{bound_in_words(gate.entry.spent, up=True, digits=3)} of it is spent."
    )


def _bound(checked: CheckedRisk) -> str:
    """Say the strictest limit that would have been shown."""
    bound, limit = checked.upper_bound, checked.risk.limit
    assert limit is not None  # a gate has no open limits
    if checked.risk.losses_are_complement:
        return f"at least {bound_in_words(one_minus(bound), up=False, limit=one_minus(limit))}"
    return f"at most {bound_in_words(bound, up=True, limit=limit)}"


def _number(value: float | None, checked: CheckedRisk | None = None) -> str:
    """Write a number in short, a dash for none; of an accuracy itself instead of one minus it."""
    if value is None:
        return "-"
    if checked is None:
        return f"{value:.4g}"
    assert checked.risk.bound is not None
    turned = checked.risk.losses_are_complement
    return on_its_side(1 - value if turned else value, checked.risk.bound)


def _escaped(text: str) -> str:
    """Write a text into a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
