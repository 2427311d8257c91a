"""The promise where losses are odd: extreme ranges, tied limits, masks, names that look alike.

Every test goes through the public API at the case in which the promise broke. A refusal certifies
nothing, so that it counts as a promise kept.
"""

import csv
import math
import re

import numpy as np
import optuna
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exact import assert_rate_at_most
from scipy.stats import binom, multinomial

import riskpilot as rp
from riskpilot.guarantee import log_p
from riskpilot.losses import calibration_losses
from riskpilot.statistics import TestSettings
from riskpilot.tables import read_losses

M = 400


def certifies(problem, validation, calibration):
    """Whether the one configuration is certified; an error certifies nothing."""
    validation = {**validation, "cost": [1.0]}
    try:
        selection = rp.select_from_losses(problem, validation=validation, calibration=calibration)
    except rp.RiskpilotError:
        return False
    return selection.config is not None


def rarely_certified(problem, draw, replications=40):
    """The configuration breaks its limit: it passes in at most a share delta of the samples."""
    rng = np.random.default_rng(0)
    wrong = sum(certifies(problem, draw(rng, M), draw(rng, M)) for _ in range(replications))
    assert_rate_at_most(problem.delta, wrong, replications)


def usually_certified(problem, draw, replications=10):
    """The configuration keeps its limit by far: what refuses everything would be no repair."""
    rng = np.random.default_rng(1)
    passed = sum(certifies(problem, draw(rng, M), draw(rng, M)) for _ in range(replications))
    assert passed >= 0.7 * replications


def p_value(risk, calibration, validation=None):
    """The p-value of one configuration from a table."""
    problem = rp.Problem([risk], "cost")
    seen = {**(calibration if validation is None else validation), "cost": [1.0]}
    seen = {name: np.array(values) for name, values in seen.items()}
    if validation is None:  # the same losses in another order are other losses
        seen[risk.name] = seen[risk.name][:, ::-1]
        seen |= {name: seen[name][::-1] for name in problem.beside}
    selection = rp.select_from_losses(problem, validation=seen, calibration=calibration)
    return float(selection.result.log_p[0, 0])


def study_of(problem, evaluations):
    """A study whose trials return these validation and calibration losses."""
    study = rp.create_study(problem, sampler=optuna.samplers.RandomSampler(seed=0))

    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        return rp.Evaluation(*evaluations[trial.number])

    study.optimize(rp.objective(study, evaluate), n_trials=len(evaluations))
    return study


# Keys are tuples, never texts that were joined.


def gap_within(label_names, gap):
    """Positive predictions of groups a and b within two labels; a has ``gap`` more in the first."""

    def draw(rng, m):
        group, label = rng.integers(0, 2, m), rng.integers(0, 2, m)
        rate = 0.3 + gap * (group == 0) * (label == 0)
        return {
            "flagged": rng.random((1, m)) < rate,
            "groups": np.array(["a", "b"])[group],
            "lab": np.array(label_names)[label],
        }

    return draw


@pytest.mark.parametrize("names", [("x | 0", "x | 1"), ("0", "0 | 0"), ("a | 0", "b | 0")])
def test_labels_that_hold_a_separator_do_not_hide_a_gap(names, effort):
    statistic = rp.GroupGap(("a", "b"), directed=True, within="lab")
    problem = rp.Problem([rp.Risk("flagged", 0.1, statistic=statistic)], "cost")
    rarely_certified(problem, gap_within(names, 0.3), 20 * effort)
    usually_certified(problem.with_limits(flagged=0.5), gap_within(names, 0.0))


@pytest.mark.parametrize("directed", [False, True])
def test_what_labels_are_called_changes_no_p_value(directed):
    groups = ("a", "b") if directed else None
    risk = rp.Risk("flagged", 0.3, statistic=rp.GroupGap(groups, directed, within="lab"))
    problem = rp.Problem([risk], "cost")
    found = set()
    for names in (("0", "1"), ("x | 0", "x | 1"), ("", " | ")):
        draw = gap_within(names, 0.1)
        tables = draw(np.random.default_rng(1), 2000), draw(np.random.default_rng(2), 2000)
        opened = calibration_losses(problem, tables[1]).risks["flagged"]
        found.add(float(log_p(risk, opened, [0], TestSettings("betting", 0.1, 0))[0]))
        evaluations = [[{n: v[0] if n == "flagged" else v for n, v in t.items()} for t in tables]]
        evaluations[0][0]["cost"] = 1.0
        selection = rp.select(study_of(problem, evaluations), smooth=False)
        assert selection.result.log_p[0, 0] == p_value(risk, tables[1], tables[0])
        assert "p =" in str(selection)
    assert len(found) == 1
    assert -50 < found.pop() < 0


# The quantile test compares losses with the limit as they are.


def test_a_range_without_measure_does_not_hide_a_quantile(effort):
    risk = rp.Risk("x", 10, low=-1e18, high=1e18, statistic=rp.Quantile(0.95))
    problem = rp.Problem([risk], "cost")

    def above(share):
        return lambda rng, m: {"x": 60.0 * (rng.random((1, m)) < share)}

    rarely_certified(problem, above(0.2), 20 * effort)
    usually_certified(problem, above(0.01))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("weights", [False, True])
def test_a_quantile_just_above_an_atom_at_its_limit_is_rarely_certified(dtype, weights, effort):
    risk = rp.Risk("x", 0.3, high=10, statistic=rp.Quantile(0.9))
    if weights:
        risk = rp.Risk("x", 0.3, high=10, statistic=rp.Quantile(0.9), weights="w", largest_weight=1)

    def draw(rng, m):  # 10.1 % above the limit, all others on it
        x = np.where(rng.random((1, m)) < 0.101, 0.4, 0.3).astype(dtype)
        return {"x": x} | ({"w": np.ones(m)} if weights else {})

    rarely_certified(rp.Problem([risk], "cost"), draw, 100 * effort)


ATOMS = {
    "rounded seconds": ((0.0, 10.0), 0.3, [0.1, 0.2, 0.3, 0.4], [0.2, 0.2, 0.58, 0.02]),
    "an odd range": ((-0.1, 0.7), 0.3, [-0.1, 0.3, 0.7], [0.3, 0.67, 0.03]),
    "both ends": ((0.0, 0.3), 0.1, [0.0, 0.3], [0.96, 0.04]),
    "a wide range": ((-1e18, 1e18), 70.0, [63.0, 70.0, 71.0], [0.5, 0.47, 0.03]),
    "huge numbers": ((0.0, 1e150), 1e140, [0.0, 1e140, 1e141], [0.5, 0.47, 0.03]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", ATOMS)
def test_a_loss_on_the_limit_is_not_above_it_in_tables_and_in_studies(name, dtype):
    (low, high), limit, values, shares = ATOMS[name]
    if name == "huge numbers" and dtype != np.float64:
        dtype = np.float64
    risk = rp.Risk("x", limit, low, high, statistic=rp.Quantile(0.95))
    rng = np.random.default_rng(3)
    picked = [rng.choice(len(values), 1000, p=shares) for _ in range(2)]
    tables = [np.array(values, dtype)[None, row] for row in picked]
    above = int(np.sum(np.array(values)[picked[1]] > limit))
    expected = binom.logcdf(above, 1000, 0.05)
    assert p_value(risk, {"x": tables[1]}, {"x": tables[0]}) == pytest.approx(expected, rel=1e-9)
    evaluations = [({"x": tables[0][0], "cost": 1.0}, {"x": tables[1][0]})]
    selection = rp.select(study_of(rp.Problem([risk], "cost"), evaluations))
    assert selection.result.log_p[0, 0] == pytest.approx(expected, rel=1e-9)


def test_a_weighted_quantile_does_not_count_what_lies_on_its_limit():
    risk = rp.Risk("x", 0.3, high=10, statistic=rp.Quantile(0.9), weights="w", largest_weight=2)
    rng = np.random.default_rng(4)
    x = rng.choice([0.1, 0.3, 5.0], (1, 2000), p=[0.5, 0.45, 0.05])
    below = np.where(x == 0.3, 0.2, x)  # what lies on the limit is as good as what lies below it
    w = rng.choice([1.0, 2.0], 2000)
    validation = {"x": x[:, ::-1].copy(), "w": w[::-1].copy()}
    one, other = ({"x": values, "w": w} for values in (x, below))
    assert p_value(risk, one, validation) == p_value(risk, other, validation)


@pytest.mark.parametrize(
    "risk",
    [
        rp.Risk("x", 10, low=-1e18, high=1e18),
        rp.Risk("x", 10, low=-1e18, high=1e18, statistic=rp.CVaR()),
        rp.Risk("x", 1e-300, low=-1, high=1),
    ],
    ids=["mean", "tail", "limit"],
)
def test_a_limit_that_its_range_swallows_is_refused(risk):
    with pytest.raises(rp.ProblemError, match="range"):
        p_value(risk, {"x": np.zeros((1, 50))})


# One place checks ranges, whatever the statistic and the type of the losses.

STATISTICS = {
    "mean": rp.Mean(),
    "worst group": rp.WorstGroup(),
    "gap": rp.GroupGap(),
    "gap within": rp.GroupGap(within="lab"),
    "ratio": rp.Ratio(),
    "quantile": rp.Quantile(0.9),
    "tail": rp.CVaR(0.9),
    "difference": rp.Difference(),
}
DTYPES = [bool, np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64, object]


def beside(problem, m):
    """What a problem needs beside its losses, harmless."""
    known = {
        "groups": np.arange(m) % 2,
        "lab": np.arange(m) // 2 % 2,
        "reference": np.zeros(m),
        "w": np.ones(m),
    }
    return {name: known[name] for name in problem.beside}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("weights", [False, True])
def test_a_loss_out_of_range_is_refused_whatever_is_limited(name, dtype, weights):
    statistic = STATISTICS[name]
    if weights and isinstance(statistic, rp.GroupGap | rp.Ratio):
        weights = False  # no test is known there
    weighted = {"weights": "w", "largest_weight": 1} if weights else {}
    risk = rp.Risk("x", 0.2, high=0.5, statistic=statistic, **weighted)
    problem = rp.Problem([risk], "cost")
    losses = (np.arange(40) == 17)[None].astype(dtype)
    table = {"x": losses, **beside(problem, 40)}
    with pytest.raises(rp.LossRangeError, match=r"\[0, 0\.5\], but one is 1"):
        rp.select_from_losses(problem, validation={**table, "cost": [1.0]}, calibration=table)
    if name == "difference":
        table = {**table, "x": np.zeros((1, 40)), "reference": losses[0]}
        with pytest.raises(rp.LossRangeError, match=r"\[0, 0\.5\], but one is 1"):
            rp.select_from_losses(problem, validation={**table, "cost": [1.0]}, calibration=table)


def test_a_difference_of_truths_in_too_narrow_a_range_is_never_certified(effort):
    """Cut off at 0.5, a share of 0.3 that got worse looks like a mean of 0.15."""
    problem = rp.Problem([rp.Risk("x", 0.2, high=0.5, statistic=rp.Difference())], "cost")

    def draw(rng, m):
        return {"x": rng.random((1, m)) < 0.3, "reference": np.zeros(m, bool)}

    rarely_certified(problem, draw, 20 * effort)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("ends", [(0.0, 0.3), (-0.1, 0.7), (0.1, 0.7)])
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("name", ["mean", "worst group", "gap", "quantile", "tail", "difference"])
def test_losses_at_the_ends_are_there_in_any_precision(name, ends, dtype, conditional):
    """0.3 is a little more than 0.3 in single precision, and 0.7 a little less."""
    low, high = ends
    limit = 0.15 if name not in ("gap", "difference") else 0.05
    risk = rp.Risk("x", limit, low, high, statistic=STATISTICS[name], conditional=conditional)
    problem = rp.Problem([risk], "cost")
    rng = np.random.default_rng(5)
    tables = [np.where(rng.random((1, 500)) < 0.05, high, low) for _ in range(2)]
    given = [beside(problem, 500) for _ in range(2)]
    for table, named in zip(tables, given, strict=True):
        if "reference" in named:
            named["reference"] = np.where(np.arange(500) % 9 == 0, high, low)
        if conditional and name != "difference":
            table[0, ::7] = np.nan
    found = set()
    for kind in (np.float64, dtype):
        losses = [t.astype(kind) for t in tables]
        calibration = {"x": losses[1], **given[1]}
        found.add(p_value(risk, calibration, {"x": losses[0], **given[0]}))
        if "reference" in given[0]:
            given = [{**n, "reference": n["reference"].astype(dtype)} for n in given]
            calibration = {"x": losses[1], **given[1]}
            found.add(p_value(risk, calibration, {"x": losses[0], **given[0]}))
    assert len(found) == 1


# Ranges are known beforehand; no message advises one that was read off the sample.


@pytest.mark.parametrize("value", [1.5, -0.25, 7, np.inf, -np.inf, 1e300])
def test_no_advice_names_a_range_that_the_sample_shows(value):
    risk = rp.Risk("x", 0.2)
    losses = np.full((1, 30), 0.5)
    losses[0, 3] = value
    with pytest.raises(rp.LossRangeError) as caught:
        p_value(risk, {"x": losses})
    message = str(caught.value)
    assert re.search(r"(high|low)=[-\d]", message) is None
    assert "fixed" in message
    assert "beforehand" in message or "before" in message


# Masks are kept or refused.


def masked_losses(rng, m, rate=0.33):
    """Of those that count a share is wrong; the others, masked, hold zeros."""
    counts = rng.random((1, m)) < 0.5
    return {"x": np.ma.array((rng.random((1, m)) < rate) & counts, mask=~counts)}


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("form", ["array", "rows", "values"])
def test_masked_losses_are_not_losses_of_zero(conditional, form, effort):
    problem = rp.Problem([rp.Risk("x", 0.25, conditional=conditional)], "cost")

    def draw(rng, m, rate=0.33):
        losses = masked_losses(rng, m, rate)["x"]
        if form == "rows":
            return {"x": list(losses)}
        if form == "values":
            return {"x": [[losses[0, i] for i in range(m)]]}
        return {"x": losses}

    rarely_certified(problem, draw, 20 * effort)
    if conditional:
        usually_certified(problem, lambda rng, m: draw(rng, m, 0.1))


def test_a_masked_loss_is_one_that_does_not_count():
    risk = rp.Risk("x", 0.5, conditional=True)
    rng = np.random.default_rng(6)
    one, other = (masked_losses(rng, 300)["x"] for _ in range(2))
    expected = p_value(
        risk, {"x": other.astype(float).filled(np.nan)}, {"x": one.astype(float).filled(np.nan)}
    )
    assert p_value(risk, {"x": other}, {"x": one}) == expected
    evaluation = ({"x": one[0], "cost": 1.0}, {"x": other[0]})
    study = study_of(rp.Problem([risk], "cost"), [evaluation])
    assert rp.select(study).result.log_p[0, 0] == expected


@pytest.mark.parametrize("name", ["groups", "lab", "reference", "w", "cost"])
def test_nothing_else_may_be_masked(name):
    statistic = {
        "groups": rp.WorstGroup(),
        "lab": rp.GroupGap(within="lab"),
        "reference": rp.Difference(),
    }.get(name, rp.Mean())
    weighted = {"weights": "w", "largest_weight": 1} if name == "w" else {}
    risk = rp.Risk("x", 0.2, statistic=statistic, conditional=True, **weighted)
    problem = rp.Problem([risk], "cost")
    table = {"x": np.zeros((1, 40)), "cost": np.zeros((1, 40)), **beside(problem, 40)}
    values = table[name]
    table[name] = np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) == 1)
    with pytest.raises(rp.LossError, match="masked"):
        rp.select_from_losses(problem, validation=table, calibration=table)
    with pytest.raises(rp.LossError, match="masked"):
        study_of(problem, [({n: v[0] if v.ndim == 2 else v for n, v in table.items()}, None)])


def test_ids_may_not_be_masked():
    table = {"x": np.zeros((1, 3)), "cost": [1.0]}
    ids = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(rp.LossError, match=r"validation_ids.*masked"):
        rp.select_from_losses(
            rp.Problem([rp.Risk("x", 0.2)], "cost"),
            validation=table,
            calibration={"x": np.ones((1, 3))},
            validation_ids=ids,
            calibration_ids=[7, 8, 9],
        )


HOLLOW_IDS = {
    "too few": ([1], "one id for each of the 30 validation examples, but there are 1"),
    "too many": (range(31), "one id for each of the 30 validation examples, but there are 31"),
    "a number": (5, "one id for each example, but it is 5"),
    "a text": ("abc", "one id for each example, but it is 'abc'"),
    "a set": ({1, 2}, "one id for each example, but it is {1, 2}"),
    "the same": ([1] * 30, "'1' occurs 30 times"),
    "the same number and text": ([*range(28), 27.0, 29], "'27' occurs 2 times"),
    "the same pairs": ([("a", 1)] * 30, "occurs 30 times"),
    "NaN": ([float("nan")] * 30, "30 are missing, such as nan"),
    "None": ([None, *range(29)], "1 are missing, such as None"),
    "no parts": ([()] * 30, "parts"),
    "other parts": ([(1, 2), *range(29)], "parts"),
}


@pytest.mark.parametrize("how", HOLLOW_IDS)
def test_ids_that_do_not_tell_examples_apart_are_refused(how):
    """Such ids could not show that an example is in both splits."""
    ids, says = HOLLOW_IDS[how]
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("x", 0.5)], "cost")
    losses = {split: {"x": rng.random(30) < 0.1} for split in ("validation", "calibration")}
    losses["validation"]["cost"] = 1.0
    tables = {s: {n: np.array(v)[None] for n, v in given.items()} for s, given in losses.items()}
    study = rp.create_study(problem)
    with pytest.raises(rp.LossError, match=says):
        rp.select_from_losses(problem, **tables, validation_ids=ids)
    with pytest.raises(rp.LossError, match=says):
        rp.tell(study, study.ask(), rp.Evaluation(**losses), validation_ids=ids)
    with pytest.raises(rp.LossError, match=says):
        study.optimize(
            rp.objective(study, lambda trial: rp.Evaluation(**losses), validation_ids=ids), 1
        )
    with pytest.raises(rp.LossError, match=says.replace("validation", "calibration")):
        rp.select_from_losses(problem, **tables, calibration_ids=ids)


def test_ids_of_several_parts_are_compared_as_wholes():
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("x", 0.5)], "cost")
    tables = {
        "validation": {"x": rng.random((1, 300)) < 0.1, "cost": [1.0]},
        "calibration": {"x": rng.random((1, 300)) < 0.1},
    }
    first, other = [("a", i) for i in range(300)], [("b", i) for i in range(300)]
    found = rp.select_from_losses(
        problem, **tables, validation_ids=first, calibration_ids=other, configs=[{"c": 1}]
    )
    assert found.config == {"c": 1}
    with pytest.raises(rp.LeakageError, match="1 id occurs in both"):
        rp.select_from_losses(
            problem, **tables, validation_ids=first, calibration_ids=[*other[1:], ("a", 7)]
        )


@pytest.mark.parametrize("split", ["validation", "calibration"])
def test_other_ids_from_trial_to_trial_are_refused(split):
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("x", 0.5)], "cost")
    ids = {"validation_ids": list(range(30)), "calibration_ids": list(range(100, 130))}

    def evaluation():
        return rp.Evaluation({"x": rng.random(30) < 0.1, "cost": 1.0}, {"x": rng.random(30) < 0.1})

    study = rp.create_study(problem)
    rp.tell(study, study.ask(), evaluation(), **ids)
    rp.tell(study, study.ask(), evaluation(), **ids)
    rp.tell(study, study.ask(), evaluation())  # ids are no duty
    for odd in (range(500, 530), ids[f"{split}_ids"][::-1]):
        with pytest.raises(rp.LossError, match=f"same {split} examples, in the same order"):
            rp.tell(study, study.ask(), evaluation(), **{**ids, f"{split}_ids": odd})


# Groups and labels are who they were.

ALIKE = {
    "leading zero": ("1", "01"),
    "point": ("1", "1.0"),
    "word": ("1", "true"),
    "beyond doubles": (str(2**53), str(2**53 + 1)),
    "blank": ("a", "a "),
    "integers": (2**53, 2**53 + 1),
}


def worst_group_file(path, names, rng, m=200):
    """Losses in which the second of two groups, a tenth of the examples, is wrong half of the
    time, and the first never."""
    rows = []
    for split in ("validation", "calibration"):
        for i in range(m):
            second = i % 10 == 0
            rows.append((split, "only", int(second and rng.random() < 0.5), 1.0, names[second]))
    header = ("split", "config", "x", "cost", "who")
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    else:
        pq.write_table(
            pa.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))), path
        )
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("named", [True, False])
def test_groups_in_files_that_look_alike_stay_apart(name, ending, named, tmp_path, effort):
    problem = rp.Problem([rp.Risk("x", 0.15, statistic=rp.WorstGroup(), groups="who")], "cost")
    rng = np.random.default_rng(7)
    wrong, replications = 0, 10 * effort
    for _ in range(replications):
        path = worst_group_file(tmp_path / f"losses.{ending}", ALIKE[name], rng)
        try:
            table = read_losses(path, problem.labels if named else ())
            selection = rp.select_from_losses(
                problem, validation=table.validation, calibration=table.calibration
            )
        except rp.RiskpilotError:
            assert not named  # an unnamed column is no column of groups
            continue
        assert selection.plan.groups["x"] == tuple(sorted(map(str, ALIKE[name])))
        wrong += selection.config is not None
    assert_rate_at_most(problem.delta, wrong, replications)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_group_of_a_file_is_the_group_of_an_array(ending, tmp_path):
    path = tmp_path / f"losses.{ending}"
    if ending == "csv":
        worst_group_file(path, ("0", "1"), np.random.default_rng(8))
    else:
        worst_group_file(path, (0, 1), np.random.default_rng(8))
    table = read_losses(path, ["who"])
    problem = rp.Problem([rp.Risk("x", 0.15, statistic=rp.WorstGroup(), groups="who")], "cost")
    numbers = (np.arange(200) % 10 == 0) * 1
    found = {
        rp.select_from_losses(
            problem,
            validation={**table.validation, "who": who},
            calibration={**table.calibration, "who": who.copy()},
        ).certificate.plan_digest
        for who in (table.validation["who"], numbers, numbers == 1, numbers * 1.0, list(numbers))
    }
    assert len(found) == 1


def two_groups(names, rate=0.5):
    """The losses of a large good group and a small bad one, under two names."""

    def draw(rng, m):
        second = np.arange(m) % 10 == 0
        return {"x": (rng.random((1, m)) < rate) & second, "groups": names(second)}

    return draw


SAME_BY_MISTAKE = {
    "large floats": lambda second: np.where(second, 1e19, 2e19),
    "single precision": lambda second: (2**24 + second).astype(np.float32),
    "half precision": lambda second: (2.0**11 + second).astype(np.float16),
    "large integers": lambda second: 2**53 + second,
    "unsigned integers": lambda second: np.uint64(2**63) + second.astype(np.uint64),
    "Python integers": lambda second: [2**70 + int(s) for s in second],
    "Python floats": lambda second: [2.0**60 + 1 if s else 2**60 for s in second],
    "zeros at the end": lambda second: ["a\0" if s else "a" for s in second],
    "objects": lambda second: np.array(["a\0" if s else "a" for s in second], dtype=object),
    "text and number": lambda second: ["1" if s else 1 for s in second],
    "text and truth": lambda second: np.array(["1" if s else True for s in second], dtype=object),
    "bytes": lambda second: np.array([b"\xc3\xa9", b"\xc3\xa8"])[second * 1],
}


@pytest.mark.parametrize("name", SAME_BY_MISTAKE)
def test_groups_that_are_different_are_not_one_group(name, effort):
    problem = rp.Problem([rp.Risk("x", 0.15, statistic=rp.WorstGroup())], "cost")
    rarely_certified(problem, two_groups(SAME_BY_MISTAKE[name]), 20 * effort)
    if name in ("large integers", "unsigned integers", "Python integers", "bytes"):
        usually_certified(problem, two_groups(SAME_BY_MISTAKE[name], 0.01))


def test_large_whole_numbers_name_groups_exactly():
    problem = rp.Problem([rp.Risk("x", 0.2, statistic=rp.WorstGroup())], "cost")
    rng = np.random.default_rng(9)
    for first in (2**53, 2**63, 2**64 - 2):
        who = np.array([first, first + 1] * 100, dtype=np.uint64)
        table = {"x": rng.random((1, 200)) < 0.1, "groups": who}
        other = {"x": rng.random((1, 200)) < 0.1, "groups": who.tolist()}
        found = rp.select_from_losses(
            problem, validation={**table, "cost": [1.0]}, calibration=other
        )
        assert found.plan.groups["x"] == tuple(sorted((str(first), str(first + 1))))


NO_GROUPS = {
    "None": [None, "a"],
    "NaN": np.array([np.nan, 1.0]),
    "NaN among texts": np.array([np.nan, "a"], dtype=object),
    "infinity": np.array([np.inf, 1.0]),
    "not UTF-8": np.array([b"\xff", b"a"]),
    "half a character": np.array(["\udc80", "a"]),
    "dates": np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "complex": np.array([1j, 2j]),
    "tuples": [("a", 1), ("b", 2)],
}


@pytest.mark.parametrize("name", NO_GROUPS)
def test_what_names_no_group_is_refused(name):
    problem = rp.Problem([rp.Risk("x", 0.15, statistic=rp.WorstGroup())], "cost")
    values = NO_GROUPS[name]
    who = values * 20 if isinstance(values, list) else np.tile(values, 20)
    table = {"x": np.zeros((1, 40)), "groups": who}
    with pytest.raises(rp.LossError):
        rp.select_from_losses(problem, validation={**table, "cost": [1.0]}, calibration=table)
    with pytest.raises(rp.LossError):
        study_of(problem, [({"x": np.zeros(40), "groups": who, "cost": 1.0}, None)])


def test_the_groups_of_a_plan_are_those_that_both_splits_have():
    rng = np.random.default_rng(10)

    def split(names, m=300):
        return {"x": rng.random((1, m)) < 0.05, "groups": np.resize(names, m)}

    def select(statistic, one, other):
        problem = rp.Problem([rp.Risk("x", 0.3, statistic=statistic)], "cost")
        validation = {**split(one), "cost": [1.0]}
        return rp.select_from_losses(problem, validation=validation, calibration=split(other))

    assert select(rp.WorstGroup(), ["b", "a"], ["a", "b"]).plan.groups == {"x": ("a", "b")}
    named = rp.WorstGroup(("c", "a"))
    assert select(named, ["a", "b", "c"], ["a", "c"]).plan.groups == {"x": ("c", "a")}
    for one, other in ((["a", "b"], ["a"]), (["a"], ["a", "b"])):
        with pytest.raises(rp.LossError, match="same groups"):
            select(rp.WorstGroup(), one, other)
    with pytest.raises(rp.LossError, match="'c' has no example"):
        select(named, ["a", "b", "c"], ["a", "b"])


# Differences.


def test_a_difference_of_rates_over_other_examples_is_refused(effort):
    """Where both count, nothing differs; the rate of the new model is 0.3 above the reference."""
    risk = rp.Risk("x", 0.05, statistic=rp.Difference(), conditional=True)

    def draw(rng, m):
        kind = rng.integers(0, 3, m)  # answered by both, by the new one alone, by the other alone
        wrong = np.where(kind == 1, rng.random(m) < 0.6, 0.0)
        return {
            "x": np.where(kind == 2, np.nan, wrong)[None],
            "reference": np.where(kind == 1, np.nan, 0.0),
        }

    problem = rp.Problem([risk], "cost")
    rarely_certified(problem, draw, 20 * effort)
    with pytest.raises(rp.LossError, match="same examples"):
        p_value(risk, draw(np.random.default_rng(0), 50))


def test_a_difference_counts_where_both_count():
    rng = np.random.default_rng(11)
    counts = rng.random(600) < 0.5
    tables = [
        {"x": rng.random((1, 600)) < 0.2, "reference": rng.random(600) < 0.15} for _ in range(2)
    ]
    masked = [{n: np.where(counts, v, np.nan) for n, v in table.items()} for table in tables]
    only = [{n: v[..., counts] for n, v in table.items()} for table in tables]
    conditional = rp.Risk("x", 0.2, statistic=rp.Difference(), conditional=True)
    plain = rp.Risk("x", 0.2, statistic=rp.Difference())
    expected = p_value(plain, only[1], only[0])
    assert p_value(conditional, masked[1], masked[0]) == expected
    rows = [{n: v[0] if v.ndim == 2 else v for n, v in table.items()} for table in masked]
    evaluations = [({**rows[0], "cost": float(i)}, rows[1]) for i in range(2)]
    study = study_of(rp.Problem([conditional], "cost"), evaluations)
    assert rp.select(study).result.log_p[0, 0] == expected


@pytest.mark.parametrize("limit", [-0.3, -0.1, -0.02])
def test_a_difference_that_must_be_negative_is_tested_exactly(limit):
    """The size of the test, summed over all outcomes, at shares that break the limit by nothing."""
    n, m = 16, 40
    risk = rp.Risk("x", limit, statistic=rp.Difference())
    rng = np.random.default_rng(12)
    seen = {"x": rng.random((1, m)) < 0.5, "reference": rng.random(m) < 0.5}
    outcomes = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    p = np.empty(len(outcomes))
    for i, (worse, better, _) in enumerate(outcomes):
        change = np.repeat([1, -1, 0], outcomes[i])
        table = {"x": (change > 0)[None], "reference": change < 0}
        p[i] = math.exp(p_value(risk, table, seen))
        if worse - better >= n * limit:
            assert p[i] == 1
    better = np.linspace(-limit, (1 - limit) / 2, 200)[:, None]
    worse = np.maximum(better + limit, 0)
    shares = np.column_stack([worse, better, np.maximum(1 - worse - better, 0)])
    shares /= shares.sum(axis=1, keepdims=True)
    chances = np.array([multinomial.pmf(outcomes, n, share) for share in shares])
    for level in (0.01, 0.05, 0.1, 0.2, 0.5):
        size = chances[:, p <= level].sum(axis=1).max()
        assert size <= level * (1 + 1e-6)
    assert chances[:, p <= 0.2].sum(axis=1).max() > 0.1  # and it rejects


# Stored losses lead to the test that the given ones lead to.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("kind", ["graded", "two-point", "conditional", "weighted"])
def test_a_study_and_a_table_give_the_same_p_values(name, kind, dtype):
    statistic = STATISTICS[name]
    weighted = kind == "weighted" and not isinstance(statistic, rp.GroupGap | rp.Ratio)
    more = {"weights": "w", "largest_weight": 2} if weighted else {}
    limit = 0.3 if name != "ratio" else 0.6
    risk = rp.Risk(
        "x", limit, high=0.7, statistic=statistic, conditional=kind == "conditional", **more
    )
    problem = rp.Problem([risk], "cost")
    rng = np.random.default_rng(13)
    splits = []
    for _ in range(2):
        losses = rng.random((4, 300)) * np.linspace(0.2, 0.7, 4)[:, None]
        if kind == "two-point":
            losses = np.where(losses < 0.3, 0.7, 0.0)
        losses[:, ::5] = 0.3  # on the limit
        given = beside(problem, 300)
        if "w" in given:
            given["w"] = rng.choice([0.3, 2.0], 300)
        if kind == "conditional":
            losses[:, ::4] = np.nan
            if name == "difference":
                given["reference"] = np.where(np.arange(300) % 4, 0.1, np.nan)
        splits.append((losses.astype(dtype), given))
    cost = np.arange(4)[::-1] * 1.0
    table = rp.select_from_losses(
        problem,
        validation={"x": splits[0][0], "cost": cost, **splits[0][1]},
        calibration={"x": splits[1][0], **splits[1][1]},
    )
    evaluations = [
        (
            {"x": splits[0][0][i], "cost": cost[i], **splits[0][1]},
            {"x": splits[1][0][i], **splits[1][1]},
        )
        for i in range(4)
    ]
    study = rp.select(study_of(problem, evaluations), smooth=False)
    assert study.plan.order == table.plan.order
    assert study.plan.digest == table.plan.digest
    assert study.certificate.calibration_digest == table.certificate.calibration_digest
    np.testing.assert_array_equal(study.result.log_p, table.result.log_p)


def test_trials_of_several_precisions_keep_what_lies_at_the_ends():
    risk = rp.Risk("x", 0.3, low=0.1, high=0.7, statistic=rp.Quantile(0.9))
    problem = rp.Problem([risk], "cost")
    rng = np.random.default_rng(14)
    values = [rng.choice([0.1, 0.3, 0.45, 0.7], (2, 200), p=[0.3, 0.5, 0.15, 0.05]) for _ in "abcd"]
    kinds = (np.float16, np.float32, np.float64, np.float32)
    cost = np.arange(4)[::-1] * 1.0
    for order in ((0, 1, 2, 3), (2, 1, 0, 3), (1, 3, 0, 2)):
        evaluations = [
            (
                {"x": values[i][0].astype(kinds[i]), "cost": cost[i]},
                {"x": values[i][1].astype(kinds[i])},
            )
            for i in order
        ]
        study = rp.select(study_of(problem, evaluations), smooth=False)
        rows = [order[row] for row in study.plan.order]
        above = [int((values[i][1] > 0.3).sum()) for i in rows]
        np.testing.assert_allclose(
            study.result.log_p[:, 0], binom.logcdf(above, 200, 0.1), rtol=1e-9
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("largest", [0.3, 0.7])
def test_weights_at_their_bound_are_there_in_any_precision(dtype, largest):
    risk = rp.Risk("x", 0.3, weights="w", largest_weight=largest)
    rng = np.random.default_rng(15)
    x = rng.random((2, 1, 400)) < 0.1
    heavy = rng.random((2, 400)) < 0.5
    found = {
        p_value(
            risk,
            {"x": x[1], "w": np.where(heavy[1], largest, 0.25).astype(kind)},
            {"x": x[0], "w": np.where(heavy[0], largest, 0.25).astype(kind)},
        )
        for kind in (np.float64, dtype)
    }
    assert len(found) == 1
    beyond = np.nextafter(dtype(largest), dtype(1))
    with pytest.raises(rp.LossError, match="the bound that was declared"):
        p_value(risk, {"x": x[1], "w": np.full(400, beyond)})
