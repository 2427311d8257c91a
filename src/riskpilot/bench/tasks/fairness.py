"""Fairness on Adult: limit the error, minimise the difference in demographic parity (DDP); or the
other way round."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from optuna.distributions import FloatDistribution

from riskpilot.bench.tasks import table
from riskpilot.bench.tasks.task import Config, FloatArray, IntArray, Losses, Split, Task, nearest
from riskpilot.errors import TableError
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import GroupGap

SPLITS: tuple[Split, ...] = ("validation", "held_out")
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
    """The values of lam, shape (L,), and the predictions of each split."""
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
    """The models of one training seed; ``lam`` in [0, 1] weighs fairness against error."""
    lam, predictions = _read(path, seed)

    def losses(split: Split, config: Config) -> Losses:
        seen = predictions[split]
        return {"error": seen.positive[nearest(lam, config["lam"])] != seen.label}

    def free(split: Split, config: Config, rows: IntArray | None) -> float:
        seen = predictions[split]
        predicted, men = seen.positive[nearest(lam, config["lam"])], seen.male
        if rows is not None:
            predicted, men = predicted[rows], men[rows]
        return abs(float(predicted[~men].mean()) - float(predicted[men].mean()))  # eq:ddp

    return Task(
        name="fairness",
        problem=Problem([Risk("error", limit=None)], minimize="ddp"),
        cells=CELLS,
        space={"lam": FloatDistribution(0.0, 1.0)},
        n_trials=10,
        n_startup_trials=5,
        size={split: len(predictions[split].label) for split in SPLITS},
        losses=losses,
        free=free,
        grid=[{"lam": float(value)} for value in lam],
        safe={"lam": 0.0},
    )


def load_fairness_gap(path: str | Path, seed: int = 0) -> Task:
    """The same models with a limit on the gap between the groups' rates, and the error free."""
    lam, predictions = _read(path, seed)

    def losses(split: Split, config: Config) -> Losses:
        seen = predictions[split]
        return {"ddp": seen.positive[nearest(lam, config["lam"])], "sex": seen.male}

    def free(split: Split, config: Config, rows: IntArray | None) -> float:
        seen = predictions[split]
        wrong = seen.positive[nearest(lam, config["lam"])] != seen.label
        return float((wrong if rows is None else wrong[rows]).mean())

    return Task(
        name="fairness_gap",
        problem=Problem([Risk("ddp", statistic=GroupGap(), groups="sex")], minimize="error"),
        cells=GAP_CELLS,
        space={"lam": FloatDistribution(0.0, 1.0)},
        n_trials=10,
        n_startup_trials=5,
        size={split: len(predictions[split].label) for split in SPLITS},
        losses=losses,
        free=free,
        grid=[{"lam": float(value)} for value in lam],
        safe={"lam": 1.0},
    )
