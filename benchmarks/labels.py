"""Labels that arrive: the exact boundary, and looks after every batch."""

from collections.abc import Iterator

import numpy as np

import riskpilot as rp
from benchmarks.measure import Row, compare
from riskpilot.statistics import exact_boundary

LIMIT, DELTA = 0.1, 0.1


def rows(quick: bool) -> Iterator[Row]:
    m = 200 if quick else 5_000
    repeats = 2 if quick else 5
    agree(exact_boundary(LIMIT, DELTA, m).critical, plain_boundary(m))
    yield compare(
        f"labels: exact boundary of {m:,}",
        "the recursion over all counts",
        lambda: exact_boundary(LIMIT, DELTA, m),
        lambda: plain_boundary(m),
        goal="faster",
        target=None,
        repeats=repeats,
    )
    horizon, batch = (100, 20) if quick else (1_000, 20)
    rng = np.random.default_rng(0)
    risks = np.linspace(0.03, 0.12, 10)[:, None]
    validation = {"error": rng.random((10, 2_000)) < risks, "cost": -np.arange(10.0)}
    losses = rng.random((10, horizon)) < risks
    problem = rp.Problem([rp.Risk("error", LIMIT)], "cost", delta=DELTA)
    frozen = rp.freeze(problem, validation=validation)
    rows_of = [config["index"] for config in frozen.candidates]

    def label_by_label() -> None:
        calibration = rp.Calibration(frozen, horizon=horizon)
        for start in range(0, horizon, batch):
            calibration.add({"error": losses[rows_of, start : start + batch]})

    def anew_at_every_look() -> None:
        """What would be valid at one look only; it shows the time that looks cost."""
        for stop in range(batch, horizon + 1, batch):
            part = {"error": losses[:, :stop]}
            rp.select_from_losses(problem, validation=validation, calibration=part)

    yield compare(
        f"labels: Calibration, {horizon:,} in batches of {batch}",
        "select_from_losses after every batch",
        label_by_label,
        anew_at_every_look,
        goal="faster",
        target=None,
        repeats=repeats,
    )


def plain_boundary(m: int) -> np.ndarray:
    """The critical counts from the probabilities of all counts, as the definition has it."""
    alive, spent, low = np.zeros(m + 2), 0.0, 0
    alive[0] = 1.0
    critical = np.empty(m, np.int64)
    for t in range(1, m + 1):
        moved = alive[:-1] * LIMIT
        alive *= 1 - LIMIT
        alive[1:] += moved
        while spent + alive[low] <= DELTA * (t / m) ** 2 * (1 - 1e-8):
            spent += float(alive[low])
            alive[low] = 0.0
            low += 1
        critical[t - 1] = low - 1
    return critical


def agree(ours: np.ndarray, peer: np.ndarray) -> None:
    if not np.array_equal(ours, peer):
        raise ValueError("Both must have the same critical counts.")
