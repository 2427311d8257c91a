"""Losses on their way in: counted exactly, digested by value, and refused where they leak."""

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.guarantee.risk_tests import log_p_for_order
from riskpilot.guarantee.testing import freeze_plan
from riskpilot.losses import (
    CalibrationLosses,
    ExampleIds,
    ValidationLosses,
    calibration_losses,
    check_disjoint,
    read_ids,
    summary_of,
    validation_losses,
)
from riskpilot.losses.leakage import check_memory
from riskpilot.losses.ranges import to_unit
from riskpilot.statistics import GroupSummary
from riskpilot.statistics.contrasts import Claim, log_p_of_pairs
from riskpilot.study.kept.records import RiskRecord
from riskpilot.study.kept.trials import finished

UNIT = rp.Problem([rp.Risk("error", 0.2)], "cost")
SIGNED = rp.Problem([rp.Risk("error", 0.2, low=-1)], "cost")
CONDITIONAL = rp.Problem([rp.Risk("error", 0.2, conditional=True)], "cost")

DTYPES = [bool, np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64]


def read(problem, values):
    table = np.asarray(values)
    return validation_losses(problem, {"error": table, "cost": np.zeros(len(table))})


def summary(problem, values):
    return read(problem, values).risks["error"].summary


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 7, 5001, 70_000])
def test_zero_one_losses_are_counted_whatever_their_type(dtype, m):
    rng = np.random.default_rng(m)
    table = rng.random((3, m)) < 0.9
    found = summary(UNIT, table.astype(dtype))
    assert found.binary
    for counted in (found.total, found.squares, found.above_zero):
        np.testing.assert_array_equal(counted, table.sum(axis=1))
    assert found.n.tolist() == [m] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_digests_depend_on_values_not_on_types_or_layout(dtype):
    rng = np.random.default_rng(0)
    table = rng.random((4, 100)) < 0.5
    reference = read(UNIT, table).digest()
    assert read(UNIT, table.astype(dtype)).digest() == reference
    assert read(UNIT, np.asfortranarray(table.astype(dtype))).digest() == reference
    assert read(UNIT, np.repeat(table.astype(dtype), 2, axis=1)[:, ::2]).digest() == reference


@pytest.mark.parametrize("value", [0.999, 0.5, 1e-3, 1e-8])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_loss_between_the_ends_is_not_binary(value, dtype):
    table = np.ones((1, 5000), dtype=dtype)
    table[0, 17] = value
    if table[0, 17] in (0.0, 1.0):
        table[0, 17] = 0.5  # half precision has no 1e-8
    found = summary(UNIT, table)
    assert not found.binary
    assert found.total[0] == pytest.approx(4999 + float(table[0, 17]), rel=1e-12)


def test_some_binary_and_some_real_rows_are_each_counted():
    rng = np.random.default_rng(1)
    table = np.vstack([rng.random((2, 300)) < 0.5, rng.random((2, 300))])
    found = summary(UNIT, table)
    assert not found.binary
    np.testing.assert_allclose(found.total, table.sum(axis=1))
    np.testing.assert_allclose(found.squares, (table**2).sum(axis=1))
    np.testing.assert_array_equal(found.above_zero, (table > 0).sum(axis=1))


def test_losses_at_both_ends_of_a_signed_range_are_binary():
    found = summary(SIGNED, [[-1, 1, 1, -1, 1]])
    assert found.binary
    assert found.total.tolist() == [3.0]
    zeros = summary(SIGNED, [[0, 1, 0, -1, 1]])
    assert not zeros.binary
    assert zeros.total.tolist() == [0.5 + 1 + 0.5 + 0 + 1]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_zero_is_no_end_of_a_signed_range(dtype):
    found = summary(SIGNED, np.array([[0, 0, 1, 0]], dtype))
    assert found.mean.tolist() == [0.625]  # on the unit scale: 0 becomes a half
    assert not found.binary


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64])
def test_whole_numbers_may_be_fewer_than_their_range_holds(dtype):
    narrow = rp.Problem([rp.Risk("error", 0.2, high=0.5)], "cost")
    assert summary(narrow, np.zeros((1, 9), dtype)).mean.tolist() == [0.0]


def test_examples_that_do_not_count_are_left_out_of_every_sum():
    nan = np.nan
    found = summary(CONDITIONAL, [[nan, 1.0, 0.0, nan], [nan] * 4, [0.5] * 4])
    assert found.n.tolist() == [2, 0, 4]
    assert found.total.tolist() == [1.0, 0.0, 2.0]
    assert found.mean.tolist() == [0.5, 1.0, 0.5]


def test_standard_errors_are_those_of_the_mean():
    rng = np.random.default_rng(2)
    table = rng.random((3, 400))
    found = summary(UNIT, table)
    np.testing.assert_allclose(found.standard_error, table.std(axis=1) / 20)
    assert summary(UNIT, np.zeros((1, 50))).standard_error.tolist() == [1 / 50]


def test_the_free_objective_is_a_number_or_a_mean_with_its_error():
    table = np.zeros((2, 4), bool)
    numbers = validation_losses(UNIT, {"error": table, "cost": [3, 4]})
    assert numbers.free.tolist() == [3.0, 4.0]
    assert numbers.free_error is None
    rows = validation_losses(UNIT, {"error": table, "cost": [[1, 3, 1, 3], [2, 2, 2, 2]]})
    assert rows.free.tolist() == [2.0, 2.0]
    assert rows.free_error.tolist() == [0.5, 0.0]


def test_the_kinds_of_losses_are_types_of_their_own():
    table = np.zeros((1, 4), bool)
    sealed = calibration_losses(UNIT, {"error": table})
    assert not isinstance(sealed, ValidationLosses)
    assert not isinstance(read(UNIT, table), CalibrationLosses)
    with pytest.raises(TypeError):  # a plan needs the free objective, which sealed losses lack
        freeze_plan(sealed)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_calibration_losses_that_are_the_validation_losses_are_refused(kind):
    rng = np.random.default_rng(3)
    table = rng.random((2, 200))
    table = table < 0.4 if kind == "binary" else table
    with pytest.raises(rp.LeakageError, match="same 200 numbers"):
        check_disjoint(read(UNIT, table), calibration_losses(UNIT, {"error": table.copy()}))
    turned = read(UNIT, table), calibration_losses(UNIT, {"error": table[:, ::-1]})
    if kind == "real":
        with pytest.raises(rp.LeakageError, match="same 200 in both, in another order"):
            check_disjoint(*turned)
    else:  # equal counts of two 0/1 columns may be chance
        check_disjoint(*turned)
        ids = ExampleIds(*(np.array([f"{i}-{n}" for n in range(200)]) for i in range(2)))
        check_disjoint(*turned, ids=ids)
        ids = ExampleIds(ids.validation, ids.calibration[::-1])
        with pytest.raises(rp.LeakageError, match="same 200 in both, in another order"):
            check_disjoint(*turned, ids=ids)


def test_patterns_of_many_0_1_columns_are_no_chance_in_any_order():
    rng = np.random.default_rng(4)
    table = rng.random((8, 400)) < 0.3
    order = rng.permutation(400)
    moved = calibration_losses(UNIT, {"error": table[:, order]})
    with pytest.raises(rp.LeakageError, match="another order"):
        check_disjoint(read(UNIT, table), moved)
    # The same counts in every column, which did not move together.
    other = np.array([rng.permutation(row) for row in table])
    check_disjoint(read(UNIT, table), calibration_losses(UNIT, {"error": other}))


def test_equal_losses_that_may_be_chance_are_allowed():
    zeros = np.zeros((3, 500), bool)
    check_disjoint(read(UNIT, zeros), calibration_losses(UNIT, {"error": zeros.copy()}))
    few = np.zeros((1, 500), bool)
    few[0, 3] = True
    check_disjoint(read(UNIT, few), calibration_losses(UNIT, {"error": few.copy()}))
    constant = np.full((1, 500), 0.25)
    check_disjoint(read(UNIT, constant), calibration_losses(UNIT, {"error": constant.copy()}))


@pytest.mark.parametrize(("different", "refused"), [(11, False), (12, True)])
def test_equal_losses_of_many_values_are_no_chance(different, refused):
    table = np.arange(120)[None] % different / different
    splits = read(UNIT, table), calibration_losses(UNIT, {"error": table.copy()})
    if refused:
        with pytest.raises(rp.LeakageError, match="same 120 numbers"):
            check_disjoint(*splits)
    else:
        check_disjoint(*splits)


def test_ids_of_one_split_alone_are_compared_with_nothing():
    read_ids(None, ["a", "b"])
    read_ids(["a", "b"], None)
    with pytest.raises(rp.LeakageError, match="such as 'b'"):
        read_ids(["a", "b"], ["b"])


def test_classes_are_whole_numbers_below_2_to_the_53():
    risk = rp.Risk("error", 0.2)
    largest = 2**53 - 1
    found = rp.losses_from_predictions(risk, [0, largest], [0, -largest])
    assert found["error"].tolist() == [False, True]
    for labels in ([0, largest + 1], [0, -largest - 1]):
        with pytest.raises(rp.LossError, match=r"below 2\^53"):
            rp.losses_from_predictions(risk, labels, [0, 1])
    with pytest.raises(rp.LossError, match="classes as whole numbers"):
        rp.losses_from_predictions(risk, [0.5, 1.0], [0, 1])


def test_groups_are_compared_within_the_true_labels_where_no_others_are_given():
    named = rp.Risk("equalized_odds_gap", 0.2)
    labels, predicted, groups = [0, 1, 0, 1], [1, 1, 0, 0], ["a", "a", "b", "b"]
    found = rp.losses_from_predictions(named, labels, predicted, groups={"groups": groups})
    assert found["label"].tolist() == labels
    other = {"groups": groups, "label": ["x", "x", "y", "y"]}
    found = rp.losses_from_predictions(named, labels, predicted, groups=other)
    assert found["label"].tolist() == other["label"]


def test_a_number_may_be_the_same_array_for_both_splits():
    """What is one number has no examples that could be shared."""
    number = np.array(2.0)
    table = np.random.default_rng(0).random((2, 1, 100))
    check_memory({"error": table[0], "x": number}, {"error": table[1], "x": number}, "cost")
    with pytest.raises(rp.LeakageError, match="'error' overlap in memory"):
        check_memory({"error": table[0]}, {"error": table[0][:, 50:]}, "cost")


@pytest.mark.parametrize("n", [2, 3])
def test_what_stands_beside_the_losses_is_the_same_for_every_configuration(n):
    problem = rp.Problem([rp.Risk("error", 0.2, weights="w", largest_weight=2)], "cost")
    weights = np.ones((n, 30))
    read = {"error": np.zeros((n, 30)), "w": weights}
    assert calibration_losses(problem, read).risks["error"].weights.tolist() == [0.5] * 30
    weights[-1, -1] = 0.5
    with pytest.raises(rp.LossError, match="They are the same for every configuration"):
        calibration_losses(problem, read)


def test_a_gap_is_that_of_the_groups_that_have_examples():
    losses = [[1, 0, np.nan], [1, 0, 1]]  # of one configuration no example of b counts
    assert rp.measure(rp.GroupGap(), losses, ["a", "a", "b"]).tolist() == [1.0, 0.5]


def test_one_loss_is_enough_to_measure_and_none_that_counts_is_the_worst():
    assert rp.measure(rp.Mean(), [[0.25]]).tolist() == [0.25]
    assert rp.measure(rp.Mean(), [[np.nan, np.nan]]).tolist() == [1.0]
    assert rp.weighted([[0.5]], [1.0], largest=2).tolist() == [[0.5]]
    assert rp.weighted([0.5, 1.0, 0.0], [0.5, 1.5, 1.0], largest=2).tolist() == [0.25, 1.5, 0.0]


def test_nothing_to_compare_shows_nothing():
    """An empty maximum is no evidence: p = 1, and the value is the worst there is."""
    part = summary(UNIT, np.zeros((2, 30)))
    gap = rp.GroupGap(("a", "b"), directed=True, within="label")
    names = (("b", "0"), ("b", "1"))
    assert gap.pairs(names) == []
    found = GroupSummary(gap, names, (part, part))
    assert found.mean.tolist() == [1.0, 1.0]
    assert found.n.tolist() == [0, 0]
    risk = rp.Risk("error", 0.1, statistic=gap)
    assert log_p_for_order(risk, "betting", found).tolist() == [0.0, 0.0]
    assert Claim(1.0, -1.0, 1.0).log_p(np.zeros((1, 30)), 0.1) < 0  # a bound at the very end
    claim = Claim(1.0, -1.0, 0.1)
    assert log_p_of_pairs(claim, [np.zeros((2, 30))] * 2, [], 0.1).tolist() == [0.0, 0.0]


def test_losses_are_0_1_where_those_of_every_record_are():
    """The exact test of 0/1 losses holds for no configuration whose losses are others."""
    binary = RiskRecord(5, 1.0, 1.0, 1, True, "", 1)
    graded = RiskRecord(5, 0.5, 0.25, 1, False, "", 1)
    risk = rp.Risk("error", 0.1)
    assert summary_of(risk, [binary, binary]).binary
    assert not summary_of(risk, [binary, graded]).binary


def test_records_of_groups_without_any_group_are_refused():
    risk = rp.Risk("error", 0.1, statistic=rp.WorstGroup())
    with pytest.raises(rp.LossError, match="name none"):
        summary_of(risk, [RiskRecord(5, 0.0, 0.0, 0, True, "", 0, groups=[])])


def test_groups_within_labels_are_compared_by_group_and_label():
    names = (("a", "x | b"), ("a | x", "b"), ("b", "x | b"), ("b | x", "b"))
    assert rp.GroupGap(within="label").pairs(names) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    directed = rp.GroupGap(("a", "b"), directed=True, within="label")
    assert directed.pairs(names) == [(0, 2)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_takes_no_loss_to_an_end_of_its_range(dtype):
    problem = rp.Problem([rp.Risk("error", 0, low=-1e18, high=1e18)], "cost")
    inside = np.array([[-1e18, 1e18]], dtype)
    inside = np.nextafter(inside, dtype(0))
    found = summary(problem, np.repeat(inside, 20, axis=1))
    assert not found.binary
    assert found.above_zero.tolist() == [40]
    tiny = rp.Problem([rp.Risk("error", 1e149, high=1e150)], "cost")
    found = summary(tiny, [[1e-180] * 40])
    assert not found.binary
    assert found.above_zero.tolist() == [40]


def test_zeros_of_either_sign_are_one_loss():
    one = np.array([[0.0, 0.5, 0.25]])
    assert read(UNIT, one).digest() == read(UNIT, np.where(one == 0, -0.0, one)).digest()


def test_a_range_too_narrow_for_the_type_of_the_losses_is_refused():
    narrow = rp.Problem([rp.Risk("error", 0.1 + 5e-10, low=0.1, high=0.1 + 1e-9)], "cost")
    with pytest.raises(rp.LossError, match="one number"):
        read(narrow, np.full((1, 5), 0.1, np.float32))


def test_whole_numbers_that_double_precision_rounds_are_refused():
    wide = rp.Problem([rp.Risk("error", 1e15, high=1e19)], "cost")
    with pytest.raises(rp.LossError, match="larger unit"):
        read(wide, np.array([[2**53 + 1, 0]]))
    assert read(wide, np.array([[2**53 - 1, 0]])).n_examples == 2


@pytest.mark.parametrize("name", [1, None, ("error",), b"error"])
def test_losses_are_named_by_texts(name):
    table = {name: np.zeros((1, 4)), "error": np.zeros((1, 4)), "cost": [0.0]}
    with pytest.raises(rp.LossError, match="named by texts"):
        validation_losses(UNIT, table)
    study = rp.create_study(UNIT, seed=0)
    row = {key: np.zeros(4) for key in table}
    with pytest.raises(rp.LossError, match="named by texts"):
        study.optimize(rp.objective(study, lambda trial: rp.Evaluation(row)), n_trials=1)


ODD = {
    "a text": "abc",
    "a mapping": {"a": 1},
    "rows of different lengths": [[0, 1], [1]],
    "three dimensions": np.zeros((1, 4, 1)),
    "one number": 0.3,
    "a number beyond all": [[10**400] * 4],
    "a generator": (x for x in [0, 1]),
    "a negative number": [[-1, 0, 0, 1]],
    "nothing": None,
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("place", ["error", "cost", "w", "reference"])
def test_odd_values_are_refused_wherever_they_stand(name, place):
    more = {"weights": "w", "largest_weight": 1} if place == "w" else {}
    statistic = rp.Difference() if place == "reference" else rp.Mean()
    problem = rp.Problem([rp.Risk("error", 0.2, statistic=statistic, **more)], "cost")
    table = {"error": np.zeros((1, 4)), "cost": [0.0]}
    table |= {beside: np.zeros(4) for beside in problem.beside}
    if (name, place) == ("a negative number", "cost"):
        return  # a free objective may be negative
    table[place] = ODD[name]
    with pytest.raises(rp.LossError):
        validation_losses(problem, table)
    row = {key: np.zeros(4) for key in table} | {place: ODD[name]}
    study = rp.create_study(problem, seed=0)
    if (name, place) == ("one number", "cost"):
        return  # of one configuration it is one number
    with pytest.raises(rp.LossError):
        study.optimize(rp.objective(study, lambda trial: rp.Evaluation(row)), n_trials=1)


def test_trials_that_plain_optuna_finished_are_counted():
    study = rp.create_study(UNIT, sampler=optuna.samplers.RandomSampler(seed=0))
    rng = np.random.default_rng(0)

    def evaluate(trial):
        trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": rng.random(50) < 0.1, "cost": 1.0})

    study.optimize(rp.objective(study, evaluate), n_trials=2)
    assert finished(study).without_losses == ()
    study.tell(study.ask(), [0.1, 1.0])
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    study.ask()
    assert finished(study).without_losses == (2,)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-3.0, 5.0), (0.0, 0.3), (-1e6, 1.0)])
def test_only_losses_at_an_end_of_the_range_are_at_an_end_of_the_unit_scale(low, high):
    risk = rp.Risk("loss", 0.5 * high, low=low, high=high)
    nearly = np.array([low, np.nextafter(low, high), np.nextafter(high, low), high])
    unit = to_unit(nearly, risk)
    assert unit[0] == 0
    assert unit[3] == 1
    assert ((unit[1:3] > 0) & (unit[1:3] < 1)).all()
    assert (np.diff(unit) >= 0).all()


def test_a_free_objective_of_examples_is_of_the_same_examples():
    study = rp.create_study(UNIT)
    with pytest.raises(rp.LossError, match="one for each of the 3 examples, but there are 2"):
        rp.tell(study, study.ask(), rp.Evaluation({"error": [0, 1, 0], "cost": [1, 2]}))
    with pytest.raises(rp.LossError, match="one for each of the 3 examples, but there are 2"):
        validation_losses(UNIT, {"error": [[0, 1, 0]], "cost": [[1, 2]]})
    for cost in ([[1, 2, 3]], [[2]], [2]):
        assert validation_losses(UNIT, {"error": [[0, 1, 0]], "cost": cost}).free == [2]


@pytest.mark.parametrize("ids", [[[[0.5]]], [[["a"]]], [("f", [1, 2])]])
def test_the_parts_of_an_id_are_single_values(ids):
    with pytest.raises(rp.LossError, match="are single values, but in calibration_ids some are"):
        rp.select_from_losses(
            rp.Problem([rp.Risk("error", 0.1)], "cost"),
            validation={"error": [[0, 1]], "cost": [1.0]},
            calibration={"error": [[0]]},
            calibration_ids=ids,
        )
