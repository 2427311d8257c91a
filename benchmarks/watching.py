"""A watch: labels until its alarm against a single e-process and MAPIE, and its speed."""

import time
from collections.abc import Iterator

import numpy as np
from mapie.exchangeability_testing import RiskMonitoring  # type: ignore[import-untyped]

from benchmarks.measure import Row, compare
from experiments import watch_delay
from riskpilot import Certificate, Problem, Risk, Watch, select_from_losses

MINUTE = 60.0
# (risk after the change, labels at 0.06 before it), at limit 0.1.
CHANGES = ((0.15, 0), (0.15, 2_000), (0.3, 2_000))


def rows(quick: bool) -> Iterator[Row]:
    streams = 10 if quick else 100
    for after, change in CHANGES:
        found = watch_delay.measure(0.1, 0.06, after, "0/1", change, streams, seed=0)
        past = f"after {change:,} safe labels" if change else "from the start"
        name = f"alarm at risk {after:g} {past}, limit 0.1"
        ours = found["watch"]
        if change == 0:
            single = found["single"]
            yield Row(name, "one e-process", ours, single, "within", 1.15, streams, "labels")
        latest = found["mapie"] or watch_delay.LATEST
        target = 3.0 if change else None
        yield Row(name, "MAPIE", ours, latest, "faster", target, streams, "labels")
    certificate, n = _certificate(), 50 if quick else 1_000
    losses = (np.random.default_rng(1).random(n) < 0.06).astype(int)
    yield compare(
        f"{n:,} updates of one label",
        "MAPIE",
        lambda: _watch(certificate, losses),
        lambda: _monitor(losses),
        goal="faster",
        target=None,
        repeats=1,
        warm_up=False,  # MAPIE takes the better part of a minute
    )
    many = (np.random.default_rng(2).random(2_000 if quick else 1_000_000) < 0.06).astype(int)
    start = time.process_time()
    _watch(certificate, many)
    taken = (time.process_time() - start) * 1_000_000 / len(many)
    yield Row("a million updates of one label", "one minute", taken, MINUTE, "faster", 1.0, 1)


def _watch(certificate: Certificate, losses: np.ndarray) -> None:
    watch = Watch(certificate)
    for loss in losses:
        watch.update({"error": [loss]})
        if watch.alarm:
            raise ValueError("These labels keep the limit: an alarm would be a false one.")


def _monitor(losses: np.ndarray) -> None:
    monitor = RiskMonitoring("accuracy", threshold=0.1, warn=False)
    for loss in losses:
        monitor.update(np.array([1]), np.array([1 - loss]))


def _certificate() -> Certificate:
    draws = np.random.default_rng(0).random((2, 1, 3_000)) < 0.06
    return select_from_losses(
        Problem([Risk("error", 0.1)], "cost"),
        validation={"error": draws[0], "cost": np.ones(1)},
        calibration={"error": draws[1]},
    ).certificate
