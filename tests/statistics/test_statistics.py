"""Every statistic everywhere: from the losses to the certificate, the pictures and back."""

import csv
import json
import re

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.guarantee.bounds import upper_bounds
from riskpilot.guarantee.power import plan_calibration
from riskpilot.guarantee.region import interval
from riskpilot.guarantee.risk_tests import family, log_p
from riskpilot.losses import calibration_losses
from riskpilot.plots import power_curves
from riskpilot.problem.notation import parse_risk
from riskpilot.statistics import STATISTICS, TestSettings, from_dict
from riskpilot.study.questions.audit import audit
from riskpilot.tables import save_losses

N, K, M = 12, 1500, 3000
SIZES = {"validation": K, "calibration": M}
PLACE = np.array(["north", "south", "west"])
COST = np.arange(N)[::-1] / 8  # exact in any order of summation
RATES = np.linspace(0.05, 0.35, N)[:, None]

RISKS = {
    "mean": rp.Risk("loss", 0.2),
    "conditional mean": rp.Risk("loss", 0.25, conditional=True),
    "worst group": rp.Risk("loss", 0.3, statistic=rp.WorstGroup()),
    "gap": rp.Risk("loss", 0.15, statistic=rp.GroupGap()),
    "directed gap": rp.Risk("loss", 0.15, statistic=rp.GroupGap(("west", "north"), directed=True)),
    "equalised odds": rp.Risk("loss", 0.2, statistic=rp.GroupGap(within="label")),
    "directed, within": rp.Risk(
        "loss", 0.2, statistic=rp.GroupGap(("west", "north"), directed=True, within="label")
    ),
    "ratio": rp.Risk("loss", at_least=0.4, statistic=rp.Ratio()),
    "quantile": rp.Risk("loss", 0.5, statistic=rp.Quantile(0.9)),
    "tail": rp.Risk("loss", 0.7, statistic=rp.CVaR(0.9)),
    "difference": rp.Risk("loss", 0.05, statistic=rp.Difference("dense")),
    "difference of any losses": rp.Risk("loss", 0.05, high=2, statistic=rp.Difference("dense")),
    "weighted mean": rp.Risk("loss", 0.2, weights="w", largest_weight=4),
    "weighted worst group": rp.Risk(
        "loss", 0.3, statistic=rp.WorstGroup(), weights="w", largest_weight=4
    ),
    "weighted quantile": rp.Risk(
        "loss", 0.5, statistic=rp.Quantile(0.9), weights="w", largest_weight=4
    ),
    "weighted tail": rp.Risk("loss", 0.7, statistic=rp.CVaR(0.9), weights="w", largest_weight=4),
    "weighted difference": rp.Risk(
        "loss", 0.05, statistic=rp.Difference("dense"), weights="w", largest_weight=4
    ),
}


def beside(split):
    """Group, label, weight and reference of every example."""
    rng = np.random.default_rng(len(split))
    m = SIZES[split]
    return {
        "groups": PLACE[np.arange(m) % 3],
        "label": np.arange(m) % 2,
        "w": rng.choice([0.5, 1.0, 4.0], m, p=[0.4, 0.4, 0.2]),
        "dense": rng.random(m) < 0.1,
    }


def losses(split, kind, rng):
    m = SIZES[split]
    group, label = np.arange(m) % 3, np.arange(m) % 2
    if "quantile" in kind or "tail" in kind:
        return np.minimum(rng.beta(1, 3, (N, m)) * (0.5 + 2 * RATES), 1.0)
    if "difference" in kind:  # the larger the index, the more breaks
        found = beside(split)["dense"] ^ (rng.random((N, m)) < 0.4 * RATES)
        return found * 1.6 if "any" in kind else found
    rates = RATES * (1 + 0.4 * group)
    if "odds" in kind or "within" in kind:  # labels differ a lot, groups less
        rates = 0.5 * label + RATES * (1 + 0.4 * group * (1 + label)) / 2
    if kind == "ratio":  # the larger the index, the less alike
        rates = 0.3 * (1 + 3 * RATES * group)
    found = rng.random((N, m)) < rates
    return np.where(label, found, np.nan) if kind == "conditional mean" else found


def tables(kind):
    rng = np.random.default_rng(0)
    problem = rp.Problem([RISKS[kind]], "cost")
    result = {}
    for split in SIZES:
        result[split] = {"loss": losses(split, kind, rng)}
        result[split] |= {name: beside(split)[name] for name in problem.beside}
        if "any" in kind:
            result[split]["dense"] = result[split]["dense"] * 1.7
    result["validation"]["cost"] = COST
    return result


def selected(kind):
    return rp.select_from_losses(rp.Problem([RISKS[kind]], "cost"), **tables(kind))


@pytest.fixture(params=RISKS)
def kind(request):
    return request.param


def test_something_is_certified_and_not_everything(kind):
    selection = selected(kind)
    assert selection.config is not None
    assert not selection.result.passed.all()
    chosen = selection.certificate.chosen
    assert selection.result.means[chosen, 0] < RISKS[kind].limit
    assert RISKS[kind].words in selection.certificate.promise


def definition(kind, row, dense):
    """The value of one configuration on validation data, written out once more."""
    b = beside("validation")
    places = [b["groups"] == name for name in PLACE]
    by_group = [np.nanmean(row[place]) for place in places]
    parted = [[row[place & (b["label"] == y)].mean() for place in places] for y in range(2)]
    heavy = np.repeat(row, (2 * b["w"]).astype(int))  # a weight is so many copies
    heavy_dense = np.repeat(dense, (2 * b["w"]).astype(int))

    def heavy_in(place):
        return np.repeat(row[place], (2 * b["w"][place]).astype(int)).mean()

    def tail(values):
        return np.sort(values)[-round(0.1 * len(values)) :].mean()

    def quantile(values):
        return np.sort(values)[int(np.ceil(0.9 * len(values))) - 1]

    return {
        "mean": lambda: row.mean(),
        "conditional mean": lambda: np.nanmean(row),
        "worst group": lambda: max(by_group),
        "gap": lambda: max(by_group) - min(by_group),
        "directed gap": lambda: by_group[2] - by_group[0],
        "equalised odds": lambda: max(max(part) - min(part) for part in parted),
        "directed, within": lambda: max(part[2] - part[0] for part in parted),
        "ratio": lambda: 1 - min(by_group) / max(by_group),
        "quantile": lambda: quantile(row),
        "tail": lambda: tail(row),
        "difference": lambda: row.mean() - dense.mean(),
        "difference of any losses": lambda: row.mean() - dense.mean(),
        "weighted mean": lambda: heavy.mean(),
        "weighted worst group": lambda: max(map(heavy_in, places)),
        "weighted quantile": lambda: quantile(heavy),
        "weighted tail": lambda: tail(heavy),
        "weighted difference": lambda: heavy.mean() - heavy_dense.mean(),
    }[kind]()


def test_the_values_are_those_of_the_definition(kind):
    selection, table = selected(kind), tables(kind)["validation"]
    row = table["loss"][selection.plan.order[0]]
    expected = definition(kind, row, table.get("dense", row))
    assert selection.plan.risks[0][0] == pytest.approx(expected, rel=2e-3, abs=1e-9)


def test_a_free_objective_may_be_any_statistic(kind):
    table, risk = tables(kind)["validation"], RISKS[kind]
    names = {"groups": "groups", "within": "label", "reference": "dense", "weights": "w"}
    given = {what: table[name] for what, name in names.items() if name in table}
    values = rp.measure(risk.statistic, table["loss"], **given)
    for i in (0, N - 1):
        expected = definition(kind, table["loss"][i], table.get("dense", table["loss"][i]))
        assert values[i] == pytest.approx(expected, rel=2e-3, abs=1e-9)
    free = rp.select_from_losses(
        rp.Problem([rp.Risk("cost", 0.9)], "loss"),
        validation={"cost": np.zeros((N, 60)), "loss": values},
        calibration={"cost": np.zeros((N, 60))},
    )
    assert free.config == {"index": int(np.argmin(values))}


def test_a_certificate_is_recomputed_from_the_losses(kind, tmp_path):
    selection = selected(kind)
    certificate = rp.Certificate.load(selection.certificate.save(tmp_path / "c.json"))
    assert rp.Problem.from_dict(certificate.problem) == selection.problem
    assert rp.verify(certificate, **tables(kind)).ok


def test_a_certificate_is_checked_against_a_file_of_losses(kind, tmp_path):
    path = selected(kind).certificate.save(tmp_path / "c.json")
    losses_path = save_losses(tmp_path / "losses.npz", **tables(kind))
    assert audit(path, str(losses_path), None, None).ok


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, risk in RISKS.items() for name in rp.Problem([risk], "cost").beside],
)
def test_other_groups_weights_and_references_are_told(kind, name):
    changed = tables(kind)
    changed["calibration"][name] = np.roll(changed["calibration"][name], 1)
    assert not rp.verify(selected(kind).certificate, **changed).ok


TYPED = {
    "mean": "loss<=0.2",
    "conditional mean": "loss<=0.25 conditional",
    "worst group": "loss<=0.3 as worst_group",
    "gap": "loss<=0.15 as group_gap by groups",
    "quantile": "loss<=0.5 as quantile(0.9)",
    "tail": "loss<=0.7 as cvar(0.9)",
    "difference": "loss<=0.05 as difference(dense)",
    "difference of any losses": "loss<=0.05 as difference(dense) in [0,2]",
    "weighted mean": "loss<=0.2 weighted by w up to 4",
    "weighted worst group": "loss<=0.3 as worst_group by groups weighted by w up to 4",
}


@pytest.mark.parametrize("kind", TYPED)
def test_a_statistic_can_be_typed(kind):
    assert parse_risk(TYPED[kind]) == RISKS[kind]


def long_rows(kind):
    """The table with one row per configuration and example, every number as it is written."""
    for split, table in tables(kind).items():
        for i in range(N):
            columns = {
                name: np.broadcast_to(values[i], SIZES[split])
                if name == "cost"
                else values[i]
                if np.ndim(values) == 2
                else values
                for name, values in table.items()
            }
            for j in range(SIZES[split]):
                told = {name: column[j].item() for name, column in columns.items()}
                if told["loss"] != told["loss"]:
                    told["loss"] = None
                yield {"split": split, "config": json.dumps({"index": i}), "cost": None, **told}


@pytest.fixture
def small(monkeypatch):
    """Fewer examples: long tables have a row for each."""
    monkeypatch.setitem(SIZES, "validation", 180)
    monkeypatch.setitem(SIZES, "calibration", 240)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_long_table_says_what_the_arrays_say(kind, ending, tmp_path, small):
    rows = list(long_rows(kind))
    path = tmp_path / f"losses.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path)
    certificate = selected(kind).certificate
    saved = certificate.save(tmp_path / "c.json")
    found = audit(saved, str(path), None, None)
    assert found.ok, found
    if kind in TYPED:
        options = ["--risk", TYPED[kind], "--minimize", "cost", "--json"]
        told = json.loads(CliRunner().invoke(app, ["select", str(path), *options]).stdout)
        assert told["certificate"]["calibration_digest"] == certificate.calibration_digest
        assert told["config"] == certificate.config


def test_a_study_selects_what_its_losses_as_a_table_select(kind, tmp_path):
    table, problem = tables(kind), rp.Problem([RISKS[kind]], "cost")
    study = rp.create_study(
        problem,
        seed=0,
        storage=f"sqlite:///{tmp_path}/s.db",
        sampler=optuna.samplers.RandomSampler(),
    )

    def evaluate(trial):
        row = trial.number
        assert trial.suggest_int("row", row, row) == row
        return rp.Evaluation(
            *(
                {
                    name: values[row] if name in ("loss", "cost") else values
                    for name, values in table[split].items()
                }
                for split in SIZES
            )
        )

    for row in range(N):
        study.enqueue_trial({"row": row})
    study.optimize(rp.objective(study, evaluate), n_trials=N)
    from_study, from_table = rp.select(study), selected(kind)
    assert from_study.plan.order == from_table.plan.order
    np.testing.assert_allclose(from_study.result.log_p, from_table.result.log_p, rtol=1e-4)
    assert from_study.config == {"row": from_table.config["index"]}
    path = from_study.certificate.save(tmp_path / "c.json")
    assert audit(path, f"sqlite:///{tmp_path}/s.db", None, None).ok


def test_the_search_is_guided_by_any_statistic(kind):
    rng = np.random.default_rng(1)
    study = rp.create_study(rp.Problem([RISKS[kind]], "cost"), seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        found = {}
        for split, table in tables(kind).items():
            row = losses(split, kind, rng)[round(x * (N - 1))]
            found[split] = {**table, "loss": row}
        found["validation"]["cost"] = 1 - x
        return rp.Evaluation(**found)

    study.optimize(rp.objective(study, evaluate), n_trials=8)
    assert len(rp.suggest_limits(study)) == 1
    selection = rp.select(study)
    assert selection.search is not None
    assert selection.search.intervals[0].feasible
    assert selection.search.intervals[0].alpha_max < RISKS[kind].limit


def test_the_region_lies_below_the_limit_and_narrows_with_more_examples(kind):
    risk = RISKS[kind]
    std = float(selected(kind).validation.risks["loss"].summary.standard_deviation[0])
    test = family(risk, binary="any" not in kind)
    few, many = (
        interval(risk, test, n_validation=n, n_calibration=n, delta=0.1, std=std)
        for n in (1500, 20_000)
    )
    assert few.feasible
    assert risk.bottom <= few.low <= few.alpha_max < many.alpha_max < risk.limit
    assert many.high - many.low < few.high - few.low


def test_page_figure_and_words_are_made(kind, tmp_path):
    selection = selected(kind)
    page = selection.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert RISKS[kind].label in page
    assert len(selection.figure().data) > 3
    assert "Chosen" in str(selection)


def test_a_bound_is_the_smallest_limit_that_would_have_passed(kind):
    selection = selected(kind)
    chosen = selection.certificate.chosen
    bound = upper_bounds(selection.plan, selection.result, [chosen])[0, 0]
    assert selection.result.means[chosen, 0] < bound <= RISKS[kind].limit + 2e-3


def test_the_planner_knows_every_statistic(kind):
    problem = rp.Problem([RISKS[kind]], "cost")
    plan = plan_calibration(problem, 4000)[0]
    passes, limit = RISKS[kind].in_words(plan.just_passes), RISKS[kind].limit
    if isinstance(RISKS[kind].statistic, rp.Quantile):
        assert passes == pytest.approx(limit)  # how many lie above it decides
    else:
        assert RISKS[kind].bottom <= passes < limit
    assert plan_calibration(problem, plan.fewest - 1 or 1)[0].fewest == plan.fewest
    if RISKS[kind].statistic.power_hangs_on is None:
        assert len(power_curves(problem).data) == 4
    else:
        with pytest.raises(rp.ProblemError, match="hangs on"):
            power_curves(problem)
    assert str(RISKS[kind]) in str(rp.plan_calibration(problem, 1)[0])


def test_every_statistic_of_the_registry_is_tested_here_under_its_own_name():
    assert {type(risk.statistic) for risk in RISKS.values()} == set(STATISTICS)
    weighted = {type(risk.statistic) for risk in RISKS.values() if risk.weights is not None}
    assert weighted == {statistic for statistic in STATISTICS if statistic.takes_weights}
    kinds = [statistic.kind for statistic in STATISTICS]
    assert len(set(kinds)) == len(kinds)


def test_a_family_that_does_not_fit_is_an_error(kind):
    risk, m = RISKS[kind], 30
    given = {name: values[:m] for name, values in beside("calibration").items()}
    problem = rp.Problem([risk], "cost")
    table = {"loss": np.zeros((1, m))} | {name: given[name] for name in problem.beside}
    sample = calibration_losses(problem, table).risks["loss"]
    with pytest.raises(rp.ProblemError, match=r"is tested by .* but the family is 'normal'"):
        log_p(risk, sample, [0], TestSettings("normal", 0.1, 0))


def test_a_statistic_comes_back_from_json(kind):
    statistic = RISKS[kind].statistic
    assert from_dict(json.loads(json.dumps(statistic.to_dict()))) == statistic


def test_a_small_group_gets_the_number_that_it_needs():
    rng = np.random.default_rng(0)
    groups = np.repeat(["many", "few"], [988, 12])
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.05, statistic=rp.WorstGroup())], "cost"),
        validation={"error": rng.random((2, 1000)) < 0.01, "groups": groups, "cost": [1, 2]},
        calibration={"error": rng.random((2, 1000)) < 0.01, "groups": groups.copy()},
    )
    assert selection.config is None
    assert "group 'few' cannot be certified with 12 examples; it needs 45" in str(selection)


def test_groups_by_any_kind_of_name_are_the_same():
    table = tables("gap")
    problem = rp.Problem([RISKS["gap"]], "cost")
    for split, m in SIZES.items():
        table[split]["groups"] = np.arange(m) % 3
    first = rp.select_from_losses(problem, **table)
    for convert in (lambda g: g.astype(float), lambda g: g.astype(str), lambda g: g.astype(object)):
        again = {s: {**t, "groups": convert(t["groups"])} for s, t in table.items()}
        found = rp.select_from_losses(problem, **again).certificate
        assert found.calibration_digest == first.certificate.calibration_digest


def test_the_storage_order_of_packed_and_plain_losses_does_not_matter():
    table = tables("worst group")
    plain = {s: {**t, "loss": t["loss"].astype(float)} for s, t in table.items()}
    problem = rp.Problem([RISKS["worst group"]], "cost")
    one, other = (rp.select_from_losses(problem, **t) for t in (table, plain))
    np.testing.assert_allclose(one.result.log_p, other.result.log_p, rtol=1e-12)


def test_several_statistics_at_once_each_with_its_groups():
    rng = np.random.default_rng(2)
    problem = rp.Problem(
        [
            rp.Risk("error", at_most=0.3),
            rp.Risk("worst_group_error", at_most=0.35, groups="region"),
            rp.Risk("demographic_parity_gap", at_most=0.2, groups="sex"),
        ],
        minimize="false_negative_rate",
    )

    def split(m):
        label, score = rng.random(m) < 0.5, rng.random(m)
        score = 0.5 * score + 0.5 * label
        predicted = score >= np.linspace(0.2, 0.8, 7)[:, None]
        beside = {"region": rng.integers(0, 3, m), "sex": rng.choice(["f", "m"], m)}
        return rp.losses_from_predictions(problem, label, predicted, groups=beside)

    validation, calibration = split(4000), split(4000)
    del calibration["false_negative_rate"]
    selection = rp.select_from_losses(problem, validation=validation, calibration=calibration)
    assert selection.config is not None
    assert rp.verify(selection.certificate, validation=validation, calibration=calibration).ok


def test_names_make_the_losses_that_one_would_code_by_hand():
    label, predicted = np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 1])
    risks = [
        rp.Risk("precision", at_least=0.9),
        rp.Risk("recall", at_least=0.9),
        rp.Risk("false_positive_rate", at_most=0.1),
        rp.Risk("equal_opportunity_gap", at_most=0.1),
    ]
    found = rp.losses_from_predictions(risks, label, predicted, groups=list("aabbb"))
    nan = np.nan
    np.testing.assert_array_equal(found["precision"], [0, nan, 1, nan, 0])
    np.testing.assert_array_equal(found["recall"], [0, 1, nan, nan, 0])
    np.testing.assert_array_equal(found["false_positive_rate"], [nan, nan, 1, 0, nan])
    np.testing.assert_array_equal(found["equal_opportunity_gap"], found["recall"])
    assert list(found["groups"]) == list("aabbb")
    assert [risk.conditional for risk in risks] == [True] * 4
    assert str(risks[0]) == "precision >= 0.9"


def test_a_free_objective_may_be_a_statistic_of_groups():
    problem = rp.Problem([rp.Risk("error", at_most=0.4)], minimize="worst_group_error")
    found = rp.losses_from_predictions(problem, [1, 0, 1, 0], [[1, 1, 1, 1]], groups=[0, 0, 1, 1])
    np.testing.assert_allclose(found["worst_group_error"], [0.5])


def test_an_accuracy_drop_comes_from_the_predictions_of_both():
    rng = np.random.default_rng(3)
    problem = rp.Problem([rp.Risk("accuracy_drop", at_most=0.03)], minimize="error")
    label = rng.integers(0, 5, 4000)
    dense = np.where(rng.random(4000) < 0.2, 9, label)
    pruned = np.where(rng.random((2, 4000)) < np.array([[0.01], [0.1]]), 8, dense)
    found = rp.losses_from_predictions(problem, label, pruned, reference=dense)
    np.testing.assert_array_equal(found["reference"], dense != label)
    np.testing.assert_array_equal(found["accuracy_drop"], pruned != label)
    parts = [
        {name: values[..., rows] for name, values in found.items() if name != "error"}
        for rows in (slice(0, 2000), slice(2000, None))
    ]
    parts[0]["error"] = found["error"]
    selection = rp.select_from_losses(problem, validation=parts[0], calibration=parts[1])
    assert selection.config == {"index": 0}
    assert selection.certificate.families == {"accuracy_drop": "trinomial"}
    free = rp.Problem([rp.Risk("error", 0.5)], minimize="accuracy_drop")
    drop = rp.losses_from_predictions(free, label, pruned, reference=dense)["accuracy_drop"]
    np.testing.assert_allclose(drop, (pruned != label).mean(axis=1) - (dense != label).mean())


def test_equalised_odds_come_from_predictions_labels_and_groups():
    rng = np.random.default_rng(4)
    label, sex = rng.integers(0, 2, 3000), rng.choice(["f", "m"], 3000)
    predicted = rng.random((1, 3000)) < 0.2 + 0.5 * label + 0.1 * (sex == "m")
    problem = rp.Problem([rp.Risk("error", 0.5)], minimize="equalized_odds_gap")
    found = rp.losses_from_predictions(problem, label, predicted, groups=sex)
    rates = [[predicted[0, (label == y) & (sex == g)].mean() for g in "fm"] for y in (0, 1)]
    gaps = [abs(one - other) for one, other in rates]
    np.testing.assert_allclose(found["equalized_odds_gap"], max(gaps))
    limited = rp.Risk("equalized_odds_gap", at_most=0.2)
    table = rp.losses_from_predictions(limited, label, predicted, groups=sex)
    assert sorted(table) == ["equalized_odds_gap", "groups", "label"]


def test_a_reference_that_is_one_of_the_configurations_has_no_difference():
    rng = np.random.default_rng(5)
    error = rng.random((3, 800)) < 0.2
    problem = rp.Problem([rp.Risk("error", 0.05, statistic=rp.Difference())], "cost")
    selection = rp.select_from_losses(
        problem,
        validation={"error": error[:, :400], "reference": error[0, :400], "cost": [0, 1, 2]},
        calibration={"error": error[:, 400:], "reference": error[0, 400:]},
    )
    assert selection.config == {"index": 0}
    assert selection.result.means[0, 0] == 0


def test_weights_that_are_all_the_same_change_no_estimate_and_no_choice():
    table = tables("mean")
    for split, m in SIZES.items():
        table[split]["w"] = np.full(m, 2.0)
    risk = rp.Risk("loss", 0.2, weights="w", largest_weight=2)
    one = rp.select_from_losses(rp.Problem([risk], "cost"), **table)
    other = rp.select_from_losses(
        rp.Problem([rp.Risk("loss", 0.2, p_value="betting")], "cost"), **tables("mean")
    )
    np.testing.assert_allclose(one.plan.risks, other.plan.risks)
    assert one.config == other.config


@pytest.mark.parametrize("kind", ["difference", "directed gap", "weighted difference"])
def test_the_scale_of_a_difference_shows_what_lies_around_zero(kind, tmp_path):
    page = selected(kind).report(tmp_path / "r.html").read_text(encoding="utf-8")
    mean, limit = (
        float(re.search(pattern, page)[1])
        for pattern in (
            r'class="mean" style="width:([\d.]+)%',
            r'class="limit" style="left:([\d.]+)%',
        )
    )
    assert 5 < mean < limit < 95
    assert limit - mean > 5
