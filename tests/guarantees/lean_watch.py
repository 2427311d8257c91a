"""The capital of many watches at once, without what a watch keeps to say when a risk changed.

A watch remembers for every bet where it would best have begun, which takes most of its time. Here
are the same steps in the same order without that, for tests with many long streams. That both raise
the same alarms, at the same labels, is tested in test_watch_valid.py.
"""

import numpy as np

CEILING = 1e250


class LeanWatches:
    """The streams of a rule, each a replication of its own."""

    def __init__(self, rule):
        self.rule = rule
        self.capital = (1 - rule.reserve) * rule.prior_array
        self.recent = rule.limit_array.copy()
        self.restarts = np.zeros(rule.n_streams, np.int64)
        self.reserve = rule.reserve_after(self.restarts)
        self.rows = 0
        self.alarms = np.zeros(rule.n_streams, np.int64)  # the label of the first one, or 0

    @property
    def wealth(self):
        return np.add.reduce(self.capital, axis=1) + self.reserve

    def take(self, values, weights=None, scores=None):
        """Take the next labels, shape (b, streams); as `riskpilot.watch.update` takes them."""
        rule = self.rule
        counted = ~np.isnan(values)
        x = np.where(counted, values, rule.limit_array)
        above = x - rule.limit_array
        if weights is not None:
            above *= np.where(counted, weights, 0.0)
            x = rule.limit_array + above
        for t in range(len(x)):
            gains = above[t, :, None]
            if scores is not None:
                gains = gains - rule.judge_array * np.where(counted[t], scores[t], 0.0)[:, None]
            factors = rule.bet_array * gains
            factors += 1
            self.capital *= factors
            np.minimum(self.capital, CEILING, out=self.capital)
            self.recent += rule.forgetting_array * counted[t] * (x[t] - self.recent)
            paid = (self.recent > rule.limit_array) & counted[t]
            if paid.any():
                self.restarts += paid
                left = rule.reserve_after(self.restarts)
                self.capital += (self.reserve - left)[:, None] * rule.prior_array
                self.reserve = left
            self.rows += 1
            reached = (self.wealth >= rule.threshold_array) & (self.alarms == 0)
            if reached.any():
                self.alarms[reached] = self.rows
