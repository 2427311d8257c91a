"""The comparison of two gates: its figures are those of the guide, and can be computed again."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from experiments import gate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    return json.loads(gate.OUT.read_text())


def test_figures_of_the_guide_are_those_of_the_experiment(results):
    page = (ROOT / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")
    found = [line for line in page.splitlines() if line.endswith(" % |")]
    expected = [
        f"| {row['n']:,} | {row['worse']:.0%} | {row['better']:.0%} "
        f"| {row['worse'] - row['better']:.0%} | {row['insignificant']:.1%} "
        f"| {row['shown']:.1%} |".replace("%", " %")
        for row in results["rows"]
    ]
    assert found == expected


def test_mcnemar_is_the_exact_test():
    for worse, better in [(0, 0), (5, 5), (18, 9), (3, 20)]:
        pairs = worse + better
        expected = binomtest(worse, pairs).pvalue if pairs else 1.0
        assert gate.mcnemar(np.array([worse]), np.array([better]))[0] == pytest.approx(expected)


def test_the_first_gate_lets_so_many_harmful_changes_through(results):
    """Drawn at random, against what was computed."""
    row = next(row for row in results["rows"] if (row["n"], row["worse"]) == (300, 0.06))
    shares = [row["worse"], row["better"], 1 - row["worse"] - row["better"]]
    counts = np.random.default_rng(0).multinomial(300, shares, size=100_000)
    rate = (gate.mcnemar(counts[:, 0], counts[:, 1]) >= gate.LEVEL).mean()
    assert row["insignificant"] == pytest.approx(rate, abs=4 * math.sqrt(0.25 / 100_000))
    assert rate > 0.6


def test_the_gate_keeps_its_level_where_the_drop_is_the_limit(results):
    rows = [
        row for row in results["rows"] if math.isclose(row["worse"] - row["better"], gate.LIMIT)
    ]
    assert len(rows) == 6
    assert all(row["shown"] <= gate.LEVEL for row in rows)


def test_chances_are_computed_again():
    row = gate.pass_rates(60, 0.06, 0.03)
    assert 0 <= row["shown"] <= gate.LEVEL < row["insignificant"] <= 1
