"""Time and memory of what is asked of studies of many trials: ``python -m benchmarks.load``.

Each question is asked in a process of its own, so that its peak memory is its own, too. Processor
time is kept beside the time on the clock: it does not count what else the machine does.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna

import riskpilot as rp
from benchmarks.durability import FIGURES, record
from benchmarks.many_trials import NAMES, evaluation, fill
from riskpilot.study import study_status

SIZES = [100, 1_000, 5_000, 20_000]
_EXAMPLES = 300
_PROPOSALS = 12


def proposals(address: str) -> dict[str, Any]:
    """Time proposals through Optuna's own loop, from its call until the parameters are known."""
    study = rp.load_study(storage=address)
    clocks = []

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        config = {name: trial.suggest_float(name, 0.0, 1.0) for name in NAMES}
        clocks[-1] = clocks[-1]()
        return evaluation(config, trial.number, _EXAMPLES)

    for _ in range(_PROPOSALS):
        clocks.append(_stopwatch())
        study.optimize(rp.objective(study, evaluate), n_trials=1)
    first, *others = clocks
    return {
        "first_proposal": first,
        "proposal": [statistics.median(part) for part in zip(*others, strict=True)],
        "slowest_proposal": [max(part) for part in zip(*others, strict=True)],
    }


def selection(address: str) -> dict[str, Any]:
    """Time a selection, and the report on it."""
    study = rp.load_study(storage=address)
    clock = _stopwatch()
    selected = rp.select(study)
    found: dict[str, Any] = {"select": clock(), "candidates": len(selected.candidates)}
    memory = _peak_mb()
    with tempfile.TemporaryDirectory() as folder:
        clock = _stopwatch()
        page = Path(folder) / "report.html"
        selected.report(page)
        found |= {"report": clock(), "report_mb": page.stat().st_size / 1e6}
    return {**found, "select_mb": memory}


def status(address: str) -> dict[str, Any]:
    """Time what ``riskpilot status`` asks."""
    study = rp.load_study(storage=address)
    clock = _stopwatch()
    study_status(study)
    return {"status": clock()}


QUESTIONS = {each.__name__: each for each in (status, proposals, selection)}


def _stopwatch() -> Callable[[], list[float]]:
    """Start a clock; it returns the seconds since then, on the clock and of the processor."""
    start = time.perf_counter(), time.process_time()
    return lambda: [time.perf_counter() - start[0], time.process_time() - start[1]]


def _peak_mb() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def report(n_trials: int, kept: Path | None = None) -> dict[str, Any]:
    """Make a study, or take the one that was kept, and ask each question of a copy of it."""
    figures: dict[str, Any] = {"trials": n_trials, "examples": _EXAMPLES}
    with tempfile.TemporaryDirectory() as folder:
        made = (kept or Path(folder)) / str(n_trials)
        if not made.exists():
            made.mkdir(parents=True)
            fill(made / "study.db", n_trials, _EXAMPLES)
        for question in QUESTIONS:
            copy = Path(folder) / question
            shutil.copytree(made, copy)
            address = f"sqlite:///{copy / 'study.db'}"
            command = [sys.executable, "-m", "benchmarks.load", "--ask", question, address]
            answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            figures |= {f"{question}_mb": answer.pop("peak_mb"), **answer}
    return json.loads(json.dumps(figures), parse_float=lambda text: round(float(text), 3))


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the JSON goes")
    parser.add_argument("--keep", type=Path, help="where studies are kept, to be used again")
    parser.add_argument("--ask", nargs=2, metavar=("QUESTION", "ADDRESS"), help="in this process")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if options.ask:
        question, address = options.ask
        print(json.dumps({**QUESTIONS[question](address), "peak_mb": _peak_mb()}))
        return
    for n_trials in options.trials:
        figures = report(n_trials, options.keep)
        print(figures, flush=True)
        record("load", {str(n_trials): figures}, options.out)


if __name__ == "__main__":
    main()
