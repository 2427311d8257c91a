"""A large study: its size, the time and memory of a selection: ``python -m benchmarks.large``."""

import argparse
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import optuna

import riskpilot as rp
from benchmarks.durability import FIGURES, record
from benchmarks.many_trials import NAMES, PROBLEM, evaluation


def fill(address: str, n_trials: int, n_examples: int) -> optuna.Study:
    """A finished study: 0/1 losses of one risk, real ones of the other."""
    study = rp.create_study(
        PROBLEM,
        storage=address,
        study_name=f"large {n_trials}",
        sampler=optuna.samplers.RandomSampler(seed=0),
    )

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        config = {name: trial.suggest_float(name, 0, 1) for name in NAMES}
        return evaluation(config, trial.number, n_examples)

    study.optimize(rp.objective(study, evaluate), n_trials=n_trials)
    return study


def report(n_trials: int, n_examples: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        address = f"sqlite:///{folder}/study.db"
        fill(address, n_trials, n_examples)
        filled = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        study = rp.load_study(storage=address)
        start = time.perf_counter()
        selection = rp.select(study)
        seconds = time.perf_counter() - start
        tracemalloc.start()  # counting takes its time, so that the same is asked once more
        rp.select(rp.load_study(storage=address))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    n_candidates = len(selection.candidates)
    return {
        "trials": n_trials,
        "examples": n_examples,
        "disk_mb": round(size / 1e6, 1),
        "fill_seconds": round(filled, 1),
        "select_seconds": round(seconds, 2),
        "peak_mb": round(peak / 1e6, 1),
        "candidates": n_candidates,
        "losses_mb": round(n_candidates * n_examples * (1 + 4) / 1e6, 1),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for n_trials in options.trials:
        figures = report(n_trials, options.examples)
        print(figures, flush=True)
        record("large", {str(n_trials): figures}, options.out)


if __name__ == "__main__":
    sys.exit(main())
