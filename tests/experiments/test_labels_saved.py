"""The peers of the experiment about saved labels are valid, and its results are kept."""

import json
import math

import numpy as np
import pytest

from experiments import labels_saved
from experiments.adaptive_peers import adaptive_crossings, prediction_powered, r_autoeval_plus
from riskpilot.statistics.sequential.operating import outlook


@pytest.fixture(scope="module")
def results():
    return json.loads(labels_saved.OUT.read_text())


def test_every_part_has_results(results):
    assert list(results) == list(labels_saved.PARTS)


def test_the_table_of_exact_numbers_is_what_the_library_computes(results):
    row = next(row for row in results["stopping"]["rows"] if row["limit"] == 0.1)
    found = outlook(row["limit"], row["risk"], 0.1, row["horizon"])
    assert row["power"] == round(found.power, 3)
    assert row["mean_labels"] == round(found.mean_labels)


def test_what_is_said_about_targets_follows_from_the_rows(results):
    judge = results["judge"]
    worth = np.mean([row["worth"] for row in judge["rows"]])
    assert judge["target_met"] == (worth >= 2)
    late = [row["labels"] for row in results["sequences"]["rows"] if row["margin"] == 1.5]
    assert results["sequences"]["target_met"] == (max(late) <= 0.6)


def test_the_guide_of_judges_gives_the_stored_numbers(results):
    stored = results["judged_stopping"]
    guide = (labels_saved.OUT.parents[2] / "docs" / "guides" / "judges.md").read_text("utf-8")
    for row in stored["rows"]:
        power = f"{row['power']:.3f}".removeprefix("0")
        name = f"{row['correlation']:g}".removeprefix("0") or "0"
        assert f"| {name} | {power} | {row['mean_labels']} |" in guide
    rates = [row["rate"] for row in stored["type_1"]]
    assert len(rates) == 8
    assert {row["streams"] for row in stored["type_1"]} == {8_000}
    assert f"in {100 * min(rates):.1f} to {100 * max(rates):.1f} % of 8,000 streams" in guide


def test_no_boundary_needs_fewer_labels_than_the_best_one(results):
    for row in results["least"]["rows"]:
        assert row["fewest_labels"]["labels"] <= row["ours"]["labels"]
    fewest = [row["fewest_labels"]["labels"] for row in results["least"]["rows"]]
    assert results["least"]["reachable"] == (max(fewest) <= 0.6)


@pytest.mark.parametrize("bets", ["plug-in", "newton"])
def test_the_public_bets_put_right_hold_delta(bets):
    losses = (np.random.default_rng(0).random((3_000, 200)) < 0.1) * 1.0
    assert (adaptive_crossings(losses, 0.1, 0.1, bets) <= 200).mean() < 0.12


def test_the_published_judge_holds_delta_and_the_normal_interval_does_not():
    rng = np.random.default_rng(1)
    u, fresh = rng.random((3_000, 50)), rng.random((3_000, 500))
    data = (u < 0.1) * 1.0, (u < 0.05) * 1.0, (fresh < 0.05) * 1.0
    assert (r_autoeval_plus(*data, 0.1, 0.1) < math.log(0.1)).mean() < 0.12
    assert (prediction_powered(*data, 0.1) < 0.1).mean() > 0.15
