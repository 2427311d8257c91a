"""Malformed input: each case is a call, the error it must raise, and what the message must say.

A message holds the rule, the value that breaks it, and a way out. The tables of cases stand in
``test_bad_input_*.py`` of the rooms.
"""

import re

import numpy as np
import pytest

import riskpilot as rp

P = rp.Problem([rp.Risk("error", 0.2)], "cost")
TWO = rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost")
OPEN = rp.Problem([rp.Risk("error", None)], "cost")
RNG = np.random.default_rng(0)
V = {"error": RNG.random((3, 50)) < 0.4, "cost": np.arange(3.0)}
C = {"error": RNG.random((3, 60)) < 0.4}
NAN, INF = float("nan"), float("inf")


def table(problem=P, validation=V, calibration=C, **kwargs):
    return rp.select_from_losses(problem, validation=validation, calibration=calibration, **kwargs)


def assert_refused(case):
    """The call raises exactly this error, and its message says all that helps."""
    error, pattern, call = case
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is error
    assert re.search(pattern, message, re.DOTALL), message
    assert_rule_value_and_way_out(message)


def assert_rule_value_and_way_out(message):
    """At least two sentences: what must hold and what was found, then what to do."""
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", message)
    assert len(sentences) >= 2, message
    assert message.rstrip().endswith((".", ")", "]", "}")), message
    assert len(message) > 60, message
