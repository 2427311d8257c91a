"""Fairness on Adult: limit the error, minimise the difference in demographic parity (DDP)."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from optuna.distributions import FloatDistribution

from riskpilot.errors import TableError
from riskpilot.problem import Problem, Risk
from riskpilot.tasks import table
from riskpilot.tasks.task import Config, IntArray, Losses, Split, Task, nearest

SPLITS: tuple[Split, ...] = ("validation", "held_out")
CELLS = ((0.165,), (0.168,), (0.171,), (0.175,), (0.18,))


def load_fairness(path: str | Path, seed: int = 0) -> Task:
    """The models of one training seed; ``lam`` in [0, 1] weighs fairness against error."""
    stored = table.load(path)
    lam, seeds = stored["lam"], stored["seeds"].tolist()
    if seed not in seeds:
        raise TableError(
            f"The fairness table holds the training seeds {seeds}, but seed {seed!r} was asked "
            f"for. Use one of these, or train more with experiments/fairness/train.py --seeds."
        )
    positive: dict[Split, npt.NDArray[np.bool_]] = {}  # shape (L, n) each
    label: dict[Split, npt.NDArray[np.bool_]] = {}
    male: dict[Split, npt.NDArray[np.bool_]] = {}
    for split in SPLITS:
        packed = stored[f"{split}_positive"][seeds.index(seed)]
        positive[split] = np.ascontiguousarray(table.unpack_bits(packed, len(lam)).T)
        label[split] = stored[f"{split}_label"]
        male[split] = stored[f"{split}_male"]

    def losses(split: Split, config: Config) -> Losses:
        return {"error": positive[split][nearest(lam, config["lam"])] != label[split]}

    def free(split: Split, config: Config, rows: IntArray | None) -> float:
        predicted, men = positive[split][nearest(lam, config["lam"])], male[split]
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
        size={split: len(label[split]) for split in SPLITS},
        losses=losses,
        free=free,
        grid=[{"lam": float(value)} for value in lam],
        safe={"lam": 0.0},
    )
