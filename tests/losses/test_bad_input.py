"""Malformed input through the public API: each call, its error, and what the message says.

A message holds the rule, the value that breaks it, and a way out.
"""

import io
import pickle
import re
from fractions import Fraction

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.study.records import decode


class NowhereBackend(optuna.storages.journal.BaseJournalBackend):
    """A journal that is no file."""

    def read_logs(self, log_number_from):
        return iter(())

    def append_logs(self, logs):
        pass


P = rp.Problem([rp.Risk("error", 0.2)], "cost")
TWO = rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost")
OPEN = rp.Problem([rp.Risk("error", None)], "cost")
RNG = np.random.default_rng(0)
V = {"error": RNG.random((3, 50)) < 0.4, "cost": np.arange(3.0)}
C = {"error": RNG.random((3, 60)) < 0.4}
NAN, INF = float("nan"), float("inf")
CERTIFICATE = rp.select_from_losses(P, validation=V, calibration=C).certificate


def table(problem=P, validation=V, calibration=C, **kwargs):
    return rp.select_from_losses(problem, validation=validation, calibration=calibration, **kwargs)


def changed(table, name, index, value):
    array = np.array(table[name], float)
    array[index] = value
    return {**table, name: array}


def evaluated(evaluation, problem=P, n_trials=1):
    study = rp.create_study(problem, seed=0)
    study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=n_trials)
    return study


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


def finished():
    return evaluated(rp.Evaluation({"error": V["error"][0], "cost": 1.0}))


def file_with(tmp_path, content):
    path = tmp_path / "certificate.json"
    path.write_bytes(content)
    return path


def without_a_number(text):
    return text.replace('"n_configs": 3', '"n_configs": 4')


# name: (error class, what the message must say, the call)
TABLE = {
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
    "a range too wide": (rp.ProblemError, r"finite.*wide", lambda: rp.Risk("e", 1, -1e308, 1e308)),
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
    # statistics
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
    "delta in per cent": (rp.ProblemError, r"10", lambda: rp.Problem(P.risks, "c", 10)),
    "delta below zero": (rp.ProblemError, r"-0\.1", lambda: rp.Problem(P.risks, "c", -0.1)),
    "delta that is NaN": (rp.ProblemError, r"nan", lambda: rp.Problem(P.risks, "c", NAN)),
    "a limit for an unknown risk": (rp.ProblemError, r"'eror'", lambda: P.with_limits(eror=0.1)),
    "a stored problem without risks": (
        rp.ProblemError,
        r"risks",
        lambda: rp.Problem.from_dict({"minimize": "c", "delta": 0.1}),
    ),
    # tables of losses
    "no problem": (rp.ProblemError, r"dict", lambda: table(problem={"error": 0.1})),
    "validation that is a list": (rp.LossError, r"list", lambda: table(validation=[1, 2])),
    "calibration that is missing": (rp.LossError, r"NoneType", lambda: table(calibration=None)),
    "a risk without losses": (
        rp.LossError,
        r"'harm'.*missing",
        lambda: table(TWO),
    ),
    "a risk without calibration losses": (
        rp.LossError,
        r"calibration.*'error'.*missing",
        lambda: table(calibration={}),
    ),
    "a misspelt risk": (
        rp.LossError,
        r"'eror'",
        lambda: table(validation={**V, "eror": V["error"]}),
    ),
    "no free objective given": (
        rp.LossError,
        r"'cost' is missing",
        lambda: table(validation={"error": V["error"]}),
    ),
    "losses of one dimension": (
        rp.LossError,
        r"\(50,\)",
        lambda: table(validation={**V, "error": V["error"][0]}),
    ),
    "losses of three dimensions": (
        rp.LossError,
        r"\(1, 3, 50\)",
        lambda: table(validation={**V, "error": V["error"][None]}),
    ),
    "rows of different length": (
        rp.LossError,
        r"rectangle",
        lambda: table(validation={**V, "error": [[1, 0], [1], [0]]}),
    ),
    "no examples": (
        rp.LossError,
        r"\(3, 0\)",
        lambda: table(calibration={"error": np.zeros((3, 0))}),
    ),
    "no configurations": (
        rp.LossError,
        r"\(0, 50\)",
        lambda: table(validation={**V, "error": np.zeros((0, 50))}),
    ),
    "losses that are words": (
        rp.LossError,
        r"<U3",
        lambda: table(calibration={"error": [["yes", "no"]] * 3}),
    ),
    "losses that are missing": (
        rp.LossError,
        r"missing: None.*conditional=True",
        lambda: table(calibration={"error": [[None, 1]] * 3}),
    ),
    "losses that are objects": (
        rp.LossError,
        r"object.*Fraction",
        lambda: table(calibration={"error": [[Fraction(1, 2), 1]] * 3}),
    ),
    "losses that are complex": (
        rp.LossError,
        r"complex",
        lambda: table(calibration={"error": np.zeros((3, 9), complex)}),
    ),
    "a NaN": (
        rp.LossError,
        r"NaN.*conditional=True",
        lambda: table(calibration=changed(C, "error", (1, 2), NAN)),
    ),
    "an infinite loss": (
        rp.LossRangeError,
        r"inf",
        lambda: table(calibration=changed(C, "error", (1, 2), INF)),
    ),
    "a loss above the range": (
        rp.LossRangeError,
        r"1\.5.*proves nothing.*high=\.\.\..*clip the losses",
        lambda: table(validation=changed(V, "error", (0, 0), 1.5)),
    ),
    "a loss below the range": (
        rp.LossRangeError,
        r"-0\.25.*proves nothing.*low=\.\.\..*clip the losses",
        lambda: table(calibration=changed(C, "error", (0, 0), -0.25)),
    ),
    "per cent instead of shares": (
        rp.LossRangeError,
        r"100",
        lambda: table(calibration={"error": C["error"] * 100}),
    ),
    "a free objective of the wrong length": (
        rp.LossError,
        r"\(2,\)",
        lambda: table(validation={**V, "cost": [1.0, 2.0]}),
    ),
    "a free objective that is NaN": (
        rp.LossError,
        r"nan",
        lambda: table(validation={**V, "cost": [1.0, NAN, 2.0]}),
    ),
    "risks of unequal shape": (
        rp.LossError,
        r"\(3, 50\).*\(3, 40\)",
        lambda: table(TWO, validation={**V, "harm": V["error"][:, :40]}),
    ),
    "more calibration rows than validation rows": (
        rp.LossError,
        r"3 configurations and calibration 4",
        lambda: table(calibration={"error": np.zeros((4, 60), bool)}),
    ),
    "the same losses twice": (
        rp.LeakageError,
        r"'error'.*same 50 numbers",
        lambda: table(calibration={"error": V["error"].copy()}),
    ),
    "overlapping slices": (
        rp.LeakageError,
        r"overlap in memory",
        lambda: table(
            validation={**V, "error": (a := np.arange(180).reshape(3, 60) % 2)[:, :40]},
            calibration={"error": a[:, 30:]},
        ),
    ),
    "shared ids": (
        rp.LeakageError,
        r"2 ids.*7",
        lambda: table(validation_ids=[1, 7, 8], calibration_ids=[7, 8, 9]),
    ),
    "an open limit": (rp.ProblemError, r"'error'.*still open", lambda: table(OPEN)),
    "too few configs": (rp.LossError, r"3 rows.*2 configs", lambda: table(configs=[{}, {}])),
    "configs that are numbers": (rp.LossError, r"0\.5", lambda: table(configs=[0.5, 0.6, 0.7])),
    "configs that are one mapping": (rp.LossError, r"dict", lambda: table(configs={"a": 1})),
    # procedures
    "a procedure by name": (rp.ProblemError, r"'holm'", lambda: table(procedure="holm")),
    "a procedure that returns numbers": (
        rp.LossError,
        r"float64",
        lambda: table(procedure=lambda log_p, delta: log_p),
    ),
    "a procedure that returns too few": (
        rp.LossError,
        r"\(1,\)",
        lambda: table(procedure=lambda log_p, delta: log_p[:1] < 0),
    ),
    "a graph for another number": (
        rp.ProblemError,
        r"made for 7",
        lambda: table(procedure=rp.chain(7)),
    ),
    "weights above one": (
        rp.ProblemError,
        r"1\.4",
        lambda: rp.Graphical((0.7, 0.7), ((0, 1), (1, 0))),
    ),
    "a negative weight": (
        rp.ProblemError,
        r"0\.5",
        lambda: rp.Graphical((-0.5, 1.0), ((0, 1), (1, 0))),
    ),
    "edges above one": (
        rp.ProblemError,
        r"2\.0",
        lambda: rp.Graphical((0.5, 0.5), ((0, 2), (1, 0))),
    ),
    "a loop": (rp.ProblemError, r"diagonal", lambda: rp.Graphical((0.5, 0.5), ((1, 0), (0, 0)))),
    "edges of the wrong shape": (
        rp.ProblemError,
        r"\(1, 2\)",
        lambda: rp.Graphical((0.5, 0.5), ((0, 1),)),
    ),
    "ragged edges": (
        rp.ProblemError,
        r"inhomogeneous",
        lambda: rp.Graphical((0.5, 0.5), ((0, 1), (1,))),
    ),
    "an empty chain": (rp.ProblemError, r"is 0", lambda: rp.chain(0)),
    # studies
    "a study without a problem": (rp.StudyError, r"str", lambda: rp.create_study("error")),
    "a safe configuration that is a number": (
        rp.StudyError,
        r"0\.3",
        lambda: rp.create_study(P, safe=0.3),
    ),
    "a storage without a place for losses": (
        rp.StudyError,
        r"artifact_store",
        lambda: rp.create_study(P, storage=optuna.storages.JournalStorage(NowhereBackend())),
    ),
    "a plain Optuna study": (
        rp.StudyError,
        r"'plain'",
        lambda: rp.objective(optuna.create_study(study_name="plain"), lambda trial: None),
    ),
    "an evaluation that is no function": (
        rp.StudyError,
        r"5",
        lambda: rp.objective(rp.create_study(P), 5),
    ),
    "an evaluation of a list": (rp.LossError, r"list", lambda: rp.Evaluation([0.1])),
    "a calibration of a list": (
        rp.LossError,
        r"calibration.*list",
        lambda: rp.Evaluation({}, [0.1]),
    ),
    "a function that returns a number": (rp.LossError, r"float", lambda: evaluated(0.5)),
    "a risk that is one number": (
        rp.LossError,
        r"'error'.*\(\)",
        lambda: evaluated(rp.Evaluation({"error": 0.1, "cost": 1})),
    ),
    "a free objective of two dimensions": (
        rp.LossError,
        r"'cost'.*\(2, 2\)",
        lambda: evaluated(rp.Evaluation({"error": [0, 1], "cost": [[1, 2], [3, 4]]})),
    ),
    "a free objective that is infinite": (
        rp.LossError,
        r"'cost'.*inf",
        lambda: evaluated(rp.Evaluation({"error": [0, 1], "cost": INF})),
    ),
    "selecting from nothing": (
        rp.StudyError,
        r"no trial",
        lambda: rp.select(rp.create_study(P)),
    ),
    "selecting from a path": (
        rp.StudyError,
        r"sqlite:///s\.db",
        lambda: rp.select("sqlite:///s.db"),
    ),
    "selecting without calibration": (
        rp.StudyError,
        r"Trial 0 has no calibration",
        lambda: rp.select(finished()),
    ),
    "calibrate that returns an array": (
        rp.LossError,
        r"ndarray",
        lambda: rp.select(finished(), calibrate=lambda t: np.zeros(9)),
    ),
    "calibrate that forgets a risk": (
        rp.LossError,
        r"'error'.*missing",
        lambda: rp.select(finished(), calibrate=lambda t: {}),
    ),
    "a share of delta above one": (
        rp.ProblemError,
        r"1\.5",
        lambda: rp.select(finished(), spend=1.5),
    ),
    "a share of delta in words": (
        rp.ProblemError,
        r"'half'",
        lambda: rp.select(finished(), spend="half"),
    ),
    "suggestions from nothing": (
        rp.StudyError,
        r"none yet",
        lambda: rp.suggest_limits(rp.create_study(OPEN)),
    ),
    "limits of an unknown risk": (
        rp.ProblemError,
        r"'harm'",
        lambda: rp.set_limits(rp.create_study(OPEN), harm=0.1),
    ),
    # sampler and planner
    "delta_prime of two": (rp.ProblemError, r"is 2\.", lambda: rp.GuidedSampler(P, delta_prime=2)),
    "a pool below zero": (
        rp.ProblemError,
        r"n_startup_trials.*-1",
        lambda: rp.GuidedSampler(P, n_startup_trials=-1),
    ),
    "a sampler without a problem": (rp.ProblemError, r"float", lambda: rp.GuidedSampler(0.1)),
    "a plan for no examples": (rp.ProblemError, r"is 0", lambda: rp.plan_calibration(P, 0)),
    "a plan for half an example": (rp.ProblemError, r"0\.5", lambda: rp.plan_calibration(P, 0.5)),
    "a plan for many examples": (
        rp.ProblemError,
        r"'many'",
        lambda: rp.plan_calibration(P, "many"),
    ),
    "a power of one": (
        rp.ProblemError,
        r"1\.0",
        lambda: rp.plan_calibration(P, 9, target_power=1.0),
    ),
    "a true risk above the limit": (
        rp.ProblemError,
        r"0\.3",
        lambda: rp.plan_calibration(P, 9, true_risks={"error": 0.3}),
    ),
    "a true risk of an unknown name": (
        rp.ProblemError,
        r"'harm'",
        lambda: rp.plan_calibration(P, 9, true_risks={"harm": 0.1}),
    ),
    # certificates
    "a certificate that is no JSON": (
        rp.CertificateError,
        r"not JSON",
        lambda: rp.Certificate.from_json("{oh"),
    ),
    "a certificate that is a list": (
        rp.CertificateError,
        r"no schema",
        lambda: rp.Certificate.from_json("[1, 2]"),
    ),
    "a certificate of another version": (
        rp.CertificateError,
        r"certificate/9",
        lambda: rp.Certificate.from_json('{"schema": "riskpilot-certificate/9"}'),
    ),
    "a certificate cut short": (
        rp.CertificateError,
        r"not JSON",
        lambda: rp.Certificate.from_json(CERTIFICATE.to_json()[:400]),
    ),
    "a certificate with one number changed": (
        rp.CertificateError,
        r"changed after it was written",
        lambda: rp.Certificate.from_json(without_a_number(CERTIFICATE.to_json())),
    ),
    "a certificate with a field too many": (
        rp.CertificateError,
        r"extra",
        lambda: rp.Certificate.from_json(CERTIFICATE.to_json().replace("{", '{"extra": 1,', 1)),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_bad_input_is_refused_in_its_own_words(name):
    error, pattern, call = TABLE[name]
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


def test_the_table_is_long_enough():
    assert len(TABLE) >= 40


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02", b"\xff\xfe\xfa", pickle.dumps({"schema": 1}), b"PK\x03\x04zip"],
    ids=["empty", "zeros", "not text", "a pickle", "a zip"],
)
def test_a_file_that_is_no_certificate_is_refused(tmp_path, content):
    with pytest.raises(rp.CertificateError) as caught:
        rp.Certificate.load(file_with(tmp_path, content))
    assert_rule_value_and_way_out(str(caught.value))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rp.CertificateError, match=r"nowhere\.json"):
        rp.Certificate.load(tmp_path / "nowhere.json")


def test_a_storage_without_the_study_is_named(tmp_path):
    with pytest.raises(rp.StudyError, match="'absent'") as caught:
        rp.load_study(storage=f"sqlite:///{tmp_path}/s.db", study_name="absent")
    assert_rule_value_and_way_out(str(caught.value))


def test_stored_losses_are_never_unpickled():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        decode(buffer.getvalue())
