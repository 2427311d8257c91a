"""Groups, labels, references, weights and predictions that cannot be used are refused."""

import numpy as np
import pytest

import riskpilot as rp
from tests.kits.bad_input import INF, NAN, C, V, assert_refused, table


def grouped(groups, statistic=None):
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=statistic or rp.GroupGap())], "cost")
    beside = {} if groups is None else {"groups": groups}
    validation = {**V, "groups": np.arange(50) % 2}
    return table(problem, validation, {**C, **beside})


def against(reference, **risk):
    """A limit on a difference; None leaves the reference out."""
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=rp.Difference(), **risk)], "cost")
    beside = {} if reference is None else {"reference": reference}
    return table(problem, {**V, "reference": np.zeros(50)}, {**C, **beside})


def parted(label, groups=None):
    """A gap within labels; None leaves the labels out."""
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=rp.GroupGap(within="label"))], "cost")
    beside = {"groups": np.arange(60) % 2 if groups is None else groups}
    if label is not None:
        beside["label"] = label
    validation = {**V, "groups": np.arange(50) % 2, "label": np.arange(50) // 2 % 2}
    return table(problem, validation, {**C, **beside})


def weighed(weights, statistic=None, largest=2.0):
    """Weighted examples; None leaves the weights out."""
    risk = rp.Risk(
        "error", 0.2, statistic=statistic or rp.Mean(), weights="w", largest_weight=largest
    )
    beside = {} if weights is None else {"w": weights}
    problem = rp.Problem([risk], "cost")
    if risk.needs_groups:
        beside["groups"] = np.arange(60) % 2
    validation = {**V, "w": np.ones(50), "groups": np.arange(50) % 2}
    if not risk.needs_groups:
        del validation["groups"]
    return table(problem, validation, {**C, **beside})


# name: (error class, what the message must say, the call)
CASES = {
    # groups
    "no groups": (rp.LossError, r"'groups'.*missing", lambda: grouped(None)),
    "groups of another length": (rp.LossError, r"\(59,\)", lambda: grouped([0, 1] * 29 + [0])),
    "groups that differ by configuration": (
        rp.LossError,
        r"\(3, 60\)",
        lambda: grouped(np.arange(180).reshape(3, 60) % 7),
    ),
    "a group that is NaN": (rp.LossError, r"missing: nan", lambda: grouped([NAN] + [1.0] * 59)),
    "a group that is NaN in an array": (
        rp.LossError,
        r"NaN",
        lambda: grouped(np.array([NAN] + [1.0] * 59)),
    ),
    "a group that is missing": (rp.LossError, r"missing", lambda: grouped([None] + ["a"] * 59)),
    "a group that validation does not know": (
        rp.LossError,
        r"'2' is in calibration",
        lambda: grouped([0, 1, 2] * 20),
    ),
    "a group that calibration lacks": (
        rp.LossError,
        r"'1' is in validation",
        lambda: grouped([0] * 60, rp.WorstGroup()),
    ),
    "a group without examples": (
        rp.LossError,
        r"'x' has no example",
        lambda: grouped([0, 1] * 30, rp.WorstGroup(("0", "x"))),
    ),
    "a comparison of one group": (rp.LossError, r"two groups", lambda: grouped([0] * 60)),
    # weights and predictions
    "a weight above its bound": (
        rp.LossError,
        r"\[0, 2\].*3",
        lambda: rp.weighted([0, 1], [0.5, 3], largest=2),
    ),
    "a weight below zero": (
        rp.LossError,
        r"-0\.5",
        lambda: rp.weighted([0, 1], [-0.5, 1], largest=2),
    ),
    "a weight that is NaN": (
        rp.LossError,
        r"nan",
        lambda: rp.weighted([0, 1], [NAN, 1], largest=2),
    ),
    "weights of another mean": (
        rp.LossError,
        r"mean of 2",
        lambda: rp.weighted(np.zeros(90), np.full(90, 2.0), largest=2),
    ),
    "weights of another length": (
        rp.LossError,
        r"\(3,\)",
        lambda: rp.weighted([0, 1], [1, 1, 1], largest=2),
    ),
    "weighted losses below zero": (
        rp.LossError,
        r"-1",
        lambda: rp.weighted([-1, 1], [1, 1], largest=2),
    ),
    "scores instead of predictions": (
        rp.LossError,
        r"float64.*scores >= 0\.5",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [0, 1], [0.2, 0.7]),
    ),
    "labels without an end": (
        rp.LossError,
        r"labels are classes",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [0, INF], [0, 1]),
    ),
    "classes that floats do not tell apart": (
        rp.LossError,
        r"2\^53",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [0, 1e19], [0, 1]),
    ),
    "masked predictions": (
        rp.LossError,
        r"mask",
        lambda: rp.losses_from_predictions(
            rp.Risk("error", 0.1), [0, 1], np.ma.array([0, 1], mask=[0, 1])
        ),
    ),
    "no predictions": (
        rp.LossError,
        r"\(0,\)",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [], []),
    ),
    "a code of abstention that is a word": (
        rp.LossError,
        r"'never'",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [0, 1], [0, 1], abstain="never"),
    ),
    "labels to compare within that nobody gave": (
        rp.LossError,
        r"'region'.*groups=",
        lambda: rp.losses_from_predictions(
            rp.Risk("error", 0.1, statistic=rp.GroupGap(within="region")),
            [0, 1],
            [0, 1],
            groups=["a", "b"],
        ),
    ),
    "one array for two kinds of groups": (
        rp.LossError,
        r"'race' and 'sex'.*one array",
        lambda: rp.losses_from_predictions(
            [
                rp.Risk("worst_group_error", 0.1, groups="sex"),
                rp.Risk("error_gap", 0.1, groups="race"),
            ],
            [0, 1],
            [0, 1],
            groups=["a", "b"],
        ),
    ),
    "losses of another shape than predictions": (
        rp.LossError,
        r"\(1,\) and \(2,\)",
        lambda: rp.check_losses(rp.Risk("error", 0.1), {"error": [0]}, [0, 1], [0, 1]),
    ),
    "no losses to check": (
        rp.LossError,
        r"'error'.*not given",
        lambda: rp.check_losses(rp.Risk("error", 0.1), {}, [0, 1], [0, 1]),
    ),
    "losses for what is no risk": (
        rp.ProblemError,
        r"'error'",
        lambda: rp.losses_from_predictions("error", [0, 1], [0, 1]),
    ),
    "a largest weight that is a word": (
        rp.LossError,
        r"'two'",
        lambda: rp.weighted([0, 1], [1, 1], largest="two"),
    ),
    "predictions of another length": (
        rp.LossError,
        r"\(2,\).*\(3,\)",
        lambda: rp.losses_from_predictions(rp.Risk("error", 0.1), [0, 1], [0, 1, 1]),
    ),
    "predictions for a risk of no known name": (
        rp.ProblemError,
        r"harm",
        lambda: rp.losses_from_predictions(rp.Risk("harm", 0.1), [0, 1], [0, 1]),
    ),
    "a gap without groups": (
        rp.LossError,
        r"'groups'",
        lambda: rp.losses_from_predictions(
            rp.Risk("demographic_parity_gap", at_most=0.1), [0, 1], [0, 1]
        ),
    ),
    "a statistic of no losses": (rp.LossError, r"\(2,\)", lambda: rp.measure(rp.Mean(), [0, 1])),
    # differences
    "a reference that is no name": (
        rp.ProblemError,
        r"None.*reference=",
        lambda: rp.Difference(None),
    ),
    "no reference": (
        rp.LossError,
        r"'reference'.*missing.*\"reference\": array",
        lambda: against(None),
    ),
    "a reference of another length": (
        rp.LossError,
        r"\(60,\).*\(59,\)",
        lambda: against(np.zeros(59)),
    ),
    "a reference of words": (rp.LossError, r"'reference'.*<U4", lambda: against(["good"] * 60)),
    "a reference out of range": (
        rp.LossRangeError,
        r"\[0, 1\].*1\.5.*read off the sample proves nothing.*high=\.\.\.",
        lambda: against(np.full(60, 1.5)),
    ),
    "a reference with NaN": (
        rp.LossError,
        r"NaN.*conditional=True",
        lambda: against(np.full(60, NAN)),
    ),
    "references that differ by configuration": (
        rp.LossError,
        r"\(3, 60\).*same for every configuration",
        lambda: against(np.eye(3, 60)),
    ),
    "a difference by Hoeffding": (
        rp.ProblemError,
        r"Difference is tested by auto or betting.*'hoeffding'",
        lambda: against(np.zeros(60), p_value="hoeffding"),
    ),
    "a difference that no loss can have": (
        rp.ProblemError,
        r"\(-1\.0, 1\.0\).*1\.5",
        lambda: rp.Risk("e", 1.5, statistic=rp.Difference()),
    ),
    "a reference named as the groups": (
        rp.ProblemError,
        r"'groups'.*twice",
        lambda: rp.Problem(
            [
                rp.Risk("e", 0.1, statistic=rp.Difference("groups")),
                rp.Risk("f", 0.1, statistic=rp.WorstGroup()),
            ],
            "c",
        ),
    ),
    "a drop without the reference's predictions": (
        rp.LossError,
        r"'reference'.*not given.*reference=array",
        lambda: rp.losses_from_predictions(rp.Risk("accuracy_drop", at_most=0.1), [0, 1], [0, 1]),
    ),
    "a drop against fewer predictions": (
        rp.LossError,
        r"2 examples.*\(1,\)",
        lambda: rp.losses_from_predictions(
            rp.Risk("accuracy_drop", at_most=0.1), [0, 1], [0, 1], reference=[0]
        ),
    ),
    "a reference for a mean": (
        rp.LossError,
        r"Mean knows no reference",
        lambda: rp.measure(rp.Mean(), [[0, 1]], reference=[0, 1]),
    ),
    # gaps within labels
    "labels that are no name": (rp.ProblemError, r"''.*within=", lambda: rp.GroupGap(within="")),
    "no labels": (rp.LossError, r"labels 'label'.*missing", lambda: parted(None)),
    "labels of another length": (
        rp.LossError,
        r"\(60,\).*\(59,\)",
        lambda: parted([0, 1] * 29 + [1]),
    ),
    "a label that a group lacks": (
        rp.LossError,
        r"'0' of label '1'.*no example",
        lambda: parted(np.arange(60) % 2),
    ),
    # weights
    "weights without a bound": (
        rp.ProblemError,
        r"largest_weight is None.*clip",
        lambda: rp.Risk("e", 0.1, weights="w"),
    ),
    "a bound without weights": (
        rp.ProblemError,
        r"weights.*None",
        lambda: rp.Risk("e", 0.1, largest_weight=2),
    ),
    "a bound of zero": (rp.ProblemError, r"it is 0|is 0", lambda: weighed(np.ones(60), largest=0)),
    "no weights": (rp.LossError, r"'w'.*missing", lambda: weighed(None)),
    "weights beside the losses of another length": (
        rp.LossError,
        r"\(59,\)",
        lambda: weighed(np.ones(59)),
    ),
    "a weight above its bound beside the losses": (
        rp.LossError,
        r"\[0, 2\].*2\.5.*bound",
        lambda: weighed(np.full(60, 2.5)),
    ),
    "a weight below zero beside the losses": (
        rp.LossError,
        r"\[0, 2\].*-1",
        lambda: weighed(np.full(60, -1.0)),
    ),
    "a weight that is NaN beside the losses": (
        rp.LossError,
        r"nan",
        lambda: weighed(np.full(60, NAN)),
    ),
    "weights of words": (rp.LossError, r"<U5", lambda: weighed(["heavy"] * 60)),
    "a weighted gap": (
        rp.ProblemError,
        r"GroupGap of weighted examples.*WorstGroup",
        lambda: weighed(np.ones(60), rp.GroupGap()),
    ),
    "a weighted ratio": (
        rp.ProblemError,
        r"Ratio of weighted examples",
        lambda: weighed(np.ones(60), rp.Ratio()),
    ),
    "weights by the binomial test": (
        rp.ProblemError,
        r"Mean with weights is tested by auto or betting",
        lambda: rp.Risk("e", 0.1, weights="w", largest_weight=2, p_value="binomial"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])
