"""The answer of a gate in words, as JSON, as JUnit XML and as Markdown."""

import json
from typing import Any
from xml.etree import ElementTree

from riskpilot.common import digest_of
from riskpilot.gate.checking import CheckedRisk, Gate

SCHEMA = "riskpilot gate 1"


def in_words(gate: Gate) -> str:
    """Say what was shown, in plain sentences."""
    first = (
        "Passed: every limit is shown to be kept."
        if gate.passed
        else "Not passed: it is not shown that every limit is kept."
    )
    lines = [f"  {_line(checked, gate.n_examples)}" for checked in gate.risks]
    return "\n".join([first, *lines, _spending(gate)])


def as_json(gate: Gate) -> str:
    """Write all of it as JSON, with its digest."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "passed": gate.passed,
        "delta": gate.delta,
        "question": gate.entry.number,
        "share": gate.entry.share,
        "spent": gate.entry.spent,
        "level": gate.level,
        "seed": gate.entry.seed,
        "n_examples": gate.n_examples,
        "new": dict(gate.new),
        "reference": None if gate.reference is None else dict(gate.reference),
        "risks": [_risk_as_json(checked) for checked in gate.risks],
        "asked": gate.digest,
        **gate.made,
    }
    return json.dumps({**data, "digest": digest_of(data)}, indent=2, allow_nan=False)


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
        line = _line(checked, gate.n_examples)
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
        f"| {_number(checked.new)} | {_number(checked.reference)} | {_number(checked.value)} "
        f"| {_number(checked.upper_bound)} | {checked.p_value:.2g} |"
        for checked in gate.risks
    ]
    return "\n".join(
        [
            f"### riskpilot gate: {'passed' if gate.passed else 'not passed'}",
            "",
            f"{gate.n_examples:,} examples. {_spending(gate)}",
            "",
            "| limit | | mean loss, new | mean loss, reference | value | at most | p-value |",
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


def _line(checked: CheckedRisk, n: int) -> str:
    """Say in one line what the examples say of a limit."""
    against = "" if checked.reference is None else f" against {_number(checked.reference)}"
    return (
        f"{checked.risk}: {'shown' if checked.passed else 'not shown'}; mean loss "
        f"{_number(checked.new)}{against} on {n:,} examples, a value of {_number(checked.value)}; "
        f"at most {_number(checked.upper_bound)} is shown (p = {checked.p_value:.2g}, "
        f"{checked.test})"
    )


def _spending(gate: Gate) -> str:
    """Say at which level the question was tested."""
    return (
        f"Question {gate.entry.number}, tested at level {gate.level:.3g}: a share of "
        f"{gate.entry.share:.3g} of delta = {gate.delta:g}, of which {gate.entry.spent:.3g} is "
        f"spent."
    )


def _number(value: float | None) -> str:
    """Write a number in short; a dash for none."""
    return "-" if value is None else f"{value:.4g}"


def _escaped(text: str) -> str:
    """Write a text into a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
