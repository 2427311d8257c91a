"""Through `Watch` itself: false alarms are as rare as promised, for every kind of certificate.

The values that a watch bets on are those of tests/guarantees/test_watch_valid.py (tests/watch holds
that), which are tested there at length. Here whole watches run, with labels in batches.
"""

import numpy as np
import pytest
from exact import assert_rate_at_most

import riskpilot as rp
from tests.kits.watched import CASES

DELTA = 0.1


@pytest.fixture
def size(effort):
    """(watches, labels of each)."""
    return (2_000, 2_000) if effort > 1 else (60, 400)


@pytest.mark.parametrize("name", CASES)
def test_false_alarms_at_the_limit(name, size):
    case, alarms = CASES[name], 0
    certificate = case.certificate()
    for seed in range(size[0]):
        rng, watch = np.random.default_rng(seed), rp.Watch(certificate, delta=DELTA)
        for _ in range(0, size[1], 200):
            watch.update(case.draw(rng, 200, False))
        alarms += watch.alarm
    assert_rate_at_most(DELTA, alarms, size[0])


@pytest.mark.parametrize("name", ["mean", "worst group", "quantile", "weights"])
def test_bounds_shown_hold_together_at_all_times(name, size):
    case, missed = CASES[name], 0
    certificate = case.certificate()
    for seed in range(size[0] // 2):
        rng, watch = np.random.default_rng(seed), rp.Watch(certificate, delta=DELTA)
        is_out = False
        for _ in range(0, size[1], 100):
            watch.update(case.draw(rng, 100, False))
            for risk in watch.risks.values():
                # Every group is drawn at the limit.
                parts = risk.groups or (risk,)
                is_out |= any(not part.lower <= part.limit <= part.upper for part in parts)
        missed += is_out
    assert_rate_at_most(DELTA, missed, size[0] // 2)
