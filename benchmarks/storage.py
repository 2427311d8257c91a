"""What a trial costs in a storage: riskpilot's studies against plain Optuna, samplers alike."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

import riskpilot as rp
from benchmarks.measure import Row, compare
from benchmarks.postgres import server
from riskpilot.study.kept.trials import study_space
from riskpilot.study.storages import exclusive

PROBLEM = rp.Problem([rp.Risk("error", 0.2), rp.Risk("harm", 0.2)], "cost")
EXAMPLES = 5_000
TRIALS = 10


class Proposing(optuna.samplers.RandomSampler):
    """Draws at random, after it has spent what a guided proposal from 15 trials costs."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self._twin = rp.create_study(PROBLEM, seed=0)
        self._twin.optimize(rp.objective(self._twin, _twin_evaluation), n_trials=15)
        self._trial = self._twin._storage.get_trial(self._twin.ask()._trial_id)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        guided = self._twin.sampler
        space = guided.infer_relative_search_space(self._twin, self._trial)
        assert guided.sample_relative(self._twin, self._trial, space)
        return {}


class Visible(Proposing):
    """And asks the storage what the guided sampler asks, and shows the proposal to other workers as
    it does. The guided sampler itself would not do: its proposals take longer with every trial."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        study_space(study, study.get_trials(deepcopy=False))
        return super().infer_relative_search_space(study, trial)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        assert study.user_attrs
        assert study.get_trials(deepcopy=False)
        with exclusive(study) as is_held:
            assert study.get_trials(deepcopy=False)
            super().sample_relative(study, trial, search_space)
            study._storage.set_trial_system_attr(trial._trial_id, "proposal", {"x": 0.1, "y": 0.2})
            assert is_held()
        return {}


def _twin_evaluation(trial: optuna.Trial) -> rp.Evaluation:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    rng = np.random.default_rng(trial.number)
    losses = {"error": rng.random(500) < 0.3 * x, "harm": rng.random(500) < 0.3 * y}
    return rp.Evaluation({**losses, "cost": 2 - x - y})


def rows(quick: bool) -> Iterator[Row]:
    """Both pay for a guided proposal in each trial and hand Optuna the same three numbers; ours
    keep the losses, 5,000 examples on each split, show proposals to other workers, and have a
    heartbeat."""
    rng = np.random.default_rng(0)
    losses = {name: rng.random((2, EXAMPLES)) < 0.1 for name in PROBLEM.names}
    trials, repeats = (2, 1) if quick else (TRIALS, 11)
    numbers = count()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        addresses = {"SQLite": f"sqlite:///{folder}/study.db"}
        addresses["PostgreSQL"] = stack.enter_context(server(durable=True))

        def evaluate(trial: optuna.Trial) -> rp.Evaluation:
            cost = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
            return rp.Evaluation(
                {**{name: rows[0] for name, rows in losses.items()}, "cost": cost},
                {name: rows[1] for name, rows in losses.items()},
            )

        def plain(trial: optuna.Trial) -> tuple[float, float, float]:
            cost = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
            return float(losses["error"][0].mean()), float(losses["harm"][0].mean()), cost

        for kind, address in addresses.items():
            ours = rp.create_study(
                PROBLEM,
                storage=address,
                study_name=f"ours {kind} {next(numbers)}",
                sampler=Visible(),
                artifact_store=folder / "losses",
            )
            peer = optuna.create_study(
                storage=address,
                study_name=f"plain {kind} {next(numbers)}",
                sampler=Proposing(),
                directions=["minimize"] * 3,
            )
            objective = rp.objective(ours, evaluate)
            yield compare(
                f"{trials} trials on {kind}",
                "plain Optuna",
                lambda study=ours, objective=objective: study.optimize(objective, n_trials=trials),
                lambda study=peer: study.optimize(plain, n_trials=trials),
                goal="within",
                target=1.5,
                repeats=repeats,
            )
            for study in (ours, peer):
                study._storage.remove_session()
                study._storage._backend.engine.dispose()
