"""Join what ``experiments.pruning.train`` wrote into the tables of pruning and of early exit.

``python -m experiments.pruning.merge --parts parts --tables experiments``.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from experiments.common import save_table


def merge(parts: Path, tables: Path) -> None:
    base = dict(np.load(parts / "base.npz"))
    settings = json.loads(str(base["settings"]))
    loaded = [dict(np.load(path)) for path in sorted(parts.glob("part_*.npz"))]
    tokens, confidence, correct = (
        np.concatenate([part[name] for part in loaded])
        for name in ("tokens", "confidence", "correct")
    )
    if len(tokens) != settings["head_steps"]:
        raise SystemExit(f"{settings['head_steps']} head thresholds are needed, not {len(tokens)}.")
    exit_grid = base["exit_grid"]
    arrays = {
        "lengths": base["lengths"],
        "removed": tokens[:, :, :-1] - tokens[:, :, 1:],
        "rise": np.diff(confidence, axis=2, prepend=np.uint8(0)),
        "correct": np.packbits(correct, axis=-1),
        "heads": base["heads"].astype(np.uint8),
        "token_grid": base["token_grid"],
        "head_grid": base["head_grid"],
        "exit_grid": exit_grid,
    }
    early = {
        "lengths": base["lengths"],
        "confidence": base["confidence"],
        "correct": np.packbits(base["correct"], axis=-1),
    }
    span = {"exit_low": float(exit_grid[0]), "exit_high": float(exit_grid[-1])}
    for name, content, described in (
        ("pruning", arrays, settings),
        ("early_exit", early, {**settings, **span}),
    ):
        path = tables / name / "table.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_table(path, content, described)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True, help="folder that train wrote")
    parser.add_argument("--tables", type=Path, required=True, help="gets <task>/table.npz")
    options = parser.parse_args(arguments)
    merge(options.parts, options.tables)


if __name__ == "__main__":
    main()
