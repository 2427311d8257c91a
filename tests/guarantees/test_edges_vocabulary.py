"""What a name says is what is tested: false promises that a name, a code or a word once allowed.

Every configuration here breaks its limit, or sits exactly on it. Whatever path a limit takes, it
must not be certified more often than delta allows.
"""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import riskpilot as rp
from riskpilot.problem.notation import parse_risk
from riskpilot.sklearn import RiskControlledSearch, RiskControlledThreshold

DELTA = 0.1
R = 120
N = 600


def rate_certified(problem, draw, effort, **codes):
    """How often the one configuration that there is gets certified; and how often it may be."""
    rng = np.random.default_rng(0)
    replications = round(R * effort)
    certified = 0
    for _ in range(replications):
        tables = []
        for _ in range(2):
            label, predicted, groups = draw(rng)
            tables.append(
                rp.losses_from_predictions(problem, label, predicted[None], groups=groups, **codes)
            )
        validation, calibration = tables
        calibration.pop(problem.minimize, None)
        validation[problem.minimize] = np.zeros(1)
        selection = rp.select_from_losses(problem, validation=validation, calibration=calibration)
        certified += selection.config is not None
    return certified / replications, DELTA + 3 * np.sqrt(DELTA * (1 - DELTA) / replications)


def half_wrong_in_a_small_group(rng):
    """A mean error of about 0.07; in the small group 0.5, of either kind."""
    label = rng.integers(0, 2, N)
    groups = np.where(rng.random(N) < 0.1, "small", "large")
    wrong = rng.random(N) < np.where(groups == "small", 0.5, 0.02)
    return label, np.where(wrong, 1 - label, label), groups


def all_selected_in_a_small_group(rng):
    label = rng.random(N) < 0.1
    groups = np.where(rng.random(N) < 0.1, "small", "large")
    return label, np.where(groups == "small", True, label), groups


GROUPED = {
    "worst_group_error": half_wrong_in_a_small_group,
    "worst_group_false_negative_rate": half_wrong_in_a_small_group,
    "Worst-group error": half_wrong_in_a_small_group,
    "worstgrouperror": half_wrong_in_a_small_group,
    "error_gap": half_wrong_in_a_small_group,
    "errorgap": half_wrong_in_a_small_group,
    "gap_in_error": half_wrong_in_a_small_group,
    "equalised_odds_gap": half_wrong_in_a_small_group,
    "recall_gap": half_wrong_in_a_small_group,
    "fpr_gap": half_wrong_in_a_small_group,
    "equal_opportunity_gap": half_wrong_in_a_small_group,
    "equalized_odds_gap": half_wrong_in_a_small_group,
    "demographic_parity_gap": all_selected_in_a_small_group,
}


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("how", ["limit", "at_most", "text", "set later"])
def test_a_name_of_groups_is_tested_in_groups_however_its_limit_is_given(name, how, effort):
    risk = {
        "limit": lambda: rp.Risk(name, 0.2),
        "at_most": lambda: rp.Risk(name, at_most=0.2),
        "text": lambda: parse_risk(f"{name} <= 0.2"),
        "set later": lambda: (
            rp.Problem([rp.Risk(name)], "cost").with_limits(**{name: 0.2}).risks[0]
        ),
    }[how]()
    problem = rp.Problem([risk], "cost", DELTA)
    rate, allowed = rate_certified(problem, GROUPED[name], effort if how == "limit" else 0.2)
    assert rate <= allowed
    assert "group" in risk.words
    assert risk.words in str(problem)


@pytest.mark.parametrize("name", ["worst_group_accuracy", "worst_group_recall"])
def test_a_lower_limit_on_the_worst_group_is_tested_in_groups(name, effort):
    for risk in (rp.Risk(name, at_least=0.8), rp.Risk(name).with_bound(0.8)):
        problem = rp.Problem([risk], "cost", DELTA)
        rate, allowed = rate_certified(problem, half_wrong_in_a_small_group, 0.5 * effort)
        assert rate <= allowed
    with pytest.raises(rp.ProblemError, match=r"at_least=0\.2"):
        rp.Risk(name, 0.2)


@pytest.mark.parametrize(
    "name", ["accuracy", "recall", "precision", "coverage", "tpr", "Accuracy", "truepositiverate"]
)
@pytest.mark.parametrize("how", ["limit", "at_most"])
def test_what_is_better_when_larger_takes_no_upper_limit(name, how):
    with pytest.raises(rp.ProblemError, match=r"better when larger.*at_least=0\.9"):
        rp.Risk(name, **{how: 0.9})
    with pytest.raises(rp.ProblemError, match="better when larger"):
        rp.Problem([rp.Risk("harm", 0.1)], minimize=name)


@pytest.mark.parametrize(
    "name",
    ["auc", "ROC-AUC", "F1", "val_accuracy", "Top-5 accuracy", "reward", "success rate", "pass@1"],
)
def test_names_that_are_known_to_mean_larger_is_better_are_no_losses(name):
    with pytest.raises(rp.ProblemError, match=r"larger is better.*one_minus_"):
        rp.Risk(name, 0.9)
    with pytest.raises(rp.ProblemError, match="larger"):
        rp.Problem([rp.Risk("harm", 0.1)], minimize=name)


def test_an_accuracy_at_its_lower_limit_is_certified_with_probability_delta_at_most(effort):
    def draw(rng):
        label = rng.integers(0, 3, N)
        return label, np.where(rng.random(N) < 0.1, (label + 1) % 3, label), None

    problem = rp.Problem([rp.Risk("accuracy", at_least=0.9)], "cost", DELTA)
    rate, allowed = rate_certified(problem, draw, effort)
    assert rate <= allowed


@pytest.mark.parametrize("name", ["error", "false_negative_rate", "fnr"])
def test_the_class_minus_one_is_a_class(name, effort):
    """Four of ten examples of class 1 are taken for class -1."""

    def draw(rng):
        label = rng.choice([-1, 1], N, p=[0.2, 0.8])
        return label, np.where(rng.random(N) < 0.4, -1, label), None

    problem = rp.Problem([rp.Risk(name, 0.2)], "cost", DELTA)
    rate, allowed = rate_certified(problem, draw, effort)
    assert rate <= allowed


def test_a_code_that_might_hand_examples_over_is_never_guessed():
    risk = rp.Risk("error", 0.2)
    with pytest.raises(rp.LossError, match="abstain=-1"):
        rp.losses_from_predictions(risk, [0, 1, 1], [0, -1, 1])
    with pytest.raises(rp.LossError, match="occurs among the labels"):
        rp.losses_from_predictions(risk, [-1, 1, 1], [1, -1, 1], abstain=-1)
    for name in ("abstention", "selective_error"):
        with pytest.raises(rp.LossError, match="abstain="):
            rp.losses_from_predictions(rp.Risk(name, 0.2), [0, 1], [0, 1])
    found = rp.losses_from_predictions(risk, [0, 1, 1], [0, 7, 1], abstain=7)
    np.testing.assert_array_equal(found["error"], [False, False, False])


@pytest.mark.parametrize("classes", [(0, 2), (1, 2), (0, 1, 2)])
def test_the_positive_class_is_never_guessed(classes):
    """With positive=1 by default no prediction of class 2 would count as a false alarm."""
    label = np.array(classes * 4)
    risk = rp.Risk("false_positive_rate", 0.2)
    with pytest.raises(rp.LossError, match="positive="):
        rp.losses_from_predictions(risk, label, label[::-1])
    with pytest.raises(rp.LossError, match="must occur"):
        rp.losses_from_predictions(risk, label, label[::-1], positive=9)
    found = rp.losses_from_predictions(risk, label, label[::-1], positive=2)
    counted = found["false_positive_rate"][label != 2]
    np.testing.assert_array_equal(counted, label[::-1][label != 2] == 2)


def test_thresholds_for_classes_minus_one_and_one_are_those_for_zero_and_one():
    rng = np.random.default_rng(0)
    score = rng.random(1500)
    y = (rng.random(1500) < score).astype(int)
    found = []
    for classes in (np.array([0, 1]), np.array([-1, 1])):
        model = _Known(classes)
        made = RiskControlledThreshold(
            model, risks=["error <= 0.4", "fpr <= 0.4"], minimize="fnr", random_state=0
        ).fit(score[:, None], classes[y])
        found.append((made.best_params_, made.selection_.p_values.tolist()))
        assert set(made.predict(score[:, None])) == set(classes.tolist())
    assert found[0] == found[1]


class _Known:
    """A fitted classifier whose scores are its only feature."""

    _estimator_type = "classifier"

    def __init__(self, classes):
        self.classes_ = classes

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression().__sklearn_tags__()


MISSING = [np.nan, None]


@pytest.mark.parametrize("odd", [*MISSING, 7, "1", 0.5])
@pytest.mark.parametrize("part", ["y", "y_val"])
def test_a_label_that_is_missing_or_no_class_is_never_counted_as_a_negative(odd, part):
    """Counted as negatives, unlabelled examples of low scores would make any threshold pass."""
    rng = np.random.default_rng(0)
    score = rng.random((1500, 1))
    y = (rng.random(1500) < score[:, 0]).astype(object)
    with_odd = np.where(np.arange(1500) < 500, odd, y)
    search = RiskControlledThreshold(_Known(np.array([0, 1])), risks={"fpr": 0.3}, minimize="fnr")
    parts = {"y": y, "X_val": score, "y_val": y, part: with_odd}
    with pytest.raises(rp.LossError, match=r"missing|one of the classes"):
        search.fit(score, **parts)


@pytest.mark.parametrize("odd", [*MISSING, np.ma.masked])
def test_a_search_refuses_labels_that_are_missing(odd):
    X = np.random.default_rng(0).random((300, 1))
    y = np.ma.masked_array((X[:, 0] > 0.5).astype(object))
    y[::3] = odd
    search = RiskControlledSearch(
        DecisionTreeClassifier(), {"max_depth": (1, 3)}, risks={"error": 0.4}, minimize="fnr"
    )
    with pytest.raises(rp.LossError, match=r"missing|masked"):
        search.fit(X, y)


def test_a_search_refuses_classes_that_it_was_not_fitted_with():
    X = np.random.default_rng(0).random((300, 1))
    y = (X[:, 0] > 0.5).astype(int)
    search = RiskControlledSearch(
        DecisionTreeClassifier(), {"max_depth": (1, 3)}, risks={"fpr": 0.4}, minimize="fnr"
    )
    with pytest.raises(rp.LossError, match="one of the classes"):
        search.fit(X, y, X_cal=X, y_cal=y * 7)
    with pytest.raises(rp.LossError, match="of one kind"):
        search.fit(X, np.where(y == 1, "a", y.astype(object)))


@pytest.mark.parametrize("missing", MISSING)
def test_losses_are_made_of_no_label_that_is_missing(missing):
    with pytest.raises(rp.LossError, match="1 of them are missing"):
        rp.losses_from_predictions(rp.Risk("fpr", 0.2), [0, 1, missing], [0, 1, 1])


@pytest.mark.parametrize(
    "name", ["false_discovery_rate", "precision", "selective_error", "selective_accuracy", "fdr"]
)
def test_no_difference_is_taken_where_predictions_decide_who_counts(name):
    with pytest.raises(rp.ProblemError, match="counts other examples"):
        rp.Risk(name, at_most=0.05, statistic=rp.Difference())


@pytest.mark.parametrize("name", ["precision_drop", "ppv_drop", "selective_accuracy_drop"])
def test_no_drop_is_taken_by_name_where_predictions_decide_who_counts(name):
    with pytest.raises(rp.ProblemError, match="counts other examples"):
        rp.Risk(name, at_most=0.05)


@pytest.mark.parametrize(("name", "base"), [("recall", 0.9), ("specificity", 0.6)])
def test_a_drop_of_a_rate_given_the_label_at_its_limit(name, base, effort):
    """The drop is exactly the limit: of those that the reference finds, a share gets lost."""
    rng = np.random.default_rng(1)
    risk = rp.Risk(name, at_most=0.1, statistic=rp.Difference("dense"))
    problem = rp.Problem([risk], "cost", DELTA)
    certified, replications = 0, R * effort
    for _ in range(replications):
        tables = []
        for _ in range(2):
            label = rng.random(N) < 0.5
            dense = np.where(rng.random(N) < base, label, ~label)
            lost = (dense == label) & (rng.random(N) < 0.1 / base)
            pruned = np.where(lost, ~label, dense)
            tables.append(rp.losses_from_predictions(risk, label, pruned[None], reference=dense))
        validation = {**tables[0], "cost": [0.0]}
        found = rp.select_from_losses(problem, validation=validation, calibration=tables[1])
        certified += found.config is not None
    assert certified / replications <= DELTA + 3 * np.sqrt(0.09 / replications)
    assert str(risk) == f"drop of {name} <= 0.1 (mean loss minus that of dense)"


def test_a_drop_in_accuracy_sees_what_is_handed_over(effort):
    """Accuracy falls from 0.9 to 0.45 because every other example is handed over."""
    rng = np.random.default_rng(2)
    risk = rp.Risk("accuracy_drop", at_most=0.02)
    problem = rp.Problem([risk], "cost", DELTA)
    certified, replications = 0, 20 * effort
    for _ in range(replications):
        tables = []
        for _ in range(2):
            label = rng.integers(0, 2, N)
            dense = np.where(rng.random(N) < 0.9, label, 1 - label)
            shy = np.where(rng.random(N) < 0.5, -1, dense)
            losses = rp.losses_from_predictions(risk, label, shy[None], reference=dense, abstain=-1)
            tables.append(losses)
        validation = {**tables[0], "cost": [0.0]}
        found = rp.select_from_losses(problem, validation=validation, calibration=tables[1])
        certified += found.config is not None
    assert certified == 0


def test_a_gap_of_recall_has_an_upper_limit_and_reads_as_a_gap(effort):
    def draw(rng):
        label = rng.integers(0, 2, N)
        groups = rng.choice(["a", "b"], N)
        missed = rng.random(N) < np.where(groups == "a", 0.05, 0.15)  # the gap is at its limit
        return label, np.where(missed, 0, label), groups

    risk = rp.Risk("recall", at_most=0.1, statistic=rp.GroupGap())
    rate, allowed = rate_certified(rp.Problem([risk], "cost", DELTA), draw, effort)
    assert rate <= allowed
    assert str(risk) == "gap of recall <= 0.1 (largest gap between groups)"
    with pytest.raises(rp.ProblemError, match=r"gap of 'recall' is better.*at_most="):
        rp.Risk("recall", at_least=0.9, statistic=rp.GroupGap())


@pytest.mark.parametrize(
    "statistic",
    [rp.Quantile(0.9), rp.CVaR(0.9), rp.Ratio(), rp.GroupGap(("a", "b"), directed=True)],
)
def test_statistics_of_losses_that_are_not_those_of_the_metric_are_refused(statistic):
    """The ratio of two groups' misses is not the ratio of their recalls, and a sign would turn."""
    for how in ("at_most", "at_least"):
        with pytest.raises(rp.ProblemError, match="'false_negative_rate'"):
            rp.Risk("recall", statistic=statistic, **{how: 0.5})


def low_precision(rng):
    """A precision of 0.9."""
    predicted = rng.integers(0, 2, N)
    return np.where(rng.random(N) < 0.9, predicted, 1 - predicted), predicted, None


def test_a_changed_limit_is_in_the_words_of_its_risk(effort):
    asked = rp.Problem([rp.Risk("precision", at_least=0.5)], "cost", DELTA)
    study = rp.create_study(rp.Problem([rp.Risk("precision")], "cost", DELTA))
    for problem in (asked.with_limits(precision=0.95), rp.set_limits(study, precision=0.95)):
        assert str(problem.risks[0]) == "precision >= 0.95"
        assert problem.risks[0].bound == 0.95
        assert problem.risks[0].limit == 0.05
        rate, allowed = rate_certified(problem, low_precision, 0.5 * effort)
        assert rate <= allowed


def test_hits_where_misses_are_expected_are_noticed():
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, N)
    predicted = np.where(rng.random(N) < 0.95, 0, label)  # a recall of about 0.05
    risk = rp.Risk("recall", at_least=0.9)
    hits = np.where(label == 1, predicted == 1, np.nan)
    with pytest.raises(rp.LossError, match=r"'recall'.*turned round.*1 where a positive is missed"):
        rp.check_losses(risk, {"recall": hits}, label, predicted)
    rp.check_losses(risk, {"recall": 1 - hits}, label, predicted)


@pytest.mark.parametrize(
    "name",
    ["latency_p95", "p99 latency", "median_cost", "worst group harm", "harm_gap", "harm_drop"],
)
def test_a_name_of_ones_own_that_says_a_statistic_needs_one(name):
    with pytest.raises(rp.ProblemError, match="statistic="):
        rp.Risk(name, 0.2)
    assert rp.Risk(name, 0.2, statistic=rp.Mean()).statistic == rp.Mean()


def test_a_promise_is_not_rounded():
    risk = rp.Risk("error", 0.123456789)
    assert str(risk) == "error <= 0.123456789"
    assert "99.9999999%" in str(rp.Problem([risk], "cost", 1e-9))
