"""Fairness on Adult: error against the difference in demographic parity (DDP).

One form limits the error and minimises the difference, the other limits the difference.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
from riskpilot.errors import TableError
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import GroupGap

GAP_CELLS = ((0.03,), (0.05,), (0.08,), (0.11,))
CELLS = ((0.165,), (0.168,), (0.171,), (0.175,), (0.18,))


@dataclass(frozen=True)
class Predictions:
    """What every model of one training seed answers on one split: L models, n examples."""

    positive: npt.NDArray[np.bool_]
    """Shape (L, n)."""
    label: npt.NDArray[np.bool_]
    male: npt.NDArray[np.bool_]


def _read(path: str | Path, seed: int) -> tuple[FloatArray, dict[Split, Predictions]]:
    """Read the values of lam, shape (L,), and the predictions of each split."""
    stored = table.load(path)
    lam, seeds = stored["lam"], stored["seeds"].tolist()
    if seed not in seeds:
        raise TableError(
            f"The fairness table holds the training seeds {seeds}, but seed {seed!r} was asked "
            f"for. Use one of these, or train more with experiments/fairness/train.py --seeds."
        )
    predictions: dict[Split, Predictions] = {}
    for split in SPLITS:
        packed = stored[f"{split}_positive"][seeds.index(seed)]
        positive = np.ascontiguousarray(table.unpack_bits(packed, len(lam)).T)
        predictions[split] = Predictions(
            positive, stored[f"{split}_label"], stored[f"{split}_male"]
        )
    return lam, predictions


def load_fairness(path: str | Path, seed: int = 0) -> Task:
    """Load the models of one training seed; ``lam`` in [0, 1] weighs fairness against error."""
    lam, predictions = _read(path, seed)

    def losses(split: Split, config: Config) -> Losses:
        answers = predictions[split]
        return {"error": answers.positive[nearest(lam, config["lam"])] != answers.label}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        answers = predictions[split]
        predicted, men = answers.positive[nearest(lam, config["lam"])], answers.male
        if rows is not None:
            predicted, men = predicted[rows], men[rows]
        return abs(float(predicted[~men].mean()) - float(predicted[men].mean()))  # eq:ddp

    problem = Problem([Risk("error", limit=None)], minimize="ddp")
    size = {split: len(predictions[split].label) for split in SPLITS}
    return task_over_lam(
        "fairness", problem, CELLS, lam, n_trials=10, size=size, losses=losses, free=free, safe=0.0
    )


def load_fairness_gap(path: str | Path, seed: int = 0) -> Task:
    """Load the same models with a limit on the gap between the groups' rates; the error is free."""
    lam, predictions = _read(path, seed)

    def losses(split: Split, config: Config) -> Losses:
        answers = predictions[split]
        return {"ddp": answers.positive[nearest(lam, config["lam"])], "sex": answers.male}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        answers = predictions[split]
        return mean_over(answers.positive[nearest(lam, config["lam"])] != answers.label, rows)

    problem = Problem([Risk("ddp", statistic=GroupGap(), groups="sex")], minimize="error")
    size = {split: len(predictions[split].label) for split in SPLITS}
    return task_over_lam(
        "fairness_gap",
        problem,
        GAP_CELLS,
        lam,
        n_trials=10,
        size=size,
        losses=losses,
        free=free,
        safe=1.0,
    )
