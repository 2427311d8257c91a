"""One proposal: fit and acquisition, two objectives."""

from collections.abc import Iterator

import numpy as np
import optuna
from optuna.samplers import BaseSampler, GPSampler
from optuna.trial import TrialState

import riskpilot as rp
from benchmarks.measure import Row, compare
from riskpilot.bench.baselines.ehvi import EHVISampler
from riskpilot.bench.baselines.random import RandomSampler
from riskpilot.bench.tasks.synthetic import synthetic

PEERS = {"Optuna GPSampler": 10.0, "BoTorch qLogEHVI": 20.0}
SIZES = [(d, n) for d in (1, 3) for n in (10, 20, 50, 200)] + [(20, 200), (20, 1_000)]

_MOST = 200  # beyond so many trials a proposal by BoTorch takes minutes


def rows(quick: bool) -> Iterator[Row]:
    for d, n in [(1, 10)] if quick else SIZES:
        study = history(d, n)
        for peer, target in PEERS.items():
            if n > _MOST and peer != "Optuna GPSampler":
                continue
            yield compare(
                f"proposal, d={d}, n={n}",
                peer,
                lambda study=study: ask(study, ours(study)),  # type: ignore[misc]
                lambda study=study, peer=peer: ask(study, sampler(peer)),  # type: ignore[misc]
                goal="faster",
                target=target,
                repeats=1 if quick else 3,
            )


def history(d: int, n: int) -> optuna.Study:
    """A study with ``n`` finished trials at random places."""
    task = synthetic(d)
    problem = task.problem.with_limits(risk1=0.16)
    study = rp.create_study(problem, sampler=RandomSampler(seed=d))
    study.optimize(rp.objective(study, task.evaluate), n_trials=n)
    study.set_user_attr("space", sorted(task.space))
    return study


def ours(study: optuna.Study) -> BaseSampler:
    problem = rp.Problem.from_dict(study.user_attrs["riskpilot:problem"])
    return rp.GuidedSampler(problem, n_startup_trials=5, seed=0)


def sampler(peer: str) -> BaseSampler:
    if peer == "Optuna GPSampler":
        return GPSampler(n_startup_trials=5, seed=0)
    return EHVISampler(n_startup_trials=5, seed=0)


def ask(study: optuna.Study, sampler: BaseSampler) -> None:
    """A proposal by the usual way, through Optuna's ask; the trial leaves no result behind."""
    study.sampler = sampler
    trial = study.ask()
    values = [trial.suggest_float(name, 0.0, 1.0) for name in study.user_attrs["space"]]
    if not np.isfinite(values).all():
        raise ValueError(f"A proposal must be finite, but it is {values}.")
    study.tell(trial, state=TrialState.PRUNED)  # a failed one would count as tried
