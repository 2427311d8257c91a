"""Where to evaluate next, as functions of arrays: surrogates, hypervolume, acquisition."""

from riskpilot.search.acquisition import Front, Observations, Reference, Scale

__all__ = ["Front", "Observations", "Reference", "Scale"]
