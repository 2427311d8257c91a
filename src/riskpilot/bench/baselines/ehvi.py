"""Expected hypervolume improvement by BoTorch (``pip install riskpilot[baselines]``)."""

import math
import warnings
from typing import Any

import numpy as np
import torch

from riskpilot.bench.baselines.sequential import History, SequentialSampler
from riskpilot.common.arrays import FloatArray
from riskpilot.study import Space, n_values

with warnings.catch_warnings():
    # A dependency of BoTorch compiles a function by torch's older way when it is imported.
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
    from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.gp_regression import SingleTaskGP
    from botorch.models.model_list_gp_regression import ModelListGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim.optimize import optimize_acqf, optimize_acqf_discrete
    from botorch.sampling.normal import SobolQMCNormalSampler
    from botorch.utils.multi_objective.box_decompositions.non_dominated import (
        FastNondominatedPartitioning,
    )
    from botorch.utils.sampling import manual_seed
    from gpytorch.mlls import SumMarginalLogLikelihood  # type: ignore[import-untyped]


_SAMPLES = 128  # as in BoTorch's tutorial
_SAME = 1e-4


class EHVISampler(SequentialSampler):
    """The configuration with the largest expected hypervolume improvement over what was observed.

    The reference point holds the worst value observed of each objective, as in the paper. One
    Gaussian process per objective, with the noise of the observations where it is known. A space
    with a discrete parameter is searched over points that cover it, choices as indicator columns;
    a continuous one by gradients, from the best ``restarts`` of ``raw_samples`` points. Trials
    under way count as pending points.
    """

    def __init__(
        self,
        *,
        n_startup_trials: int = 5,
        seed: int | None = None,
        restarts: int = 10,
        raw_samples: int = 512,
    ) -> None:
        super().__init__(n_startup_trials=n_startup_trials, seed=seed)
        self._restarts = restarts
        self._raw_samples = raw_samples

    def propose(self, history: History, seed: int) -> dict[str, Any]:
        space = history.space
        with manual_seed(seed), warnings.catch_warnings():
            # BoTorch warns when it adds jitter or starts anew; it then goes on by itself.
            for message in ("A not p.d.", "Optimization failed"):
                warnings.filterwarnings("ignore", message, RuntimeWarning)
            acquisition = expected_improvement(
                space.encode(history.points()),
                history.values,
                history.variances,
                space.encode(history.pending_points()),
                seed,
            )
            if all(n_values(dist) == math.inf for dist in space.distributions.values()):
                d = len(space.distributions)
                best = maximise(acquisition, d, self._restarts, self._raw_samples)
                return space.config(best)
            taken = np.vstack([history.points(), history.pending_points()])
            candidates = _untaken(space.cover(np.random.default_rng(seed)), taken)
            chosen = _best_of(acquisition, space, candidates)
        return {} if chosen is None else space.config(chosen)


def expected_improvement(
    x: FloatArray, values: FloatArray, variances: FloatArray, pending: FloatArray, seed: int
) -> Any:
    """Fit the model and set up the acquisition function; arrays as in `History`, x encoded."""
    inputs = torch.tensor(x)
    targets = -torch.tensor(values)  # BoTorch maximises
    model = _fit(inputs, targets, torch.tensor(variances))
    worst = targets.min(dim=0).values
    boxes: Any = FastNondominatedPartitioning(ref_point=worst, Y=targets)
    return qLogExpectedHypervolumeImprovement(
        model=model,
        ref_point=worst,
        partitioning=boxes,
        sampler=SobolQMCNormalSampler(sample_shape=torch.Size([_SAMPLES]), seed=seed),
        X_pending=torch.tensor(pending) if len(pending) else None,
    )


def maximise(acquisition: Any, d: int, restarts: int, raw_samples: int) -> FloatArray:
    """Find the best point of the unit cube, shape (d,)."""
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    best, _ = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=restarts, raw_samples=raw_samples
    )
    point: FloatArray = best[0].numpy()
    return point


def _fit(inputs: Any, targets: Any, variances: Any) -> Any:
    """Fit one Gaussian process per objective, with the noise that is known."""
    models = [
        SingleTaskGP(
            inputs,
            targets[:, [i]],
            None if variances[:, i].isnan().any() else variances[:, [i]],
            outcome_transform=Standardize(m=1),
        )
        for i in range(targets.shape[1])
    ]
    model = ModelListGP(*models)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    return model


def _best_of(acquisition: Any, space: Space, candidates: FloatArray) -> FloatArray | None:
    """Choose the best of some points, shape (d,); None where there is none."""
    if not len(candidates):
        return None
    choices = torch.tensor(space.encode(candidates))
    best, _ = optimize_acqf_discrete(acquisition, q=1, choices=choices)
    at = int((choices - best).abs().sum(dim=1).argmin())
    chosen: FloatArray = candidates[at]
    return chosen


def _untaken(candidates: FloatArray, taken: FloatArray) -> FloatArray:
    """Leave out points that were tried."""
    gaps: FloatArray = np.abs(candidates[:, None] - taken[None]).max(axis=2).min(axis=1)
    return np.asarray(candidates[gaps > _SAME])
