"""The criterion of every Monte Carlo test: an exact binomial tail."""

import numpy as np
from scipy.stats import binom

# The suite makes some hundreds of comparisons; a false alarm in any of them is rarer than 1e-4.
FALSE_ALARM = 1e-7
LEVELS = (0.01, 0.05, 0.1, 0.2, 0.5)


def assert_rate_at_most(level, events, replications):
    """Fail where so many events are next to impossible at a true rate of ``level``."""
    tail = binom.sf(int(events) - 1, int(replications), level)
    assert tail > FALSE_ALARM, (
        f"{events} of {replications} = {events / replications:.4f}, which a rate of at most "
        f"{level} gives with probability {tail:.1e}"
    )


def shows_rate_above(level, events, replications):
    """Whether so many events prove a rate above ``level``: what the naive way has to show."""
    return binom.sf(int(events) - 1, int(replications), level) < FALSE_ALARM


def assert_super_uniform(log_p, levels=LEVELS):
    """P(p <= u) <= u at every level, for independent replications ``log_p``, shape (r,)."""
    log_p = np.asarray(log_p)
    assert not np.isnan(log_p).any()
    for level in levels:
        assert_rate_at_most(level, (log_p <= np.log(level)).sum(), len(log_p))
