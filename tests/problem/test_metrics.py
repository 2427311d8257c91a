"""Metrics by name: each agrees with its definition, with and without abstention."""

import numpy as np
import pytest
from sklearn import metrics as reference

from riskpilot.problem.metrics import METRICS, Codes

ABSTAIN = -1
CODES = Codes(positive=1, abstain=ABSTAIN)
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 500)
PREDICTED = np.where(RNG.random(500) < 0.8, LABELS, 1 - LABELS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("error", 1 - reference.accuracy_score(LABELS, PREDICTED)),
        ("accuracy", 1 - reference.accuracy_score(LABELS, PREDICTED)),
        ("precision", 1 - reference.precision_score(LABELS, PREDICTED)),
        ("false_discovery_rate", 1 - reference.precision_score(LABELS, PREDICTED)),
        ("recall", 1 - reference.recall_score(LABELS, PREDICTED)),
        ("false_negative_rate", 1 - reference.recall_score(LABELS, PREDICTED)),
        ("specificity", 1 - reference.recall_score(LABELS, PREDICTED, pos_label=0)),
        ("false_positive_rate", 1 - reference.recall_score(LABELS, PREDICTED, pos_label=0)),
        ("abstention", 0.0),
        ("selective_error", 1 - reference.accuracy_score(LABELS, PREDICTED)),
    ],
)
def test_mean_of_losses_is_the_metric(name, value):
    losses = METRICS[name].losses(LABELS, PREDICTED, CODES).astype(float)
    assert np.nanmean(losses) == pytest.approx(value)
    assert METRICS[name].mean(LABELS, PREDICTED, CODES) == pytest.approx(value)


@pytest.mark.parametrize("name", METRICS)
def test_many_configurations_at_once_give_the_rows_of_each(name):
    many = np.array([PREDICTED, 1 - PREDICTED, np.full(500, ABSTAIN)])
    table = METRICS[name].losses(LABELS, many, CODES)
    assert table.shape == (3, 500)
    for row, predicted in zip(table, many, strict=True):
        np.testing.assert_array_equal(row, METRICS[name].losses(LABELS, predicted, CODES))


def test_handing_over_is_no_error_but_finds_nothing():
    handed = np.full(4, ABSTAIN)
    labels = np.array([0, 0, 1, 1])
    means = {name: metric.mean(labels, handed, CODES) for name, metric in METRICS.items()}
    assert means["error"] == means["false_positive_rate"] == means["false_negative_rate"] == 0
    assert means["accuracy"] == means["recall"] == means["specificity"] == means["abstention"] == 1


def test_only_conditional_metrics_leave_examples_out():
    for metric in METRICS.values():
        losses = metric.losses(np.array([0, 1]), np.array([1, ABSTAIN]), CODES).astype(float)
        assert np.isnan(losses).any() == metric.conditional, metric.name


@pytest.mark.parametrize("name", METRICS)
def test_words_and_losses_of_a_metric_agree(name):
    """Of every pair of label and prediction: 1, 0 or NaN, and the words have as many clauses."""
    labels, predicted = (part.ravel() for part in np.meshgrid([0, 1], [0, 1, ABSTAIN]))
    losses = METRICS[name].losses(labels, predicted, CODES).astype(float)
    said = METRICS[name].loss_words
    assert said.startswith("1 where ")
    assert ", 0 where " in said
    assert ("NaN" in said) == np.isnan(losses).any()
    assert {0.0, 1.0} <= set(losses[~np.isnan(losses)])


def test_no_code_hands_an_example_over_unless_one_is_declared():
    labels, predicted = np.array([-1, -1, 1, 1]), np.array([1, -1, -1, 1])
    none = Codes()
    assert METRICS["error"].mean(labels, predicted, none) == 0.5
    assert METRICS["abstention"].mean(labels, predicted, none) == 0
    assert METRICS["recall"].mean(labels, predicted, none) == 0.5


def test_a_metric_for_which_no_example_counts_is_at_its_worst():
    """Nothing is predicted to be positive, so that nothing is known of the precision."""
    labels, predicted = np.array([0, 1, 1]), np.zeros(3, dtype=int)
    assert METRICS["precision"].mean(labels, predicted, Codes()) == 1.0
