"""Where to evaluate next, as functions of arrays: surrogates, hypervolume, strategies, scores."""

from riskpilot.search.acquisition import has_passing, score
from riskpilot.search.choices import Front, Reference, Scale, guided_reference
from riskpilot.search.foretelling import Guess, filled, foretold, foretold_number, is_odd_order
from riskpilot.search.hypervolume import hypervolume_improvement
from riskpilot.search.model import (
    ENOUGH_TO_SMOOTH,
    MOST_OBSERVATIONS,
    Model,
    Observations,
    cautious_values,
    fit_model,
    values_and_variances,
)
from riskpilot.search.outlook import Outlook, Whole, best_rows, has_unusual_doubt, outlook
from riskpilot.search.penalties import cut_at, penalised, without_penalties
from riskpilot.search.pools import Pool, default_pool_size, uniform
from riskpilot.search.racing import is_known_well, is_worth_finishing
from riskpilot.search.representatives import representative_rows
from riskpilot.search.strategies import (
    GUIDED,
    HVI,
    ONE_SIDED,
    PAPER,
    Strategy,
    check_delta_prime,
    check_hedge,
    without_limits,
)
from riskpilot.search.surrogate import Surrogate

__all__ = [
    "ENOUGH_TO_SMOOTH",
    "GUIDED",
    "HVI",
    "MOST_OBSERVATIONS",
    "ONE_SIDED",
    "PAPER",
    "Front",
    "Guess",
    "Model",
    "Observations",
    "Outlook",
    "Pool",
    "Reference",
    "Scale",
    "Strategy",
    "Surrogate",
    "Whole",
    "best_rows",
    "cautious_values",
    "check_delta_prime",
    "check_hedge",
    "cut_at",
    "default_pool_size",
    "filled",
    "fit_model",
    "foretold",
    "foretold_number",
    "guided_reference",
    "has_passing",
    "has_unusual_doubt",
    "hypervolume_improvement",
    "is_known_well",
    "is_odd_order",
    "is_worth_finishing",
    "outlook",
    "penalised",
    "representative_rows",
    "score",
    "uniform",
    "values_and_variances",
    "without_limits",
    "without_penalties",
]
