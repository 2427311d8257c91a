"""Workers are killed at random moments; what they had finished is there, once, and selects alike.

`make crash` does this at length.
"""

import pytest

from benchmarks.crash import KINDS, crash


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_finished_is_lost_or_counted_twice_when_workers_are_killed(kind, effort):
    report = crash(kind, kills=5 * effort, workers=2 if effort == 1 else 4, seed=1)
    assert report.acknowledged >= 8
    assert report.ok, report
