"""The pruning experiments: how cheap an encoder becomes for a limited loss of accuracy, on AG News.

The cost of a text is counted in floating-point operations of the matrix products. With n tokens,
h heads of size s, width d, and f intermediate units, a layer takes 8 n d s h (query, key, value,
output) + 4 n^2 s h (attention) + 4 n d f (feed-forward). The readers of layer l (2-layer networks
with r hidden units on the states of layers 1 to l) take 2 r (l d + outputs) each time: an exit head
once for a text that gets there, a token-importance predictor for every token but [CLS] of a text
that goes on. A reader that cannot change anything (its threshold is at the end of its range where
nothing happens) is not run. The cost is relative to the whole encoder without readers.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from optuna.distributions import FloatDistribution

from riskpilot.bench.tasks.table import load, unpack_bits
from riskpilot.bench.tasks.task import Config, Losses, Split, Task, mean_over
from riskpilot.common.arrays import FloatArray, Places
from riskpilot.problem import Problem, Risk
from riskpilot.statistics import Difference

PRUNING_CELLS = ((0.02,), (0.03,), (0.04,), (0.05,), (0.075,))
EARLY_EXIT_CELLS = ((0.01,), (0.02,), (0.03,), (0.04,), (0.05,))
PROBLEM = Problem([Risk("drop", limit=None, low=-1, high=1)], minimize="cost")


def load_pruning(table_path: str | Path) -> Task:
    """Load the task of three thresholds; a point has the losses of the nearest point of the grid.

    Tokens predicted to matter less than ``tokens`` and heads that rank below ``heads`` go; a text
    leaves after the first layer whose confidence (log odds of the likeliest class) exceeds
    ``exit``.
    """
    table = load(table_path)
    grids: dict[str, FloatArray] = {
        name: table[f"{name.removesuffix('s')}_grid"] for name in ("tokens", "heads", "exit")
    }
    lengths = table["lengths"]
    rows = _rows(table.settings, len(lengths))
    # (head thresholds, token thresholds, layers, texts), the first layer at the front
    removed = np.cumsum(table["removed"], axis=2, dtype=np.uint8)
    confidence = np.cumsum(table["rise"], axis=2, dtype=np.uint8)
    correct = unpack_bits(table["correct"], len(lengths))
    full_right = correct[0, 0, -1]
    full_cost = _full_cost(table.settings, removed.shape[2] + 1)[lengths]
    exit_costs = np.cumsum(_exit_costs(table.settings, removed.shape[2]))
    exit_costs = np.append(exit_costs, exit_costs[-1])  # the last layer has no exit head

    def nearest(config: Config) -> tuple[int, int, int]:
        tokens, heads, leave = (
            int(np.argmin(np.abs(grid - config[name]))) for name, grid in grids.items()
        )
        return heads, tokens, leave

    @lru_cache(maxsize=128)
    def costs(split: Split, heads: int, tokens: int) -> FloatArray:
        """Count the operations up to each layer without exit heads, shape (layers, texts)."""
        some = lengths[rows[split]].astype(np.intp)
        entering = np.vstack([some, some - removed[heads, tokens][:, rows[split]]])
        each = np.stack(
            [
                _layer_costs(table.settings, int(count))[n]
                for count, n in zip(table["heads"][heads], entering, strict=True)
            ]
        )
        if tokens > 0:
            predictors = _reader_costs(table.settings, len(entering) - 1, outputs=1)
            each[1:] += predictors[:, None] * (entering[:-1] - 1)
        return np.cumsum(each, axis=0)

    def last_layer(split: Split, heads: int, tokens: int, leave: int) -> Places:
        """Find the layer, counted from 0, after which each text leaves."""
        stays = confidence[heads, tokens][:, rows[split]] <= leave
        return np.asarray(np.count_nonzero(stays, axis=0), dtype=np.intp)

    def losses(split: Split, config: Config) -> Losses:
        heads, tokens, leave = nearest(config)
        layer = last_layer(split, heads, tokens, leave)
        right = correct[heads, tokens][:, rows[split]][layer, np.arange(len(layer))]
        return {"drop": full_right[rows[split]].astype(np.int8) - right}

    def free(split: Split, config: Config, subset: Places | None) -> float:
        heads, tokens, leave = nearest(config)
        layer = last_layer(split, heads, tokens, leave)
        spent = costs(split, heads, tokens)[layer, np.arange(len(layer))]
        if leave < len(grids["exit"]) - 1:
            spent = spent + exit_costs[layer]
        return mean_over(spent / full_cost[rows[split]], subset)

    return Task(
        name="pruning",
        problem=PROBLEM,
        cells=PRUNING_CELLS,
        space={
            name: FloatDistribution(float(grid[0]), float(grid[-1])) for name, grid in grids.items()
        },
        n_trials=50,
        n_startup_trials=30,
        size={split: len(lengths[part]) for split, part in rows.items()},
        losses=losses,
        free=free,
        grid=[
            dict(zip(grids, map(float, point), strict=True)) for point in product(*grids.values())
        ],
        safe={
            "tokens": float(grids["tokens"][0]),
            "heads": float(grids["heads"][0]),
            "exit": float(grids["exit"][-1]),
        },
    )


def load_pruning_drop(table_path: str | Path) -> Task:
    """Load the same losses as errors, limited relative to those of the whole encoder."""
    task, table = load_pruning(table_path), load(table_path)
    n = len(table["lengths"])
    whole = ~unpack_bits(table["correct"], n)[0, 0, -1]
    dense = {split: whole[rows] for split, rows in _rows(table.settings, n).items()}

    def losses(split: Split, config: Config) -> Losses:
        wrong = dense[split] + task.losses(split, config)["drop"]
        return {"error": wrong.astype(np.bool_), "dense": dense[split]}

    problem = Problem([Risk("error", statistic=Difference("dense"))], minimize="cost")
    return replace(task, name="pruning_drop", problem=problem, losses=losses)


def load_early_exit(table_path: str | Path) -> Task:
    """Load the task of one exit threshold for each layer but the last, without pruning.

    A text leaves after the first layer l whose confidence exceeds ``exit_l``.
    """
    table = load(table_path)
    lengths = table["lengths"]
    rows = _rows(table.settings, len(lengths))
    confidence = table["confidence"].astype(np.float64)
    correct = unpack_bits(table["correct"], len(lengths))
    early = len(confidence)
    low, high = table.settings["exit_low"], table.settings["exit_high"]
    names = [f"exit_{layer}" for layer in range(1, early + 1)]
    one_layer = _layer_costs(table.settings, table.settings["heads"])[lengths]
    exit_costs = _exit_costs(table.settings, early)

    def last_layer(split: Split, thresholds: FloatArray) -> Places:
        leaves = confidence[:, rows[split]] > thresholds[:, None]
        return np.where(leaves.any(axis=0), leaves.argmax(axis=0), early)

    def losses(split: Split, config: Config) -> Losses:
        layer = last_layer(split, _values(config, names))
        right = correct[:, rows[split]][layer, np.arange(len(layer))]
        return {"drop": correct[-1, rows[split]].astype(np.int8) - right}

    def free(split: Split, config: Config, subset: Places | None) -> float:
        thresholds = _values(config, names)
        layer = last_layer(split, thresholds)
        readers = np.append(np.cumsum(np.where(thresholds < high, exit_costs, 0.0)), 0.0)
        readers[-1] = readers[-2]  # the last layer has no exit head
        per_layer = one_layer[rows[split]]
        spent = (layer + 1) * per_layer + readers[layer]
        return mean_over(spent / ((early + 1) * per_layer), subset)

    return Task(
        name="early_exit",
        problem=PROBLEM,
        cells=EARLY_EXIT_CELLS,
        space={name: FloatDistribution(low, high) for name in names},
        n_trials=30,
        n_startup_trials=20,
        size={split: len(lengths[part]) for split, part in rows.items()},
        losses=losses,
        free=free,
        safe=dict.fromkeys(names, high),
    )


def _rows(settings: Mapping[str, Any], texts: int) -> dict[Split, slice]:
    """Return which texts belong to each split."""
    validation = int(settings["validation_rows"])
    return {"validation": slice(0, validation), "held_out": slice(validation, texts)}


def _values(config: Config, names: list[str]) -> FloatArray:
    """Return the values of some parameters of a configuration."""
    return np.array([config[name] for name in names], dtype=np.float64)


def _layer_costs(settings: Mapping[str, Any], heads: int) -> FloatArray:
    """Count the operations of one layer with so many heads, for 0, 1, ... tokens."""
    n = np.arange(settings["longest"] + 1, dtype=np.float64)
    d, f = settings["hidden"], settings["intermediate"]
    sh = d // settings["heads"] * heads
    return np.asarray(8 * n * d * sh + 4 * n**2 * sh + 4 * n * d * f)


def _full_cost(settings: Mapping[str, Any], layers: int) -> FloatArray:
    """Count the operations of the whole encoder, for 0, 1, ... tokens."""
    return layers * _layer_costs(settings, settings["heads"])


def _reader_costs(settings: Mapping[str, Any], layers: int, outputs: int) -> FloatArray:
    """Count the operations of the readers of layers 1, 2, ..., for one state."""
    up_to = np.arange(1, layers + 1, dtype=np.float64)
    return np.asarray(2 * settings["reader_hidden"] * (up_to * settings["hidden"] + outputs))


def _exit_costs(settings: Mapping[str, Any], layers: int) -> FloatArray:
    """Count the operations of the exit heads of layers 1, 2, ...."""
    return _reader_costs(settings, layers, settings["classes"])
