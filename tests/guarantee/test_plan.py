"""The plan: front and order from validation alone, frozen, and told apart by its digest."""

import dataclasses
import inspect
import math
from collections.abc import Sequence

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.guarantee.testing import freeze_plan, run_test
from riskpilot.losses import ValidationLosses, calibration_losses, validation_losses
from riskpilot.statistics.families import Start, log_betting

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


def rows_with(counts, m=200):
    return np.arange(m)[None, :] < np.asarray(counts)[:, None]


def plan_of(counts, cost, problem=PROBLEM, seed=0):
    table = {"error": rows_with(counts), "cost": np.asarray(cost, float)}
    return freeze_plan(validation_losses(problem, table), seed=seed)


def test_only_the_front_is_tested_safest_first():
    plan = plan_of([40, 10, 20, 30, 10], [1, 4, 3, 3.5, 4])
    assert plan.order == (1, 2, 0)  # 3 is dominated by 2, and 4 repeats 1
    assert plan.free == (4.0, 3.0, 1.0)
    assert [row[0] for row in plan.risks] == [0.05, 0.1, 0.2]
    assert list(plan.log_p_validation) == sorted(plan.log_p_validation)


def test_hopeless_candidates_are_ordered_by_risk():
    assert plan_of([190, 200, 180], [2, 1, 3]).order == (2, 0, 1)


def test_several_risks_are_ordered_by_their_largest_p_value():
    problem = rp.Problem([rp.Risk("a", 0.3), rp.Risk("b", 0.3)], "cost")
    losses = {"a": rows_with([0, 30, 20]), "b": rows_with([50, 20, 25]), "cost": np.zeros(3)}
    assert freeze_plan(validation_losses(problem, losses)).order == (2, 1, 0)


def test_the_test_is_chosen_on_validation_data():
    real = np.full((1, 50), 0.1)
    plan = freeze_plan(validation_losses(PROBLEM, {"error": real, "cost": [1.0]}))
    assert plan.families == {"error": "betting"}
    sealed = calibration_losses(PROBLEM, {"error": rows_with([2])})
    result = run_test(plan, sealed, rp.fixed_sequence)
    shuffled = np.random.default_rng(plan.shuffle).permutation(200)
    start = Start(np.array([0.1]), np.array([0.0]), np.array([50.0]))
    expected = log_betting(rows_with([2])[:, shuffled] * 1.0, 0.3, 0.1, start)
    np.testing.assert_array_equal(result.log_p[:, 0], expected)


def test_the_shuffle_of_the_betting_test_is_fixed_by_the_seed():
    rng = np.random.default_rng(0)
    losses = {"error": rng.random((1, 100)) * 0.5, "cost": [1.0]}
    sealed = calibration_losses(PROBLEM, {"error": rng.random((1, 100)) * 0.5})
    values = [
        run_test(freeze_plan(validation_losses(PROBLEM, losses), seed=seed), sealed, rp.holm).log_p[
            0, 0
        ]
        for seed in (0, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(("changes", "random"), [(31, False), (32, True)])
def test_losses_that_change_often_enough_make_the_order_of_bets_random(changes, random):
    error = np.where(np.minimum(np.arange(200), changes) % 2, 0.5, 0.25)[None]
    losses = validation_losses(PROBLEM, {"error": error, "cost": [1.0]})
    assert losses.risks["error"].most_changes() == changes
    plan = freeze_plan(losses, entropy=7)
    assert plan.entropy == (None if random else 7)


def test_a_plan_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan_of([10], [1]).order = (3,)


CHANGES = {
    "order": lambda plan: dataclasses.replace(plan, order=plan.order[::-1]),
    "family": lambda plan: dataclasses.replace(plan, families={"error": "betting"}),
    "seed": lambda plan: dataclasses.replace(plan, seed=1),
    "shuffle": lambda plan: dataclasses.replace(plan, shuffle=1),
    "aims": lambda plan: dataclasses.replace(plan, aims=(0.1, 0.05)),
    "starts": lambda plan: dataclasses.replace(plan, starts={"error": (((0.1, 0.09, 9.0),) * 2,)}),
    "delta": lambda plan: dataclasses.replace(
        plan, problem=rp.Problem(PROBLEM.risks, "cost", 0.05)
    ),
    "limit": lambda plan: dataclasses.replace(plan, problem=PROBLEM.with_limits(error=0.31)),
    "losses": lambda plan: plan_of([10, 19], [2, 1]),
    "free objective": lambda plan: plan_of([10, 20], [2, 1.5]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_plan_changes_its_digest(change):
    plan = plan_of([10, 20], [2, 1])
    assert plan.digest == plan_of([10, 20], [2, 1]).digest
    assert CHANGES[change](plan).digest != plan.digest


def test_the_procedure_sets_the_levels_that_p_values_aim_at():
    losses = {"error": rows_with([10, 20, 30]), "cost": np.array([3.0, 2.0, 1.0])}
    for procedure, aims in (
        (rp.fixed_sequence, [0.1, 0.1, 0.1]),
        (rp.bonferroni, [0.1 / 3] * 3),
        (rp.holm, [0.1 / 3, 0.05, 0.1]),
        (rp.chain(3), [0.1, 0.1, 0.1]),
    ):
        plan = freeze_plan(validation_losses(PROBLEM, losses), procedure=procedure)
        np.testing.assert_allclose(plan.aims, aims)
    with pytest.raises(rp.ProblemError, match="made for 2 candidates, but 3"):
        freeze_plan(validation_losses(PROBLEM, losses), procedure=rp.chain(2))
    with pytest.raises(rp.ProblemError, match="procedure is a function"):
        freeze_plan(validation_losses(PROBLEM, losses), procedure="holm")


def test_what_bets_begin_with_is_that_of_the_candidates_in_their_order():
    rng = np.random.default_rng(0)
    table = np.array([[0.3], [0.1], [0.2]]) * rng.random((3, 80))
    seen = validation_losses(PROBLEM, {"error": table, "cost": np.array([1.0, 3.0, 2.0])})
    plan = freeze_plan(seen)
    assert plan.order == (1, 2, 0)
    expected = np.column_stack([table.mean(axis=1), table.var(axis=1), np.full(3, 80)])
    np.testing.assert_allclose(plan.starts["error"][0], expected[[1, 2, 0]], atol=1e-6)
    (start,) = plan.settings(PROBLEM.risks[0], slice(1, 2)).starts
    np.testing.assert_allclose(start.mean, expected[2, :1], atol=1e-6)
    # 0/1 losses are counted: there are no bets, and nothing to begin with.
    assert not plan_of([10, 20], [2, 1]).starts


def test_the_plan_is_made_from_validation_losses_and_nothing_else():
    parameters = inspect.signature(freeze_plan).parameters
    assert parameters["validation"].annotation in (ValidationLosses, "ValidationLosses")
    settings = {"procedure", "seed", "entropy", "judged"}  # none of them holds losses
    assert set(parameters) == {"validation", "estimates", "known_order"} | settings
    # An order is rows and nothing else, and whoever asks knew it before any data.
    assert parameters["known_order"].annotation in (Sequence[int] | None, "Sequence[int] | None")


def test_a_known_order_is_the_testing_order_and_nothing_is_filtered():
    losses = {"error": rows_with([30, 10, 20]), "cost": np.array([1.0, 1.0, 1.0])}
    plan = freeze_plan(validation_losses(PROBLEM, losses), known_order=[2, 0, 1])
    assert plan.order == (2, 0, 1)


def test_filter_and_order_go_by_estimates_where_there_are_some():
    # By its mean, row 1 is as safe as row 0 and cheaper; the estimates know that this is luck.
    losses = validation_losses(
        PROBLEM, {"error": rows_with([20, 20, 60]), "cost": np.array([3.0, 2.0, 1.0])}
    )
    assert freeze_plan(losses).order == (1, 2)
    plan = freeze_plan(losses, estimates=np.array([[0.1], [0.2], [0.3]]))
    assert plan.order == (0, 1, 2)
    assert plan.estimates == ((0.1,), (0.2,), (0.3,))
    assert [risks[0] for risks in plan.risks] == [0.1, 0.1, 0.3]  # what is told stays the mean


def test_an_order_does_not_hang_on_the_last_digits_of_an_estimate():
    losses = validation_losses(
        PROBLEM, {"error": rows_with([20, 30, 40]), "cost": np.array([3.0, 2.0, 1.0])}
    )
    estimates = np.array([[0.1], [0.1], [0.1]])
    moved = estimates * (1 + np.array([[1e-13], [-1e-13], [2e-13]]))
    assert freeze_plan(losses, estimates=moved) == freeze_plan(losses, estimates=estimates)


def test_the_largest_p_value_of_the_risks_is_what_the_procedure_gets():
    problem = rp.Problem([rp.Risk("a", 0.3), rp.Risk("b", 0.3)], "cost")
    losses = {"a": rows_with([5, 9]), "b": rows_with([50, 40]), "cost": [1.0, 0.0]}
    plan = freeze_plan(validation_losses(problem, losses))
    got = []

    def procedure(log_p, delta):
        got.append((log_p, delta))
        return log_p < math.log(delta)

    sealed = calibration_losses(problem, {"a": rows_with([5, 9]), "b": rows_with([50, 40])})
    result = run_test(plan, sealed, procedure)
    np.testing.assert_array_equal(got[0][0], result.log_p.max(axis=1))
    assert got[0][1] == 0.1
