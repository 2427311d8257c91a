"""Robustness to spurious correlations: limit the average error, minimise the worst group's.

The selective form may also abstain where its confidence lies below a threshold ``tau``; then the
error is that of the answered examples, and the share that is not answered has a limit of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from optuna.distributions import FloatDistribution

from riskpilot.bench.tasks import table
from riskpilot.bench.tasks.task import (
    SPLITS,
    Config,
    Losses,
    Split,
    Task,
    mean_over,
    nearest,
    task_over_lam,
)
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import WorstGroup

MISCOVERAGE = 0.05
WATERBIRDS_CELLS = ((0.155,), (0.165,), (0.175,), (0.185,))
WATERBIRDS_WORST_CELLS = ((0.3,), (0.33,), (0.36,), (0.4,))
CELEBA_WORST_CELLS = ((0.35,), (0.4,), (0.45,), (0.5,))
CELEBA_CELLS = ((0.16,), (0.18,), (0.2,), (0.22,), (0.24,))
SELECTIVE_WATERBIRDS_CELLS = tuple((limit, MISCOVERAGE) for limit in (0.145, 0.155, 0.165, 0.175))
SELECTIVE_CELEBA_CELLS = tuple((limit, MISCOVERAGE) for limit in (0.16, 0.18, 0.2, 0.22))


@dataclass(frozen=True)
class Predictions:
    """What every retrained last layer answers on one split: L layers, n examples."""

    wrong: npt.NDArray[np.bool_]
    """Shape (L, n)."""
    passed: npt.NDArray[np.uint8]
    """Shape (L, n): how many thresholds of the grid the confidence reaches."""
    group: Places
    """Shape (n,): 2 * label + spurious attribute."""


def load_waterbirds(path: str | Path) -> Task:
    """Load land and water birds, with the background as the spurious attribute."""
    return _robustness("waterbirds", path, WATERBIRDS_CELLS)


def load_celeba(path: str | Path) -> Task:
    """Load blond hair on CelebA, with being male as the spurious attribute."""
    return _robustness("celeba", path, CELEBA_CELLS)


def load_waterbirds_worst(path: str | Path) -> Task:
    """Load Waterbirds with a limit on the worst group's error, and the average error free."""
    return _worst("waterbirds_worst", path, WATERBIRDS_WORST_CELLS)


def load_celeba_worst(path: str | Path) -> Task:
    """Load CelebA with a limit on the worst group's error, and the average error free."""
    return _worst("celeba_worst", path, CELEBA_WORST_CELLS)


def load_selective_waterbirds(path: str | Path) -> Task:
    """Load Waterbirds, where the classifier may abstain."""
    return _selective("selective_waterbirds", path, SELECTIVE_WATERBIRDS_CELLS)


def load_selective_celeba(path: str | Path) -> Task:
    """Load CelebA, where the classifier may abstain."""
    return _selective("selective_celeba", path, SELECTIVE_CELEBA_CELLS)


def worst_group_error(wrong: npt.NDArray[np.bool_], group: Places, rows: Places | None) -> float:
    """Compute the largest error of a group that occurs, on the given rows; 1 where none occurs.

    ``wrong``, ``group``: shape (n,). The 1 keeps a classifier that answers nothing from being best.

    >>> worst_group_error(np.array([True, False, False]), np.array([0, 0, 3]), None)
    0.5
    """
    if rows is not None:
        wrong, group = wrong[rows], group[rows]
    members = np.bincount(group)
    mistakes = np.bincount(group[wrong], minlength=len(members))
    occurs = members > 0
    return float((mistakes[occurs] / members[occurs]).max(initial=0.0)) if occurs.any() else 1.0


def _read(path: str | Path) -> tuple[FloatArray, FloatArray, dict[Split, Predictions]]:
    """Read lam, shape (L,), tau, shape (T,), and the predictions of each split."""
    stored = table.load(path)
    lam = stored["lam"]
    predictions: dict[Split, Predictions] = {}
    for split in SPLITS:
        label = stored[f"{split}_label"].astype(np.bool_)
        positive = table.unpack_bits(stored[f"{split}_positive"], len(lam)).T
        predictions[split] = Predictions(
            wrong=np.ascontiguousarray(positive != label),
            passed=np.ascontiguousarray(stored[f"{split}_passed"].T),
            group=2 * label.astype(np.intp) + stored[f"{split}_spurious"].astype(np.intp),
        )
    return lam, stored["tau"], predictions


def _size(predictions: dict[Split, Predictions]) -> dict[Split, int]:
    """Count the examples of each split."""
    return {split: len(predictions[split].group) for split in SPLITS}


def _robustness(name: str, path: str | Path, cells: Sequence[tuple[float, ...]]) -> Task:
    """Make the task with a limit on the average error."""
    lam, _, predictions = _read(path)

    def losses(split: Split, config: Config) -> Losses:
        return {"error": predictions[split].wrong[nearest(lam, config["lam"])]}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        wrong = losses(split, config)["error"]
        return worst_group_error(wrong, predictions[split].group, rows)

    problem = Problem([Risk("error", limit=None)], minimize="worst_group_error")
    size = _size(predictions)
    return task_over_lam(
        name, problem, cells, lam, n_trials=15, size=size, losses=losses, free=free, safe=0.0
    )


def _worst(name: str, path: str | Path, cells: Sequence[tuple[float, ...]]) -> Task:
    """Make the task with a limit on the worst group's error."""
    lam, _, predictions = _read(path)

    def losses(split: Split, config: Config) -> Losses:
        wrong = predictions[split].wrong[nearest(lam, config["lam"])]
        return {"worst_group_error": wrong, "groups": predictions[split].group}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return mean_over(predictions[split].wrong[nearest(lam, config["lam"])], rows)

    return task_over_lam(
        name,
        Problem([Risk("worst_group_error", statistic=WorstGroup())], minimize="error"),
        cells,
        lam,
        n_trials=15,
        size=_size(predictions),
        losses=losses,
        free=free,
        safe=1.0,
    )


def _selective(name: str, path: str | Path, cells: Sequence[tuple[float, ...]]) -> Task:
    """Make the task of a classifier that may abstain, with limits on error and miscoverage."""
    lam, tau, predictions = _read(path)

    def wrong_and_answered(
        split: Split, config: Config
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        layer = nearest(lam, config["lam"])
        # The thresholds ascend, so an example is answered at the first `passed` of them.
        answered = predictions[split].passed[layer] > nearest(tau, config["tau"])
        return predictions[split].wrong[layer], answered

    def losses(split: Split, config: Config) -> Losses:
        wrong, answered = wrong_and_answered(split, config)
        return {"error": np.where(answered, wrong, np.nan), "miscoverage": ~answered}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        wrong, answered = wrong_and_answered(split, config)
        group = predictions[split].group
        if rows is not None:
            wrong, answered, group = wrong[rows], answered[rows], group[rows]
        return worst_group_error(wrong[answered], group[answered], None)

    return Task(
        name=name,
        problem=Problem(
            [Risk("error", limit=None, conditional=True), Risk("miscoverage", limit=None)],
            minimize="worst_group_error",
        ),
        cells=cells,
        space={
            "lam": FloatDistribution(0.0, 1.0),
            "tau": FloatDistribution(float(tau[0]), float(tau[-1])),
        },
        n_trials=15,
        n_startup_trials=5,
        size=_size(predictions),
        losses=losses,
        free=free,
        grid=[{"lam": float(a), "tau": float(b)} for a in lam for b in tau],
        safe={"lam": 0.0, "tau": float(tau[0])},
    )
