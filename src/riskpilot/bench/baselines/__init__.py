"""Other ways to search, for comparison: each is an Optuna sampler for `riskpilot.create_study`.

Those that need an extra package live in modules of their own: `ehvi` (BoTorch) and `parego`
(SMAC3). Plain hypervolume improvement and the one-sided region are
strategies of `riskpilot.GuidedSampler` (`riskpilot.HVI`, `riskpilot.ONE_SIDED`).
"""

from riskpilot.bench.baselines.grid import GridSampler
from riskpilot.bench.baselines.latin import LatinHypercubeSampler
from riskpilot.bench.baselines.practice import ConstrainedSampler, best_feasible
from riskpilot.bench.baselines.random import RandomSampler

__all__ = [
    "ConstrainedSampler",
    "GridSampler",
    "LatinHypercubeSampler",
    "RandomSampler",
    "best_feasible",
]
