"""Metrics by name: each agrees with its definition, with and without abstention."""

import numpy as np
import pytest
from sklearn import metrics as reference

from riskpilot.errors import ProblemError
from riskpilot.metrics import ABSTAIN, METRICS, metric_named, parse_requirement, to_minimize

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
    losses = METRICS[name].losses(LABELS, PREDICTED).astype(float)
    assert np.nanmean(losses) == pytest.approx(value)
    assert METRICS[name].mean(LABELS, PREDICTED) == pytest.approx(value)


@pytest.mark.parametrize("name", METRICS)
def test_many_configurations_at_once_give_the_rows_of_each(name):
    many = np.array([PREDICTED, 1 - PREDICTED, np.full(500, ABSTAIN)])
    table = METRICS[name].losses(LABELS, many)
    assert table.shape == (3, 500)
    for row, predicted in zip(table, many, strict=True):
        np.testing.assert_array_equal(row, METRICS[name].losses(LABELS, predicted))


def test_handing_over_is_no_error_but_finds_nothing():
    handed = np.full(4, ABSTAIN)
    labels = np.array([0, 0, 1, 1])
    means = {name: metric.mean(labels, handed) for name, metric in METRICS.items()}
    assert means["error"] == means["false_positive_rate"] == means["false_negative_rate"] == 0
    assert means["accuracy"] == means["recall"] == means["specificity"] == means["abstention"] == 1


def test_only_conditional_metrics_leave_examples_out():
    for metric in METRICS.values():
        losses = metric.losses(np.array([0, 1]), np.array([1, ABSTAIN])).astype(float)
        assert np.isnan(losses).any() == metric.conditional, metric.name


@pytest.mark.parametrize(
    ("text", "limit"), [("error<=0.1", 0.1), ("precision >= 0.9", 0.1), (" recall>=.75 ", 0.25)]
)
def test_requirements_are_read_as_written(text, limit):
    assert parse_requirement(text).limit == limit


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("precison >= 0.9", "Did you mean 'precision'"),
        ("precision <= 0.9", "precision >= 0.9"),
        ("error >= 0.1", "error <= 0.1"),
        ("error", "reads like"),
        ("error <= much", "reads like"),
        ("error <= 1", "strictly between"),
    ],
)
def test_requirements_that_cannot_be_meant_are_refused_with_the_way_out(text, hint):
    with pytest.raises(ProblemError, match=hint):
        parse_requirement(text)


def test_what_is_better_when_larger_cannot_be_minimised():
    with pytest.raises(ProblemError, match="minimize='false_negative_rate'"):
        to_minimize("recall")
    with pytest.raises(ProblemError, match="A metric is one of"):
        metric_named(3)
