"""Risks and problems that cannot be meant are refused."""

import numpy as np
import pytest

import riskpilot as rp
from tests.kits.bad_input import INF, NAN, P, assert_refused

# name: (error class, what the message must say, the call)
CASES = {
    # risks
    "a risk without a name": (rp.ProblemError, r"''", lambda: rp.Risk("", 0.1)),
    "a name that is a number": (rp.ProblemError, r"3", lambda: rp.Risk(3, 0.1)),
    "a limit that is NaN": (rp.ProblemError, r"limit.*nan", lambda: rp.Risk("e", NAN)),
    "a limit that is infinite": (rp.ProblemError, r"limit.*inf", lambda: rp.Risk("e", INF)),
    "a limit that is a word": (rp.ProblemError, r"'low'", lambda: rp.Risk("e", "low")),
    "a limit that is a truth value": (rp.ProblemError, r"True", lambda: rp.Risk("e", True)),
    "a limit at the bottom": (rp.ProblemError, r"is 0\.0", lambda: rp.Risk("e", 0)),
    "a limit at the top": (rp.ProblemError, r"is 1\.0", lambda: rp.Risk("e", 1)),
    "a limit outside the range": (rp.ProblemError, r"is 1\.5", lambda: rp.Risk("e", 1.5)),
    "a limit below a signed range": (rp.ProblemError, r"-2", lambda: rp.Risk("e", -2, low=-1)),
    "a range upside down": (rp.ProblemError, r"\[1\.0, 0\.0\]", lambda: rp.Risk("e", 0.5, 1, 0)),
    "a range without end": (rp.ProblemError, r"high.*inf", lambda: rp.Risk("e", 0.5, high=INF)),
    "a limit beyond all floats": (rp.ProblemError, r"limit.*1000", lambda: rp.Risk("e", 10**400)),
    "a limit that is a text": (
        rp.ProblemError,
        r"at_most.*'0\.1'",
        lambda: rp.Risk("e", at_most="0.1"),
    ),
    "a range too wide": (
        rp.ProblemError,
        r"at most 1e\+150 wide",
        lambda: rp.Risk("e", 1, -1e308, 1e308),
    ),
    "a name of bytes": (rp.ProblemError, r"b'e'", lambda: rp.Risk(b"e", 0.1)),
    "a name of a tuple": (rp.ProblemError, r"\('e',\)", lambda: rp.Risk(("e",), 0.1)),
    "a name with a control character": (
        rp.ProblemError,
        r"control characters.*\\x00",
        lambda: rp.Risk("e\x00", 0.1),
    ),
    "a name of half a character": (rp.ProblemError, r"udc80", lambda: rp.Risk("e\udc80", 0.1)),
    "a name that turns the text round": (rp.ProblemError, r"202e", lambda: rp.Risk("e\u202e", 0.1)),
    "a condition that is a number": (
        rp.ProblemError,
        r"conditional is True or False.* 1\.",
        lambda: rp.Risk("e", 0.1, conditional=1),
    ),
    "a complement of one's own": (
        rp.ProblemError,
        r"better when larger",
        lambda: rp.Risk("e", 0.1, complement=True),
    ),
    "a test that is no text": (
        rp.ProblemError,
        r"\['auto'\]",
        lambda: rp.Risk("e", 0.5, p_value=["auto"]),
    ),
    "a statistic that is a class": (
        rp.ProblemError,
        r"Mean",
        lambda: rp.Risk("e", 0.1, statistic=rp.Mean),
    ),
    "a statistic that cannot be hashed": (
        rp.ProblemError,
        r"array\(",
        lambda: rp.Risk("e", 0.1, statistic=np.zeros(2)),
    ),
    "groups of a mean": (
        rp.ProblemError,
        r"no groups.*'sex'",
        lambda: rp.Risk("e", 0.1, groups="sex"),
    ),
    "groups by a number": (rp.ProblemError, r"is 5\.", lambda: rp.WorstGroup(groups=5)),
    "groups named by bytes": (
        rp.ProblemError,
        r"xff.*decode",
        lambda: rp.WorstGroup(groups=(b"\xff",)),
    ),
    "a direction that is a number": (
        rp.ProblemError,
        r"directed is True or False",
        lambda: rp.GroupGap(("a", "b"), directed=1),
    ),
    "a share in per cent": (
        rp.ProblemError,
        r"\[0, 100\].*at_least=0\.9",
        lambda: rp.Risk("accuracy", at_least=90, high=100),
    ),
    "a lower limit on a ratio, the wrong way": (
        rp.ProblemError,
        r"ratio of 'e' is better when larger.*at_least=",
        lambda: rp.Risk("e", at_most=0.2, statistic=rp.Ratio()),
    ),
    "an unknown test": (rp.ProblemError, r"'clt'", lambda: rp.Risk("e", 0.5, p_value="clt")),
    # problems
    "no risk at all": (rp.ProblemError, r"at least one risk.*empty", lambda: rp.Problem([], "c")),
    "risks that are nothing": (rp.ProblemError, r"None", lambda: rp.Problem(None, "c")),
    "risks that are names": (rp.ProblemError, r"'error'", lambda: rp.Problem(["error"], "c")),
    "two risks of one name": (
        rp.ProblemError,
        r"'e'.*twice",
        lambda: rp.Problem([rp.Risk("e", 0.1)] * 2, "c"),
    ),
    "a free objective that is a risk": (
        rp.ProblemError,
        r"'e'.*twice",
        lambda: rp.Problem([rp.Risk("e", 0.1)], "e"),
    ),
    "no free objective": (rp.ProblemError, r"None", lambda: rp.Problem(P.risks, None)),
    "delta of zero": (rp.ProblemError, r"it is 0\.", lambda: rp.Problem(P.risks, "c", 0)),
    "delta of one": (rp.ProblemError, r"it is 1\.", lambda: rp.Problem(P.risks, "c", 1)),
    "a confidence for delta": (
        rp.ProblemError,
        r"0\.95.*delta=0\.05",
        lambda: rp.Problem(P.risks, "c", 0.95),
    ),
    "delta above one": (
        rp.ProblemError,
        r"is 1\.5\. Use delta=0\.1",
        lambda: rp.Problem(P.risks, "c", 1.5),
    ),
    "a range of one number": (
        rp.ProblemError,
        r"needs low < high, but it is \[0\.5, 0\.5\]",
        lambda: rp.Risk("e", 0.5, low=0.5, high=0.5),
    ),
    "delta in per cent": (rp.ProblemError, r"10", lambda: rp.Problem(P.risks, "c", 10)),
    "delta below zero": (rp.ProblemError, r"-0\.1", lambda: rp.Problem(P.risks, "c", -0.1)),
    "delta that is NaN": (rp.ProblemError, r"nan", lambda: rp.Problem(P.risks, "c", NAN)),
    "a limit for an unknown risk": (rp.ProblemError, r"'eror'", lambda: P.with_limits(eror=0.1)),
    "a stored problem without risks": (
        rp.ProblemError,
        r"risks",
        lambda: rp.Problem.from_dict({"minimize": "c", "delta": 0.1}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])
