"""The paper's experiments, as tables of per-example losses."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from riskpilot.bench.tasks import fairness, pruning, robustness, vae
from riskpilot.bench.tasks.synthetic import synthetic
from riskpilot.bench.tasks.task import Task
from riskpilot.errors import TableError

__all__ = ["NAMES", "SECOND_FORMS", "TABLES_VARIABLE", "Task", "load", "synthetic", "table_path"]

TABLES_VARIABLE = "RISKPILOT_TABLES"
_CHECKOUT = Path(__file__).resolve().parents[3] / "experiments"

# Name of the task: (its table, how the table is read). Selective tasks share the plain one's.
_LOADERS: dict[str, tuple[str, Callable[[Path], Task]]] = {
    "fairness": ("fairness/table.npz", fairness.load_fairness),
    "waterbirds": ("waterbirds/table.npz", robustness.load_waterbirds),
    "celeba": ("celeba/table.npz", robustness.load_celeba),
    "selective_waterbirds": ("waterbirds/table.npz", robustness.load_selective_waterbirds),
    "selective_celeba": ("celeba/table.npz", robustness.load_selective_celeba),
    "fairness_gap": ("fairness/table.npz", fairness.load_fairness_gap),
    "waterbirds_worst": ("waterbirds/table.npz", robustness.load_waterbirds_worst),
    "celeba_worst": ("celeba/table.npz", robustness.load_celeba_worst),
    "vae": ("vae/table.npz", vae.load_vae),
    "pruning": ("pruning/table.npz", pruning.load_pruning),
    "pruning_drop": ("pruning/table.npz", pruning.load_pruning_drop),
    "early_exit": ("early_exit/table.npz", pruning.load_early_exit),
}
NAMES = (*_LOADERS, "synthetic")
# Tasks of the paper in another form, with a limit on groups or on a difference: none of its cells.
SECOND_FORMS = ("fairness_gap", "waterbirds_worst", "celeba_worst", "pruning_drop")
_SEEDED = ("fairness", "fairness_gap", "synthetic")


def load(name: str, *, seed: int | None = None, tables: str | Path | None = None) -> Task:
    """An experiment by its name, ready to be replayed.

    ``seed`` is the training seed of fairness (0, 1 or 2) or the seed of the synthetic examples.
    ``tables`` is the folder that holds ``fairness/table.npz`` and so on; without it, the folder
    that the environment variable RISKPILOT_TABLES names, else ``experiments`` of the checkout.

    >>> load("synthetic").problem.minimize
    'cost'
    """
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise TableError(
            f"A task is one of {', '.join(NAMES)}, but the name is {name!r}. {hint}".rstrip()
        )
    if seed is not None and name not in _SEEDED:
        raise TableError(
            f"A seed belongs to fairness and synthetic, but {name!r} was given seed={seed!r}. "
            f"Leave it out: this table was made with one seed."
        )
    if name == "synthetic":
        return synthetic(seed=seed or 0)
    path = table_path(name, tables)
    if name == "fairness":
        return fairness.load_fairness(path, seed or 0)
    if name == "fairness_gap":
        return fairness.load_fairness_gap(path, seed or 0)
    return _LOADERS[name][1](path)


def table_path(name: str, tables: str | Path | None = None) -> Path:
    """Where the table of a task lies; an error where there is none."""
    folder = Path(tables or os.environ.get(TABLES_VARIABLE) or _CHECKOUT)
    path = folder / _LOADERS[name][0]
    if not path.is_file():
        raise TableError(
            f"The task {name!r} needs its table, but there is no file {path}. Tables come with a "
            f"checkout of riskpilot, not with the package: clone it and set {TABLES_VARIABLE} to "
            f"its folder experiments (or pass tables=...), or make the table with the training "
            f"script in experiments/{path.parent.name}."
        )
    return path
