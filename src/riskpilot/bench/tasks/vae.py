"""The VAE experiment: how much rate a beta-VAE needs for a limited distortion, on MNIST."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import FloatDistribution

from riskpilot.bench.tasks.table import load
from riskpilot.bench.tasks.task import Config, Losses, Split, Task, mean_over
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.problem import Problem, Risk

CELLS = ((0.015,), (0.02,), (0.03,), (0.04,), (0.05,))


def load_vae(table_path: str | Path) -> Task:
    """Load the task; any beta has the losses of the nearest trained beta on the log scale."""
    table = load(table_path)
    beta: FloatArray = table["beta"]
    log_beta = np.log(beta)

    def nearest(config: Config) -> int:
        return int(np.argmin(np.abs(log_beta - np.log(config["beta"]))))

    @lru_cache(maxsize=4 * len(beta))
    def row(split: Split, loss: str, index: int) -> FloatArray:
        name = f"{split}_{loss}"
        numbers: npt.NDArray[Any] = table[name][index]
        low, step = table[f"{name}_low"][index], table[f"{name}_step"][index]
        return np.asarray(low + step * numbers, dtype=np.float64)

    def losses(split: Split, config: Config) -> Losses:
        return {"reconstruction": row(split, "mse", nearest(config)).copy()}

    def free(split: Split, config: Config, rows: Places | None) -> float:
        return mean_over(row(split, "kld", nearest(config)), rows)

    return Task(
        name="vae",
        problem=Problem([Risk("reconstruction", limit=None)], minimize="kld"),
        cells=CELLS,
        space={"beta": FloatDistribution(float(beta[0]), float(beta[-1]), log=True)},
        n_trials=10,
        n_startup_trials=5,
        size={
            "validation": table["validation_mse"].shape[1],
            "held_out": table["held_out_mse"].shape[1],
        },
        losses=losses,
        free=free,
        grid=[{"beta": float(value)} for value in beta],
        safe={"beta": float(beta[0])},
    )
