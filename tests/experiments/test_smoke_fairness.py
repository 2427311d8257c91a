"""The fairness script trains one step on a few rows and writes a table that loads."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from riskpilot.bench.tasks.fairness import load_fairness

import_module("torch")
ROOT = Path(__file__).resolve().parents[2]


def test_one_step_gives_a_table_that_loads(tmp_path):
    out = tmp_path / "table.npz"
    arguments = "--lams 3 --seeds 2 --rows 400 --epochs 1 --max-steps 1 --device cpu --out"
    subprocess.run(
        [sys.executable, "-m", "experiments.fairness.train", *arguments.split(), str(out)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    task = load_fairness(out, seed=1)
    assert [config["lam"] for config in task.grid] == [0, 0.5, 1]
    assert task.size["held_out"] == 400 - 287 - 32
    assert all(0 <= error <= 1 for error in task.grid_means("held_out")["error"])
