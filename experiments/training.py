"""Searches that train anew for each trial: ``python -m experiments.training --data DIR``.

Boosting on Adult (7 parameters), a network on MNIST (10) and a linear model on the words of AG News
(20), each with two limits. The guided search, the paper's own and samplers of Optuna begin at the
same safe configuration and evaluate equally often, and `riskpilot.select` chooses from what each of
them evaluated. What counts is the free objective of the choice on test.
"""

import os
import sys
import warnings
from functools import partial
from pathlib import Path

import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler

import riskpilot as rp
from experiments.side_by_side import (
    Comparison,
    at_random,
    constrained,
    guided,
    nsga2,
    penalised,
    tpe,
)
from experiments.trained_tasks import DATA, TASKS

OUT = Path(__file__).parent / "results" / "training.json"


def papers_own(problem: rp.Problem, seed: int) -> BaseSampler:
    """The paper's own search."""
    return rp.GuidedSampler(problem, strategy=rp.PAPER, seed=seed)


def gaussian_process(seed: int) -> BaseSampler:
    """Optuna's own Gaussian process, which takes constraints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return GPSampler(seed=seed, deterministic_objective=False)


def cma_es(seed: int) -> BaseSampler:
    """CMA-ES on the parameters that are numbers; the others are drawn at random."""
    return CmaEsSampler(seed=seed, warn_independent_sampling=False)


COMPARISON = Comparison(
    TASKS,
    (),
    {
        "guided": guided,
        "paper's search": partial(guided, kind=papers_own),
        "TPE": partial(constrained, make=tpe),
        "GPSampler": partial(constrained, make=gaussian_process),
        "NSGA-II": partial(constrained, make=nsga2),
        "CMA-ES": partial(penalised, make=cma_es),
        "random": partial(constrained, make=at_random),
    },
    peers=("TPE", "GPSampler", "NSGA-II", "CMA-ES", "random"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--data" in given:  # by the environment, so that the processes of the pool see it, too
        at = given.index("--data")
        os.environ[DATA] = given[at + 1]
        del given[at : at + 2]
    COMPARISON.main("experiments.training", __doc__, OUT, 10, given)


if __name__ == "__main__":
    main()
