"""How many modules a selection crosses, and how often: ``python -m benchmarks.house``.

Two paths are followed: a selection from a table, and one from a study. A call that leaves one
module of riskpilot for another is a crossing; crossings between the same two functions count once.
A re-entry is a crossing into a module that was entered before. The same is counted for rooms, the
sub-packages of riskpilot.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import optuna
from rich.console import Console
from rich.table import Table

import riskpilot as rp

PACKAGE = Path(rp.__file__).parent
PROBLEM = rp.Problem([rp.Risk("error", 0.2)], "cost")
N_CONFIGS, N_EXAMPLES = 8, 200


@dataclass(frozen=True)
class Visit:
    """What a path entered, in the order of first entries, and how often it came back."""

    entered: tuple[str, ...]
    re_entries: int


@dataclass(frozen=True)
class Crossing:
    """A call from a function of one module into a function of another."""

    caller: str
    calling: str
    called: str
    function: str


def main() -> dict[str, tuple[Visit, Visit]]:
    """Follow both paths, and show what they visit."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = {
        name: (visit(crossings), visit([by_room(one) for one in crossings]))
        for name, path in (("table", table_path()), ("study", study_path()))
        for crossings in [follow(path)]
    }
    table = Table(title="What a selection visits")
    for column in ("path", "modules", "re-entries", "rooms", "re-entries of rooms"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for name, (modules, rooms) in found.items():
        numbers = (len(modules.entered), modules.re_entries, len(rooms.entered), rooms.re_entries)
        table.add_row(name, *map(str, numbers))
    console = Console()
    console.print(table)
    for name, (_, rooms) in found.items():
        console.print(f"{name}: {', '.join(rooms.entered)}")
    return found


def follow(path: Callable[[], object]) -> list[Crossing]:
    """Run a path, and list its crossings in the order in which they first happen."""
    found: dict[Crossing, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        called = module_of(frame) if event == "call" else None
        if called is None:
            return
        back = frame.f_back
        # Between two functions of riskpilot there may be some of numpy or of Optuna.
        while back is not None and module_of(back) is None:
            back = back.f_back
        caller = "" if back is None else module_of(back) or ""
        if caller != called:
            calling = "" if back is None else back.f_code.co_name
            found.setdefault(Crossing(caller, calling, called, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        path()
    finally:
        sys.setprofile(None)
    return list(found)


def module_of(frame: FrameType) -> str | None:
    """Name the module of riskpilot that a function stands in; None where it is another's."""
    file = Path(frame.f_code.co_filename)
    if not file.is_relative_to(PACKAGE):
        return None
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


def by_room(crossing: Crossing) -> Crossing:
    """Name rooms in the place of modules."""
    caller, called = (name.partition(".")[0] for name in (crossing.caller, crossing.called))
    return Crossing(caller, crossing.calling, called, crossing.function)


def visit(crossings: list[Crossing]) -> Visit:
    """Count what was entered, and what was entered again."""
    entered: dict[str, None] = {}
    re_entries = 0
    for crossing in dict.fromkeys(crossings):
        if crossing.caller != crossing.called:
            re_entries += crossing.called in entered
            entered.setdefault(crossing.called)
    return Visit(tuple(entered), re_entries)


def errors() -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Draw 0/1 losses of some configurations, from safe to unsafe; validation, then calibration."""
    risks = np.linspace(0.05, 0.3, N_CONFIGS)[:, None]
    return np.random.default_rng(0).random((N_CONFIGS, 2 * N_EXAMPLES)) < risks


def table_path() -> Callable[[], object]:
    """Make a selection from a table; what only the first call does is behind it."""
    seen, sealed = np.split(errors(), 2, axis=1)
    costs = np.arange(float(N_CONFIGS))[::-1]

    def path() -> rp.Selection:
        return rp.select_from_losses(
            PROBLEM, validation={"error": seen, "cost": costs}, calibration={"error": sealed}
        )

    path()
    return path


def study_path() -> Callable[[], object]:
    """Make a selection from a finished study."""
    seen, sealed = np.split(errors(), 2, axis=1)
    study = rp.create_study(PROBLEM, seed=0)

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        i = int(trial.suggest_float("x", 0, 1) * (N_CONFIGS - 0.01))
        return rp.Evaluation({"error": seen[i], "cost": float(N_CONFIGS - i)}, {"error": sealed[i]})

    study.optimize(rp.objective(study, evaluate), n_trials=N_CONFIGS)
    return lambda: rp.select(study)


if __name__ == "__main__":
    main()
