"""From losses to a choice: what is chosen, what is said, and that nothing leaks."""

import re

import numpy as np
import pytest
import scipy.stats

import riskpilot as rp

PROBLEM = rp.Problem([rp.Risk("error", 0.1)], "cost")


def losses(risks, m, seed):
    rng = np.random.default_rng(seed)
    return rng.random((len(risks), m)) < np.asarray(risks)[:, None]


def select(risks=(0.02, 0.05, 0.3), cost=(3.0, 2.0, 1.0), m=2000, problem=PROBLEM, **kwargs):
    return rp.select_from_losses(
        problem,
        validation={"error": losses(risks, m, 0), "cost": np.array(cost)},
        calibration={"error": losses(risks, m, 1)},
        **kwargs,
    )


def test_the_cheapest_configuration_that_passed_is_chosen():
    selection = select(configs=[{"size": s} for s in "LMS"])
    assert selection.config == {"size": "M"}
    assert selection.valid == ({"size": "L"}, {"size": "M"})
    assert selection.candidates == ({"size": "L"}, {"size": "M"}, {"size": "S"})
    assert selection.p_values.shape == (3,)
    assert (selection.p_values[:2] < 0.1).all()
    assert selection.p_values[2] == pytest.approx(1.0)
    assert selection.certificate.config == {"size": "M"}


def test_the_choice_depends_on_the_free_objective_of_validation_alone():
    risks = (0.02, 0.05, 0.3)
    selections = [
        rp.select_from_losses(
            PROBLEM,
            validation={"error": losses(risks, 2000, 0), "cost": [3.0, 2.0, 1.0]},
            calibration={"error": losses(risks, 2000, 1), **free},
        )
        for free in ({}, {"cost": [0.0, 9.0, 9.0]})
    ]
    assert selections[0].config == selections[1].config == {"index": 1}


def test_the_order_does_not_depend_on_calibration():
    risks = (0.02, 0.05, 0.3)
    orders = [
        rp.select_from_losses(
            PROBLEM,
            validation={"error": losses(risks, 500, 0), "cost": [3.0, 2.0, 1.0]},
            calibration={"error": losses(risks[::direction], 500, seed)},
        ).plan.digest
        for direction in (1, -1)
        for seed in (1, 2, 3)
    ]
    assert len(set(orders)) == 1


def test_numbers_of_every_type_lead_to_the_same_certificate():
    risks = (0.02, 0.05, 0.3)
    digests = set()
    for dtype in (bool, np.uint8, np.int64, np.float16, np.float32, np.float64):
        selection = rp.select_from_losses(
            PROBLEM,
            validation={"error": losses(risks, 500, 0).astype(dtype), "cost": [3.0, 2.0, 1.0]},
            calibration={"error": losses(risks, 500, 1).astype(dtype).tolist()},
        )
        certificate = selection.certificate
        digests.add((certificate.plan_digest, certificate.calibration_digest))
        assert certificate.families == {"error": "binomial"}
    assert len(digests) == 1


def test_nothing_certified_is_a_result_that_says_what_was_closest():
    selection = select(risks=(0.097, 0.3), cost=(2.0, 1.0), m=500)
    assert selection.config is None
    assert selection.valid == ()
    assert selection.certificate.chosen is None
    assert selection.certificate.promise.startswith("Nothing is promised")
    assert "Closest: {'index': 0}" in selection.message
    assert str(selection) == selection.message


def test_a_mean_above_the_limit_is_not_helped_by_more_examples():
    assert "more examples would not help" in select(risks=(0.3,), cost=(1.0,)).message


@pytest.mark.parametrize(
    ("failures", "limit", "words"),
    [
        (70, 0.0700000001, "limit 0.0700000001, p = 0.53; no number of examples that anybody has"),
        (69_996, 0.07, "0.069996 on 1,000,000 calibration examples, limit 0.07"),
        (70_004, 0.07, "0.070004 on 1,000,000 calibration examples, limit 0.07"),
    ],
)
def test_a_mean_next_to_its_limit_is_shown_on_its_side(failures, limit, words):
    n = 1_000 if failures == 70 else 1_000_000
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", limit)], "cost"),
        validation={"error": np.zeros((1, 90), bool), "cost": [1.0]},
        calibration={"error": np.arange(n)[None, :] < failures},
    )
    assert words in selection.message


def test_a_mean_just_below_the_limit_is_told_how_many_examples_would_do():
    calibration = np.arange(100)[None, :] < 8
    selection = rp.select_from_losses(
        PROBLEM,
        validation={"error": np.zeros((1, 90), bool), "cost": [1.0]},
        calibration={"error": calibration},
    )
    assert "examples with this value would have passed" in selection.message
    needed = int(selection.message.split("about ")[1].split(" examples")[0].replace(",", ""))
    enough = np.arange(needed)[None, :] < int(0.08 * needed)
    again = rp.select_from_losses(
        PROBLEM,
        validation={"error": np.zeros((1, 90), bool), "cost": [1.0]},
        calibration={"error": enough},
    )
    assert again.config == {"index": 0}


def test_a_condition_that_no_calibration_example_meets_is_named():
    problem = rp.Problem([rp.Risk("error", 0.1, conditional=True)], "cost")
    selection = rp.select_from_losses(
        problem,
        validation={"error": np.zeros((1, 90)), "cost": [1.0]},
        calibration={"error": np.full((1, 50), np.nan)},
    )
    assert selection.config is None
    assert "no calibration example counts for it" in selection.message


def test_a_candidate_behind_a_failed_one_is_explained():
    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    selection = rp.select_from_losses(
        problem,
        validation={"error": np.arange(200)[None] < [[1], [5]], "cost": [2.0, 1.0]},
        calibration={"error": np.arange(200)[None] < [[60], [0]]},
    )
    assert selection.config is None
    assert "stands behind a candidate that failed" in selection.message


@pytest.mark.parametrize(("count", "m"), [(0, 100), (1, 110), (3, 400), (0, 9000)])
def test_printed_p_values_are_not_smaller_than_they_are(count, m):
    selection = rp.select_from_losses(
        PROBLEM,
        validation={"error": np.zeros((1, 90), bool), "cost": [1.0]},
        calibration={"error": np.arange(m)[None] < count},
    )
    printed = selection.message.split("p = ")[1].split("\n")[0]
    mantissa, _, exponent = printed.partition("e")
    log_printed = np.log(float(mantissa)) + int(exponent or 0) * np.log(10)
    assert log_printed == pytest.approx(float(selection.result.worst_log_p[0]), abs=0.06)


def test_every_procedure_goes_into_the_certificate():
    for procedure, name in (
        (rp.fixed_sequence, "fixed_sequence"),
        (rp.bonferroni, "bonferroni"),
        (rp.holm, "holm"),
        (rp.chain(3), "graphical"),
        (lambda log_p, delta: log_p < -5, "custom: <lambda>"),
    ):
        assert select(procedure=procedure).certificate.procedure["name"] == name


def test_a_second_risk_can_forbid_what_the_first_allows():
    problem = rp.Problem([rp.Risk("error", 0.1), rp.Risk("harm", 0.1)], "cost")
    tables = [
        {"error": losses((0.02, 0.02), 1000, seed), "harm": losses((0.02, 0.2), 1000, seed + 5)}
        for seed in (0, 1)
    ]
    selection = rp.select_from_losses(
        problem, validation={**tables[0], "cost": [2.0, 1.0]}, calibration=tables[1]
    )
    assert selection.config == {"index": 0}


def test_notebooks_show_the_message_and_no_markup_of_the_user():
    selection = select(configs=[{"name": f"<script>{i}</script>"} for i in range(3)])
    shown = selection._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_price_of_each_configuration_may_be_the_same_array_in_both_splits():
    errors = np.random.default_rng(0).random((3, 900)) < 0.05
    prices = np.array([3.0, 2.0, 1.0])
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1)], minimize="price"),
        validation={"error": errors[:, :300], "price": prices},
        calibration={"error": errors[:, 300:], "price": prices},
    )
    assert selection.config == {"index": 2}


@pytest.mark.parametrize("deviation", [0.0, 0.01])
def test_losses_that_vary_little_need_as_many_examples_as_is_said(deviation):
    rng = np.random.default_rng(3)

    def message(n):
        losses = 0.098 + deviation * rng.standard_normal((2, 1, n))
        return rp.select_from_losses(
            PROBLEM,
            validation={"error": losses[0], "cost": [1.0]},
            calibration={"error": losses[1]},
        ).message

    few = message(400)
    assert "Nothing could be certified" in few
    needed = int(few.split("about ")[1].split(" examples")[0].replace(",", ""))
    assert 400 < needed < 3000
    assert "Nothing could be certified" in message(needed // 3)
    assert "Chosen" in message(3 * needed)


def test_the_sizes_of_groups_are_told_apart_from_the_number_of_examples():
    groups = np.repeat(["f", "m"], [300, 700])
    losses = np.random.default_rng(0).random((2, 1, 1000)) < 0.02
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1, statistic=rp.GroupGap(), groups="groups")], "cost"),
        validation={"error": losses[0], "cost": [1.0], "groups": groups},
        calibration={"error": losses[1], "groups": groups.copy()},
    )
    said = " on 1,000 calibration examples, 300 of them in the smallest group, 'f', limit 0.1"
    assert said in selection.message


def test_no_value_is_invented_where_no_example_counts():
    losses = np.zeros((2, 1, 200))
    losses[1] = np.nan
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1, conditional=True)], "cost"),
        validation={"error": losses[0], "cost": [1.0]},
        calibration={"error": losses[1]},
    )
    assert "no value, as no calibration example counts for it, limit 0.1" in selection.message
    assert "without examples nothing can be shown" in selection.message
    assert "no example counts" in selection._repr_html_()


@pytest.mark.parametrize("loss", [0.05, 0.0999])
def test_losses_that_are_not_0_1_as_the_settled_test_expects_are_named_as_the_cause(loss):
    selection = rp.select_from_losses(
        PROBLEM,
        validation={"error": np.arange(2_000)[None] % 20 == 0, "cost": [1.0]},
        calibration={"error": np.full((1, 2_000), loss)},
    )
    assert selection.config is None
    assert "each above 0 counts as a whole one" in selection.message
    assert "would have passed" not in selection.message


@pytest.mark.parametrize(("step", "passes"), [(-2e-7, False), (2e-7, True)])
def test_a_p_value_is_shown_on_its_side_of_the_level(step, passes):
    limit = scipy.stats.beta.ppf(0.9, 98, 2_000 - 97) + step
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", limit)], "cost", delta=0.1),
        validation={"error": np.arange(2_000)[None] < 60, "cost": [1.0]},
        calibration={"error": np.arange(2_000)[None] >= 2_000 - 97},
    )
    assert (selection.config is not None) == passes
    p = float(re.search(r"p = ([0-9.]*[0-9])", selection.message)[1])
    assert p != 0.1
    assert (p < 0.1) == passes
