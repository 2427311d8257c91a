"""What a search is worth in tree-shaped spaces: ``python -m experiments.trees``.

Some parameters exist under a condition alone, such as the depth of a tree where the model is one.
The guided search, the same without a model of such parameters, and samplers of Optuna are run from
the same safe configuration for the same number of evaluations, and `riskpilot.select` chooses from
what each of them evaluated. What counts is the free objective of the choice on test.
"""

from functools import partial
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial

import riskpilot as rp
from experiments.side_by_side import Comparison, at_random, constrained, guided, nsga2, tpe
from experiments.tree_tasks import TASKS, TUNING
from riskpilot.search import default_pool_size

OUT = Path(__file__).parent / "results" / "trees.json"


class SharedOnly(rp.GuidedSampler):
    """The guided search without branches: it models what all trials have in common."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        shared = intersection_search_space(study.get_trials(deepcopy=False))
        return {} if trial.number < default_pool_size(len(shared), has_choices=True) else shared


COMPARISON = Comparison(
    TASKS,
    TUNING,
    {
        "guided": guided,
        "guided, shared parameters": partial(guided, kind=SharedOnly),
        "TPE": partial(constrained, make=tpe),
        "NSGA-II": partial(constrained, make=nsga2),
        "random": partial(constrained, make=at_random),
    },
    peers=("TPE", "NSGA-II", "random"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run every search and write the figures."""
    COMPARISON.main("experiments.trees", __doc__, OUT, 6, arguments)


if __name__ == "__main__":
    main()
