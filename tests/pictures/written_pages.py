"""The pages that riskpilot writes, one of each kind, for tests and for their sizes."""

from pathlib import Path

import numpy as np

import riskpilot as rp
from riskpilot import plots
from tests.pictures import scenes


def certified(path: Path) -> Path:
    """Write the page of a selection of two risks among 200 configurations."""
    return scenes.two_risks().report(path)


def nothing(path: Path) -> Path:
    """Write the page of a selection that certifies nothing."""
    return scenes.nothing().report(path)


def calibration(path: Path) -> Path:
    """Write the page of labels that arrived one after another."""
    return labelled().select().report(path)


def watch(path: Path) -> Path:
    """Write the page of a watch that has raised an alarm."""
    return watched().report(path)


def plan(path: Path) -> Path:
    """Write the page of labels that are still ahead."""
    problem = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
    (ahead,) = rp.plan_labels(problem, 1_000, true_risks={"error": 0.07})
    steps = np.array(ahead.steps)
    figure = plots.labels_ahead(steps, ahead.horizon, 0.1, 0.07, ahead.chances)
    return plots.save_figure(figure, path)


KINDS = {
    "certified": certified,
    "nothing": nothing,
    "calibration": calibration,
    "watch": watch,
    "plan": plan,
}


def labelled() -> rp.Calibration:
    """Add 500 labels to a calibration of two candidates."""
    rng = np.random.default_rng(0)
    error, cost = np.array([[0.03], [0.05]]), np.array([2.0, 1.0])
    plan = rp.freeze(
        rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost"),
        validation={"error": rng.random((2, 500)) < error, "cost": cost},
    )
    made = rp.Calibration(plan, horizon=1_000)
    made.add({"error": rng.random((2, 500)) < error})
    return made


def watched() -> rp.Watch:
    """Watch a certificate through 30 days, the last ten of which break its limit."""
    rng = np.random.default_rng(0)
    watch = rp.Watch(scenes.thresholds().certificate)
    for day in range(30):
        rate = 0.09 if day < 20 else 0.16
        watch.update({"error": rng.random(100) < rate}, at=f"2026-03-{day + 1:02d}")
    return watch
