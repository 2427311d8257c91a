"""The families of p-values that a risk may ask for, as the registry has them, on plain losses."""

from types import SimpleNamespace

import numpy as np

from riskpilot.statistics.families import FAMILIES, P_VALUES, family_named

OFFERED = P_VALUES[1:]
FROM_SUMS = [f.name for f in FAMILIES if f.offered and f.log_p_from_sums is not None]


def log_p(name, losses, limit, delta=0.1):
    """Log p-values of the rows of ``losses``; NaN entries do not count."""
    family, losses = family_named(name), np.asarray(losses, float)
    if family.log_p_from_sums is None:
        conditional = bool(np.isnan(losses).any())
        return family.log_p_by_parts(
            lambda rows, times: losses[rows, times],
            losses.shape,
            limit,
            delta,
            None,
            conditional=conditional,
        )
    n = (~np.isnan(losses)).sum(axis=1)
    return log_p_of_sum(name, np.nansum(losses, axis=1), n, limit, (losses > 0).sum(axis=1))


def log_p_of_sum(name, total, n, limit, above_zero=None):
    """Log p-values from sums of losses; those of 0/1 losses where no other count is given."""
    above_zero = total if above_zero is None else above_zero
    sums = SimpleNamespace(total=total, n=n, above_zero=above_zero)
    return family_named(name).log_p_from_sums(sums, limit)
