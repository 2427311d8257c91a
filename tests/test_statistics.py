"""Limits on groups and tails, from the losses to the certificate and back."""

import json

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot import measures
from riskpilot.audit import audit
from riskpilot.bounds import upper_bounds
from riskpilot.plots import power_curves
from riskpilot.tables import save_losses

N, K, M = 12, 1500, 3000
GROUPS = {"validation": np.arange(K) % 3, "calibration": np.arange(M) % 3}
COST = np.linspace(1, 0, N)
RATES = np.linspace(0.05, 0.35, N)[:, None]

RISKS = {
    "worst group": rp.Risk("loss", 0.3, statistic=rp.WorstGroup()),
    "gap": rp.Risk("loss", 0.15, statistic=rp.GroupGap()),
    "directed gap": rp.Risk("loss", 0.15, statistic=rp.GroupGap(("2", "0"), directed=True)),
    "ratio": rp.Risk("loss", at_least=0.4, statistic=rp.Ratio()),
    "quantile": rp.Risk("loss", 0.5, statistic=rp.Quantile(0.9)),
    "tail": rp.Risk("loss", 0.7, statistic=rp.CVaR(0.9)),
}


def losses(split, kind, rng):
    m = len(GROUPS[split])
    if kind in ("quantile", "tail"):
        return np.minimum(rng.beta(1, 3, (N, m)) * (0.5 + 2 * RATES), 1.0)
    rates = RATES * (1 + 0.4 * GROUPS[split])
    if kind == "ratio":  # the larger the index, the less alike
        rates = 0.3 * (1 + 3 * RATES * GROUPS[split])
    return rng.random((N, m)) < rates


def tables(kind):
    rng = np.random.default_rng(0)
    risk = RISKS[kind]
    result = {}
    for split in GROUPS:
        result[split] = {"loss": losses(split, kind, rng)}
        if risk.needs_groups:
            result[split]["groups"] = GROUPS[split]
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
    assert measures.words(RISKS[kind].statistic) in selection.certificate.promise


def test_the_values_are_those_of_the_definition(kind):
    selection = selected(kind)
    table = tables(kind)["validation"]
    found = selection.plan.risks[0][0]
    row = table["loss"][selection.plan.order[0]]
    by_group = [row[GROUPS["validation"] == g].mean() for g in range(3)]
    tail = np.sort(row)[-150:]
    expected = {
        "worst group": max(by_group),
        "gap": max(by_group) - min(by_group),
        "directed gap": by_group[2] - by_group[0],
        "ratio": 1 - min(by_group) / max(by_group),
        "quantile": np.sort(row)[int(0.9 * K) - 1],
        "tail": tail.mean(),
    }[kind]
    assert found == pytest.approx(expected, rel=2e-3)


def test_a_certificate_is_recomputed_from_the_losses(kind, tmp_path):
    selection = selected(kind)
    certificate = rp.Certificate.load(selection.certificate.save(tmp_path / "c.json"))
    assert rp.Problem.from_dict(certificate.problem) == selection.problem
    assert rp.verify(certificate, **tables(kind)).ok


def test_a_certificate_is_checked_against_a_file_of_losses(kind, tmp_path):
    path = selected(kind).certificate.save(tmp_path / "c.json")
    losses_path = save_losses(tmp_path / "losses.npz", **tables(kind))
    assert audit(path, str(losses_path), None, None).ok


@pytest.mark.parametrize("kind", [kind for kind, risk in RISKS.items() if risk.needs_groups])
def test_other_groups_are_told(kind):
    changed = tables(kind)
    changed["calibration"]["groups"] = np.roll(GROUPS["calibration"], 1)
    assert not rp.verify(selected(kind).certificate, **changed).ok


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
                    name: values if name == "groups" else values[row]
                    for name, values in table[split].items()
                }
                for split in GROUPS
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
        for split in GROUPS:
            row = losses(split, kind, rng)[round(x * (N - 1))]
            found[split] = {"loss": row}
            if RISKS[kind].needs_groups:
                found[split]["groups"] = GROUPS[split]
        found["validation"]["cost"] = 1 - x
        return rp.Evaluation(**found)

    study.optimize(rp.objective(study, evaluate), n_trials=8)
    assert len(rp.suggest_limits(study)) == 1
    selection = rp.select(study)
    assert selection.search is not None
    assert selection.search.intervals[0].feasible
    assert selection.search.intervals[0].alpha_max < RISKS[kind].limit


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
    plan = rp.plan_calibration(problem, 4000)[0]
    assert RISKS[kind].bottom <= plan.largest_mean < RISKS[kind].limit
    assert len(power_curves(problem).data) == 4
    assert str(RISKS[kind]) in str(rp.plan_calibration(problem, 1)[0])


def test_a_statistic_comes_back_from_json(kind):
    statistic = RISKS[kind].statistic
    assert measures.from_dict(json.loads(json.dumps(measures.to_dict(statistic)))) == statistic


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


def test_an_accuracy_drop_against_a_reference_is_a_mean_of_signed_losses():
    rng = np.random.default_rng(3)
    whole, pruned = rng.random(4000) < 0.2, rng.random(4000) < 0.2
    drop = (whole ^ (pruned & (rng.random(4000) < 0.02))).astype(int) - whole
    risk = rp.Risk("accuracy_drop", at_most=0.03, low=-1, high=1)
    selection = rp.select_from_losses(
        rp.Problem([risk], "size"),
        validation={"accuracy_drop": drop[None, :2000], "size": [1.0]},
        calibration={"accuracy_drop": drop[None, 2000:]},
    )
    assert selection.config is not None
