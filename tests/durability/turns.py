"""Workers that wait for a flag, do one thing at the same moment as others, and say what they did.

Each is a process of its own, forked from one that has loaded what they need: to load it takes
several times as long as what they do.
"""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RDBStorage  # noqa: F401  (loads SQLAlchemy, for all workers)

import riskpilot as rp
from tests.durability.cases import PROBLEM, evaluation

SECONDS = 120  # to wait for a worker on a busy machine

Say = Callable[[str], None]
Place = dict[str, Any]


@dataclass(frozen=True)
class Worker:
    """A process, and where the lines come from that it says."""

    process: BaseProcess
    _lines: Connection

    def line(self) -> str:
        """Wait for its next line."""
        assert self._lines.poll(SECONDS)
        return str(self._lines.recv())

    def rest(self) -> list[str]:
        """Wait for its end, and return the lines that it has said since."""
        found = []
        try:
            while True:
                found.append(self.line())
        except EOFError:
            self.process.join(SECONDS)
        return found


def begin(act: Callable[..., None], place: Place, flag: Path, *arguments: Any) -> Worker:
    """Start a worker that waits for a flag."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    lines, said = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(act, said, place, flag, arguments), daemon=True)
    process.start()
    said.close()
    worker = Worker(process, lines)
    assert worker.line() == "ready"
    return worker


def at_once(
    act: Callable[..., None], place: Place, flag: Path, arguments: list[tuple[Any, ...]]
) -> list[list[str]]:
    """Run workers that begin at the same moment, and return the lines that each of them said."""
    workers = [begin(act, place, flag, *one) for one in arguments]
    flag.touch()
    written = [worker.rest() for worker in workers]
    assert [worker.process.exitcode for worker in workers] == [0] * len(workers), written
    return written


def _work(
    act: Callable[..., None], said: Connection, place: Place, flag: Path, arguments: tuple[Any, ...]
) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    said.send("ready")
    while not flag.exists():
        time.sleep(0.001)
    act(said.send, {**place, "study_name": "s"}, *arguments)


def create(say: Say, place: Place) -> None:
    """Make the study, or take the one that another has made."""
    study = rp.create_study(PROBLEM, safe={"x": 0.0}, load_if_exists=True, **place)
    say(f"made {rp.study.settings_of(study)['seed']}")


def tell(say: Say, place: Place, x: float) -> None:
    """Tell every trial that nobody has told."""
    study = rp.load_study(**place)
    for number in range(len(study.trials)):
        try:
            rp.tell(study, number, evaluation(x))
            say(f"told {number}")
        except rp.StudyError as error:
            if "is complete" not in str(error):
                raise


def adopt(say: Say, place: Place, address: str) -> None:
    """Adopt a study of plain Optuna, slowly enough to be killed in the middle."""
    plain = optuna.load_study(study_name="plain", storage=address)

    def losses(trial: optuna.trial.FrozenTrial) -> rp.Evaluation:
        say(f"losses {trial.number}")
        time.sleep(0.05)
        return evaluation(trial.params["x"])

    rp.adopt(plain, PROBLEM, losses, **place)
    say("done")
