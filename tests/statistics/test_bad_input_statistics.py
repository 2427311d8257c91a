"""Statistics that cannot be meant are refused."""

import pytest

import riskpilot as rp
from tests.kits.bad_input import assert_refused

# name: (error class, what the message must say, the call)
CASES = {
    "a statistic that is a word": (
        rp.ProblemError,
        r"'median'",
        lambda: rp.Risk("e", 0.1, statistic="median"),
    ),
    "a level in per cent": (rp.ProblemError, r"95", lambda: rp.CVaR(95)),
    "a level of one": (rp.ProblemError, r"is 1", lambda: rp.Quantile(1)),
    "groups that are one name": (rp.ProblemError, r"'men'", lambda: rp.WorstGroup("men")),
    "a gap of one group": (rp.ProblemError, r"\('a',\)", lambda: rp.GroupGap(("a",))),
    "a group named twice": (rp.ProblemError, r"'a', 'a'", lambda: rp.GroupGap(("a", "a"))),
    "a direction without groups": (rp.ProblemError, r"None", lambda: rp.Ratio(directed=True)),
    "a ratio of signed losses": (
        rp.ProblemError,
        r"low is -1",
        lambda: rp.Risk("e", 0.1, low=-1, statistic=rp.Ratio()),
    ),
    "a limit that no gap exceeds": (
        rp.ProblemError,
        r"is 1\.0",
        lambda: rp.Risk("e", 1, statistic=rp.GroupGap()),
    ),
    "a test that a quantile does not have": (
        rp.ProblemError,
        r"Quantile.*'hoeffding'",
        lambda: rp.Risk("e", 0.1, p_value="hoeffding", statistic=rp.Quantile()),
    ),
    "groups by an array": (
        rp.ProblemError,
        r"groups=\"sex\"",
        lambda: rp.Risk("e", 0.1, statistic=rp.GroupGap(), groups=[0, 1]),
    ),
    "two limits": (rp.ProblemError, r"'e'.*one limit", lambda: rp.Risk("e", 0.1, at_most=0.2)),
    "a lower limit on an error": (
        rp.ProblemError,
        r"'error'.*at_most=",
        lambda: rp.Risk("error", at_least=0.9),
    ),
    "an upper limit on precision": (
        rp.ProblemError,
        r"'precision'.*at_least=",
        lambda: rp.Risk("precision", at_most=0.1),
    ),
    "a lower limit on an unknown metric": (
        rp.ProblemError,
        r"'precison'.*'precision'",
        lambda: rp.Risk("precison", at_least=0.9),
    ),
    "a lower limit that is a word": (
        rp.ProblemError,
        r"'high'",
        lambda: rp.Risk("recall", at_least="high"),
    ),
    "groups named as a risk": (
        rp.ProblemError,
        r"'e'.*twice",
        lambda: rp.Problem([rp.Risk("e", 0.1, statistic=rp.GroupGap(), groups="e")], "c"),
    ),
    "a stored statistic of another kind": (
        rp.ProblemError,
        r"'median'",
        lambda: rp.Risk.from_dict({"name": "e", "limit": 0.1, "statistic": {"kind": "median"}}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])
