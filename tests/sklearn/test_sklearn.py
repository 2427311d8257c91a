"""The scikit-learn door: conventions kept, promises kept, no guess where nothing is certified."""

import pickle

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from riskpilot.errors import LossError, ProblemError
from riskpilot.problem.problem import Risk
from riskpilot.sklearn import NotCertifiedError, RiskControlledSearch, RiskControlledThreshold
from riskpilot.statistics import Difference, WorstGroup

X, Y = make_classification(6000, n_informative=5, class_sep=1.2, flip_y=0.05, random_state=0)
TRAIN, REST = slice(0, 1000), slice(1000, 4000)
TEST = slice(4000, 6000)
MODEL = LogisticRegression().fit(X[TRAIN], Y[TRAIN])


def no_loss(model, X, y):
    return np.zeros(len(y), dtype=bool)


def squared(model, X, y):
    return np.clip((model.predict(X) - y) ** 2, 0, 1)


def size(model, X, y):
    return float(np.abs(model.coef_).sum())


def search(**changed):
    settings = {
        "risks": {"error": 0.25},
        "minimize": "false_negative_rate",
        "n_trials": 6,
        "random_state": 0,
    }
    space = {"max_depth": (1, 6), "criterion": ["gini", "entropy"]}
    return RiskControlledSearch(
        DecisionTreeClassifier(random_state=0), space, **{**settings, **changed}
    )


def threshold(model=MODEL, **changed):
    settings = {
        "risks": {"false_positive_rate": 0.1},
        "minimize": "false_negative_rate",
        "random_state": 0,
    }
    return RiskControlledThreshold(model, **{**settings, **changed})


@pytest.fixture(scope="module")
def searched():
    return search().fit(X[:3000], Y[:3000])


def test_search_keeps_the_conventions_of_scikit_learn():
    """With a risk that is always kept: the checks' data is too small to certify any other."""
    made = RiskControlledSearch(
        GaussianNB(),
        {"var_smoothing": (1e-9, 1e-6, "log")},
        risks={"no_loss": 0.5},
        losses={"no_loss": no_loss},
        minimize="error",
        delta=0.5,
        n_trials=2,
        random_state=0,
    )
    results = check_estimator(made, on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []


def test_search_predicts_with_the_certified_model_itself(searched):
    best = searched.best_estimator_
    assert {k: best.get_params()[k] for k in searched.best_params_} == searched.best_params_
    np.testing.assert_array_equal(searched.predict(X[TEST]), best.predict(X[TEST]))
    assert searched.predict_proba(X[TEST]).shape == (2000, 2)
    assert 1 - searched.score(X[TEST], Y[TEST]) < 0.25
    assert searched.selection_.certificate.config == searched.best_params_


def test_results_of_a_search_are_a_table_with_one_row_per_trial(searched):
    table = searched.cv_results_
    assert {len(column) for column in table.values()} == {6}
    assert table["params"][searched.best_index_] == searched.best_params_
    assert table["chosen"].sum() == 1
    assert table["certified"][searched.best_index_]
    assert np.isnan(table["p_value"][~np.isin(np.arange(6), searched.selection_.plan.order)]).all()


def test_the_same_seed_makes_the_same_choice(searched):
    again = clone(searched).fit(X[:3000], Y[:3000])
    assert again.best_params_ == searched.best_params_
    assert again.selection_.certificate.calibration_digest == (
        searched.selection_.certificate.calibration_digest
    )


def test_a_fitted_search_survives_a_pickle(searched):
    again = pickle.loads(pickle.dumps(searched))
    np.testing.assert_array_equal(again.predict(X[TEST]), searched.predict(X[TEST]))


def test_given_parts_are_used_as_they_are():
    made = search(n_trials=2).fit(
        X[:1000],
        Y[:1000],
        X_val=X[1000:1500],
        y_val=Y[1000:1500],
        X_cal=X[1500:2300],
        y_cal=Y[1500:2300],
    )
    assert made.selection_.certificate.n_validation == 500
    assert made.selection_.certificate.n_calibration == 800


def test_losses_of_ones_own_serve_regressors():
    y = X[:, 0] * 0.3 + 0.01 * np.random.default_rng(0).standard_normal(len(X))
    made = RiskControlledSearch(
        Ridge(),
        {"alpha": FloatDistribution(0.01, 1e4, log=True)},
        risks=[Risk("squared", 0.2)],
        minimize="size",
        losses={"squared": squared, "size": size},
        n_trials=4,
        random_state=0,
    ).fit(X, y)
    assert made.best_params_["alpha"] > 0
    with pytest.raises(ProblemError, match="metric of classifiers"):
        RiskControlledSearch(
            Ridge(), {"alpha": (0.1, 1.0)}, risks={"error": 0.1}, minimize="size"
        ).set_params(losses={"size": size}).fit(X, y)


@pytest.mark.parametrize(
    "made", [search(risks={"error": 0.01}), threshold(risks=["error <= 0.001"])]
)
def test_nothing_certified_is_a_kind_refusal_and_never_a_guess(made):
    with pytest.warns(UserWarning, match=r"will not predict: Nothing could be certified"):
        made.fit(X[REST], Y[REST])
    assert not hasattr(made, "best_params_")
    with pytest.raises(AttributeError, match="best_params_, because nothing was certified:"):
        _ = made.best_params_
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = made.nonsense
    assert not hasattr(made, "best_estimator_")
    assert made.selection_.config is None
    with pytest.raises(NotCertifiedError, match="Closest"):
        made.predict(X[TEST])


@pytest.mark.parametrize(
    ("risks", "minimize"),
    [
        ({"false_positive_rate": 0.1}, "false_negative_rate"),
        ({"precision": 0.85}, "false_negative_rate"),
        (["recall >= 0.8", "error <= 0.3"], "false_positive_rate"),
        ({"selective_accuracy": 0.9}, "abstention"),
        ({"precision": 0.85, "error": 0.12}, "abstention"),
    ],
)
def test_promised_metrics_hold_on_new_data(risks, minimize):
    made = threshold(risks=risks, minimize=minimize).fit(X[REST], Y[REST])
    predicted = made.predict(X[TEST])
    y, answered = Y[TEST], predicted != -1
    seen = {
        "false_positive_rate": (predicted[y == 0] == 1).mean(),
        "precision": (y[predicted == 1] == 1).mean(),
        "recall": (predicted[y == 1] == 1).mean(),
        "error": (answered & (predicted != y)).mean(),
        "selective_accuracy": (predicted == y)[answered].mean(),
    }
    slack = 0.03  # the test set is a sample, too
    for risk in made.selection_.problem.risks:
        loss = 1 - seen[risk.name] if risk.complement else seen[risk.name]
        assert loss <= risk.limit + slack


@pytest.mark.filterwarnings("ignore:RiskControlledThreshold will not predict")
def test_promise_on_precision_fails_no_more_often_than_delta():
    """The whole path many times, against the truth of a large test set."""
    rng, broken, draws = np.random.default_rng(0), 0, 60
    scores = rng.beta(1.2, 1.2, 200_000)
    y = (rng.random(200_000) < scores).astype(int)

    class Known(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

        def __sklearn_is_fitted__(self):
            return True

    for draw in range(draws):
        rows = rng.integers(len(y), size=800)
        made = RiskControlledThreshold(
            Known(), risks={"precision": 0.8}, minimize="false_negative_rate", random_state=draw
        )
        made.fit(scores[rows, None], y[rows])
        if made.selection_.config is not None:
            broken += y[scores >= made.best_params_["threshold"]].mean() < 0.8
    assert broken <= 0.1 * draws + 3 * np.sqrt(draws * 0.09)


def test_threshold_leaves_the_classifier_as_it_is_and_clones_with_frozen():
    made = threshold(FrozenEstimator(MODEL)).fit(X[REST], Y[REST])
    again = clone(made).fit(X[REST], Y[REST])
    assert again.best_params_ == made.best_params_
    np.testing.assert_array_equal(made.predict_proba(X[TEST]), MODEL.predict_proba(X[TEST]))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_threshold_keeps_what_the_classifier_says_of_its_features_and_forgets_an_earlier_fit():
    named = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    named.feature_names_in_ = np.array([f"x{i}" for i in range(X.shape[1])], dtype=object)
    fitted = threshold(named).fit(X[REST], Y[REST])
    assert fitted.n_features_in_ == X.shape[1]
    assert fitted.feature_names_in_.tolist() == named.feature_names_in_.tolist()
    assert hasattr(fitted, "best_params_")
    with pytest.warns(UserWarning, match="will not predict"):
        fitted.set_params(risks={"false_positive_rate": 1e-6}).fit(X[REST], Y[REST])
    assert fitted.selection_.config is None
    assert not hasattr(fitted, "best_params_")


def test_threshold_takes_both_parts():
    made = threshold().fit(X[REST], Y[REST], X_val=X[TEST], y_val=Y[TEST])
    assert made.selection_.certificate.n_calibration == 3000
    assert made.selection_.certificate.n_validation == 2000


def test_threshold_serves_classes_with_names_and_a_chosen_positive_one():
    names = np.array(["bad", "good"])[Y]
    model = LogisticRegression().fit(X[TRAIN], names[TRAIN])
    made = threshold(model, risks={"precision": 0.9}, minimize="abstention", pos_label="bad").fit(
        X[REST], names[REST]
    )
    predicted = made.predict(X[TEST])
    assert set(predicted) <= {"bad", "good", "abstain"}
    assert (names[TEST][predicted == "bad"] == "bad").mean() > 0.87


def test_more_than_two_classes_can_abstain_by_confidence():
    x, y = make_classification(5000, n_classes=3, n_informative=8, class_sep=2.0, random_state=0)
    model = LogisticRegression().fit(x[:1000], y[:1000])
    made = threshold(model, risks={"selective_error": 0.1}, minimize="abstention")
    made.fit(x[1000:4000], y[1000:4000])
    predicted = made.predict(x[4000:])
    answered = predicted != -1
    assert (predicted != y[4000:])[answered].mean() < 0.13
    assert made.score(x[4000:], y[4000:]) == (predicted == y[4000:]).mean()
    with pytest.raises(ProblemError, match="pos_label"):
        threshold(model).fit(x[1000:4000], y[1000:4000])
    with pytest.raises(ProblemError, match="abstain=True"):
        threshold(model, risks={"error": 0.3}, minimize="error", pos_label=0).set_params(
            risks={"accuracy": 0.5}
        ).fit(x[1000:4000], y[1000:4000])


def test_a_decision_function_is_enough_for_two_classes():
    model = LinearSVC().fit(X[TRAIN], Y[TRAIN])
    made = threshold(model).fit(X[REST], Y[REST])
    assert (made.predict(X[TEST])[Y[TEST] == 0] == 1).mean() < 0.13
    assert not hasattr(made, "predict_proba")


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        ({"risks": {"eror": 0.1}}, "Did you mean 'error'"),
        ({"risks": 0.1}, "map metrics to limits"),
        ({"risks": [0.1]}, "reads like"),
        ({"minimize": "recall"}, "better when larger"),
        ({"pos_label": 7}, "one of the classes"),
        ({"validation_size": 1.5}, "share of the data"),
        ({"n_thresholds": 1}, "at least 2"),
        ({"abstain": True, "abstain_label": 1}, "must not be one of the classes"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(changed, hint):
    with pytest.raises(ProblemError, match=hint):
        threshold(**changed).fit(X[REST], Y[REST])


def test_a_space_that_cannot_be_read_is_refused():
    with pytest.raises(ProblemError, match="space of 'max_depth'"):
        search().set_params(space={"max_depth": "deep"}).fit(X, Y)


def test_an_unfitted_classifier_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        threshold(LogisticRegression()).fit(X, Y)


def test_a_search_limits_statistics_of_groups_and_differences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=3000) > 0).astype(int)
    base = LogisticRegression().fit(X[:300], y[:300])

    def wrong(model, X, y):
        return model.predict(X) != y

    search = RiskControlledSearch(
        LogisticRegression(),
        {"C": (1e-4, 1.0, "log")},
        risks=[
            Risk("worst", 0.3, statistic=WorstGroup(), groups="side"),
            Risk("drop", 0.1, statistic=Difference("base")),
        ],
        minimize="error",
        losses={
            "worst": wrong,
            "drop": wrong,
            "side": lambda model, X, y: np.where(X[:, 1] > 0, "right", "left"),
            "base": lambda model, X, y: wrong(base, X, y),
        },
        n_trials=5,
        random_state=0,
    ).fit(X[300:], y[300:])
    assert search.selection_.config is not None
    assert search.selection_.certificate.families == {"worst": "binomial", "drop": "trinomial"}


class Cut(ClassifierMixin, BaseEstimator):
    """Positive from a cut on."""

    def __init__(self, cut=0.5):
        self.cut = cut

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (X[:, 0] >= self.cut).astype(int)


@pytest.mark.parametrize("seed", range(6))
def test_the_chosen_model_is_kept_whatever_is_minimised(seed):
    """The strictest cut has the best precision, by few examples: it is no reason to drop others."""
    rng = np.random.default_rng(seed)
    X = rng.random((2000, 1))
    y = (rng.random(2000) < X[:, 0]).astype(int)
    search = RiskControlledSearch(
        Cut(),
        {"cut": (0.0, 1.0)},
        risks={"precision": 0.7},
        minimize="flagged",
        losses={"flagged": lambda model, X, y: model.predict(X).mean()},
        n_trials=12,
        random_state=seed,
    ).fit(X, y)
    assert search.best_estimator_.cut == search.best_params_["cut"]


def side(model, X, y):
    return np.where(X[:, 1] > 0, "right", "left")


def wrong(model, X, y):
    return model.predict(X) != y


@pytest.mark.parametrize(
    ("risks", "losses", "says"),
    [
        ("worst_group_error <= 0.4 by side", {"side": side}, "worst_group_error <= 0.4 (worst"),
        ({"worst_group_accuracy": 0.6}, {"groups": side}, "worst_group_accuracy >= 0.6 (worst"),
        (["recall <= 0.4 as group_gap"], {"groups": side}, "gap of recall <= 0.4 (largest"),
        (["equalized_odds_gap <= 0.4"], {"groups": side}, "within any label"),
        ("mine <= 0.4 as worst_group by side", {"mine": wrong, "side": side}, "mine <= 0.4 (worst"),
        ("accuracy_drop <= 0.3", {"reference": no_loss}, "accuracy_drop <= 0.3 (mean loss minus"),
    ],
)
def test_a_search_reads_limits_as_the_command_line_does(risks, losses, says):
    made = search(risks=risks, losses=losses, n_trials=2).fit(X[:3000], Y[:3000])
    assert says in str(made.selection_.problem)
    assert made.selection_.config is not None


@pytest.mark.parametrize("minimize", ["demographic_parity_gap", "equalized_odds_gap"])
def test_a_free_objective_by_name_may_be_a_gap(minimize):
    made = search(minimize=minimize, losses={"groups": side}, n_trials=2).fit(X[:3000], Y[:3000])
    best = made.cv_results_[f"validation_{minimize}"][made.best_index_]
    assert 0 < best < 0.5


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        ({"risks": ["mine <= abc"], "losses": {"mine": wrong}}, "'abc'"),
        ({"risks": ["worst_group_error <= 0.2"]}, "needs 'groups'"),
        ({"risks": {"reward": 0.2}, "losses": {"reward": wrong}}, "larger is better"),
        ({"risks": {"accuracy": "0.9"}}, "'0.9'"),
        ({"minimize": "error_gap"}, "needs 'groups'"),
        ({"minimize": ["error"]}, "no metric"),
        ({"losses": [wrong]}, "map names to functions"),
    ],
)
def test_a_search_refuses_in_words_what_it_cannot_do(changed, hint):
    with pytest.raises(ProblemError, match=hint):
        search(**changed).fit(X[:3000], Y[:3000])


def test_a_threshold_refuses_groups_in_words():
    with pytest.raises(ProblemError, match="losses_from_predictions"):
        threshold(risks=["worst_group_error <= 0.2"]).fit(X[REST], Y[REST])


def test_a_function_that_gives_hits_for_recall_is_noticed():
    def hits(model, X, y):
        return np.where(y == 1, model.predict(X) == 1, np.nan)

    with pytest.raises(LossError, match=r"contrary.*1 where a positive is missed"):
        search(risks={"recall": 0.5}, losses={"recall": hits}).fit(X[:3000], Y[:3000])
    made = search(
        risks={"recall": 0.5}, losses={"recall": lambda *told: 1 - hits(*told)}, n_trials=2
    ).fit(X[:3000], Y[:3000])
    assert str(made.selection_.problem.risks[0]) == "recall >= 0.5"


def test_a_known_order_spends_no_data_on_thresholds():
    X, y = make_classification(6000, weights=[0.6], flip_y=0.2, random_state=1)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    searched, known = (
        RiskControlledThreshold(
            model,
            risks={"false_positive_rate": 0.2},
            minimize="false_negative_rate",
            order=order,
            random_state=0,
        ).fit(X[1000:2500], y[1000:2500])
        for order in ("searched", "monotone")
    )
    assert known.selection_.certificate.n_calibration == 1500
    assert searched.selection_.certificate.n_calibration == 1000
    flagged = known.predict(X[2500:]) == 1
    assert flagged[y[2500:] == 0].mean() <= 0.2
    steps = [config["threshold"] for config in known.selection_.candidates]
    assert steps == sorted(steps, reverse=True), "the highest threshold is the safest"


def test_a_known_order_takes_the_lowest_threshold_that_decides_alike():
    X, y = make_classification(3000, flip_y=0.2, random_state=1)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    tuned = RiskControlledThreshold(
        model, risks={"fpr": 0.2}, minimize="fnr", order="monotone", n_thresholds=50
    ).fit(X[1000:], y[1000:])
    scores = np.sort(model.predict_proba(X[1000:])[:, 1])
    for config in tuned.selection_.candidates:
        level = config["threshold"]
        assert level == scores[0] or np.nextafter(level, -np.inf) in scores


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is its score."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_a_known_order_keeps_its_promise_at_the_limit():
    # Scores of negatives are uniform, so that the false-positive rate above a threshold is what
    # lies above it: every threshold below 0.8 breaks the limit, however little.
    rng, draws = np.random.default_rng(0), 400
    model = Scores().fit(None, None)
    broken = 0
    for _ in range(draws):
        X, y = rng.random((150, 1)), (rng.random(150) < 0.2).astype(int)
        tuned = RiskControlledThreshold(
            model, risks={"fpr": 0.2}, minimize="fnr", order="monotone", delta=0.2
        ).fit(X, y)
        config = tuned.selection_.config
        broken += config is not None and config["threshold"] < 0.8
    assert broken / draws < 0.2 + 2.5 * np.sqrt(0.16 / draws)
    assert broken / draws > 0.08, "the test should be able to fail"


def test_a_known_order_of_misses_starts_at_the_lowest_threshold():
    X, y = make_classification(3000, random_state=1)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    tuned = RiskControlledThreshold(
        model, risks=["recall >= 0.7"], minimize="selection_rate", order="monotone"
    ).fit(X[1000:], y[1000:])
    steps = [config["threshold"] for config in tuned.selection_.candidates]
    assert steps == sorted(steps)
    assert tuned.best_params_["threshold"] > steps[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"order": "known"}, '"searched" or "monotone"'),
        ({"order": np.arange(3)}, '"searched" or "monotone"'),
        ({"risks": {"error": 0.3}}, "can only grow along it"),
        ({"risks": ["precision >= 0.6"]}, "can only grow along it"),
        ({"risks": {"fpr": 0.3, "fnr": 0.4}, "minimize": "error"}, "kept at different ends"),
        ({"abstain": True}, "none with two thresholds"),
    ],
)
def test_an_order_that_is_not_known_is_refused(changed, says):
    X, y = make_classification(2000, random_state=1)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    options = {"risks": {"fpr": 0.2}, "minimize": "false_negative_rate", "order": "monotone"}
    with pytest.raises(ProblemError, match=says):
        RiskControlledThreshold(model, **{**options, **changed}).fit(X[1000:], y[1000:])


def test_a_known_order_compares_nothing_on_other_data():
    X, y = make_classification(2000, random_state=1)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    tuned = RiskControlledThreshold(
        model, risks={"fpr": 0.2}, minimize="false_negative_rate", order="monotone"
    )
    with pytest.raises(ProblemError, match="X_val is given"):
        tuned.fit(X[1000:1500], y[1000:1500], X_val=X[1500:], y_val=y[1500:])
