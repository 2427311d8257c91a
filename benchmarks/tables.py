"""Selection from tables of losses, and the p-values that need every loss."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import riskpilot as rp
from benchmarks.measure import Row, compare
from riskpilot.statistics.p_values import log_betting

Array = npt.NDArray[np.generic]

BOOLEAN_SHAPE = (10_000, 10_000)
OTHER_SHAPE = (3_000, 10_000)
BETTING_SHAPE = (1_000, 10_000)
QUICK_SHAPE = (100, 1_000)


def rows(quick: bool) -> Iterator[Row]:
    repeats = 2 if quick else 7
    yield selection(np.bool_, QUICK_SHAPE if quick else BOOLEAN_SHAPE, 2.0, repeats)
    for dtype in (np.int8, np.uint8, np.float64):
        yield selection(dtype, QUICK_SHAPE if quick else OTHER_SHAPE, None, repeats)
    shape = QUICK_SHAPE if quick else BOOLEAN_SHAPE
    yield grouped("worst group", rp.WorstGroup(), 0.1, shape, 3.0, repeats)
    yield grouped("gap", rp.GroupGap(), 0.05, shape, 3.0, repeats)
    shape = QUICK_SHAPE if quick else BETTING_SHAPE
    losses = np.random.default_rng(0).beta(1, 20, size=shape)
    yield compare(
        f"betting p-values, {shape[0]:,} x {shape[1]:,} float64",
        "losses.sum(axis=1)",
        lambda: log_betting(losses, 0.06),
        lambda: losses.sum(axis=1),
        goal="within",
        target=60.0,
        repeats=repeats,
    )


def selection(
    dtype: type[np.generic], shape: tuple[int, int], target: float | None, repeats: int
) -> Row:
    validation, calibration = (table(dtype, shape, seed) for seed in (0, 1))
    cost = np.linspace(1, 0, shape[0])
    problem = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
    return compare(
        f"select_from_losses, {shape[0]:,} x {shape[1]:,} {np.dtype(dtype).name}",
        "sum(axis=1) of both",
        lambda: rp.select_from_losses(
            problem,
            validation={"error": validation, "cost": cost},
            calibration={"error": calibration},
        ),
        lambda: (validation.sum(axis=1), calibration.sum(axis=1)),
        goal="within",
        target=target,
        repeats=repeats,
    )


def grouped(
    name: str,
    statistic: rp.WorstGroup | rp.GroupGap,
    limit: float,
    shape: tuple[int, int],
    target: float | None,
    repeats: int,
) -> Row:
    """A limit on a statistic of eight groups against a limit on the mean of the same losses."""
    validation, calibration = (table(np.bool_, shape, seed) for seed in (0, 1))
    one, other = (np.random.default_rng(seed).integers(0, 8, shape[1]) for seed in (2, 3))
    cost = np.linspace(1, 0, shape[0])
    seen, sealed = {"error": validation, "cost": cost}, {"error": calibration}
    limited = rp.Problem([rp.Risk("error", limit, statistic=statistic)], minimize="cost")
    plain = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    return compare(
        f"select_from_losses, {shape[0]:,} x {shape[1]:,} bool, {name} of 8",
        "a limit on the mean",
        lambda: rp.select_from_losses(
            limited,
            validation={**seen, "groups": one},
            calibration={**sealed, "groups": other},
        ),
        lambda: rp.select_from_losses(plain, validation=seen, calibration=sealed),
        goal="within",
        target=target,
        repeats=repeats,
    )


def table(dtype: type[np.generic], shape: tuple[int, int], seed: int) -> Array:
    """0/1 losses of configurations whose risk grows from 0 to 0.3."""
    rng = np.random.default_rng(seed)
    losses = np.empty(shape, dtype=dtype)
    for row, risk in enumerate(np.linspace(0, 0.3, shape[0])):
        losses[row] = rng.random(shape[1], dtype=np.float32) < risk
    return losses
