"""Capital that grows when a risk is above its limit, whenever that begins.

The null hypothesis of a stream of values x_t in [0, 1] is

    H0: E[x_t | past] <= limit at every moment t.

The means may wander below the limit, and the values may depend on the past in any way.

Why the alarm is valid. The capital is 1 at first: the reserve, and accounts that belong to the bets
b_1, ..., b_G. Label t multiplies account j by 1 + b_j (x_t - limit). As 0 <= b_j < 1 / limit, that
factor is positive, and under H0 its mean given the past is at most 1. After each label some of the
reserve, as the labels until then decide, moves into the accounts: that changes no sum.
So the accounts and the reserve together are a nonnegative supermartingale that starts at 1, and by
Ville's inequality they ever reach 1 / delta with probability at most delta.

Why it forgets. What moves into an account after label s is a bet that starts anew there: account j
holds the sum over all s of weight_s times the product of 1 + b_j (x_i - limit) over i > s, and the
weights sum to at most 1. All restarts of a bet are multiplied by the same factor, so that their sum
is one number. No restart is ever dropped or merged with another one at a loss, and an update costs
the same after a million labels as after one.

When restarts are paid. After label s, a restart is paid only if the recent mean is above the limit:
a restart in the middle of a good time would lose its capital. What is left of the reserve falls
like 1 / log r in the number r of restarts, so that restart r gets about 1 / (r (log r)^2), and
all of them together get the reserve, however long the watch lives. After a change the alarm waits
until the evidence since then is log(1 / (delta weight)). That grows with the logarithm of the
number of restarts paid before, and good times pay few.

Why a judge may help. Let F be a judge's score of the labelled example, and G the mean of its scores
of fresh examples of the same moment that belong to this label alone. Given the past both have the
same mean, whatever the judge is worth, and G is independent of the label. So x_t - rho (F - G) has
the mean of x_t for every rho, and where F goes along with x_t it varies less. An account with a
weight rho is multiplied by 1 + b_j (x_t - rho (F - G) - limit), which is positive for
b_j < 1 / (limit + rho) and has a mean of at most 1 under H0. Some accounts have rho = 0 throughout.

Where an account would overflow, which takes a capital far beyond any alarm, it is cut. That only
lowers the capital.
"""

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import LossError, LossRangeError
from riskpilot.watch.rule import Rule
from riskpilot.watch.state import (
    COUNT,
    MASS,
    N_SUMS,
    ROWS,
    SPREAD,
    TOTAL,
    Alarm,
    State,
    best_segment,
)

_CEILING = 1e250
_CHUNK = 100_000  # numbers of one kind that are held at a time


def update(
    rule: Rule,
    state: State,
    values: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    scores: npt.ArrayLike | None = None,
) -> State:
    """Take the next labels in the order in which they came.

    One call with many labels and many calls with one label give the same state to the last bit.

    Parameters
    ----------
    rule : Rule
        The limits and bets that the watch began with.
    state : State
        What `begin` or the last update returned.
    values : array of shape (b, K)
        The value of each label in each stream, in [0, 1]; NaN where it does not count there.
    weights : array of shape (b, K), optional
        Weights of the labels as shares of the largest weight that there can be, in [0, 1]. Needed
        if the rule says that a stream has weights; those of other streams are passed over.
    scores : array of shape (b, K), optional
        Where the rule says that a judge helps: its score of each label less the mean of its scores
        of the fresh examples that belong to this label alone, in [-1, 1]; 0 where there are none.

    Returns
    -------
    State
        The state after these labels. The one passed in is left as it was.

    Raises
    ------
    LossError
        Where the arrays have other shapes, or a weight is not a number in [0, 1].
    LossRangeError
        Where a value is outside [0, 1].

    Examples
    --------
    >>> from riskpilot.watch import begin, make_rule
    >>> rule = make_rule([0.1])
    >>> state = update(rule, begin(rule), np.ones((5, 1)))
    >>> state.alarms[0].row
    3
    """
    x = _checked_values(values, rule.n_streams)
    w = _checked_weights(rule, weights, x)
    accounts = Accounts(rule, state)
    accounts.take(x, w, _checked_scores(rule, scores, x))
    return accounts.state()


def wealth(rule: Rule, state: State) -> FloatArray:
    """Compute the capital of each stream, its reserve included.

    Parameters
    ----------
    rule : Rule
        The limits and bets.
    state : State
        What `begin` or `update` returned.

    Returns
    -------
    array of shape (K,)
        An alarm is raised where it reaches ``rule.threshold_array``.
    """
    return np.asarray(state.capital.sum(axis=1) + rule.reserve_after(state.restarts))


def _checked_values(values: npt.ArrayLike, n_streams: int) -> FloatArray:
    """Return the values as an array of shape (b, K), if they lie in [0, 1] or are NaN."""
    x = np.ascontiguousarray(values, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != n_streams:
        raise LossError(
            f"Values of labels have the shape (labels, {n_streams}), one column for each stream, "
            f"but the shape is {x.shape}. Reshape them; a single label has the shape "
            f"(1, {n_streams})."
        )
    outside = (x < 0) | (x > 1)  # NaN is neither
    if np.count_nonzero(outside):
        raise LossRangeError(
            f"Values of labels lie in [0, 1] after they are mapped to the unit scale, but they "
            f"reach from {np.nanmin(x)} to {np.nanmax(x)}. Declare the range of the losses "
            f"with low= and high= before the watch begins."
        )
    return x


def _checked_scores(
    rule: Rule, scores: npt.ArrayLike | None, values: FloatArray
) -> FloatArray | None:
    """Return the scores of a judge as an array of the shape of the values, if they can be used."""
    if scores is None:
        return None
    found = np.asarray(scores, dtype=np.float64)
    if found.shape != values.shape or not (np.abs(found) <= 1).all() or not rule.judged:
        raise LossError(
            f"Scores of a judge less those of fresh examples lie in [-1, 1] and have the shape of "
            f"the values, {values.shape}, where a judge helps, but theirs is {found.shape}, or one "
            f"lies outside. Give 0 where there are none."
        )
    return found


def _checked_weights(rule: Rule, weights: npt.ArrayLike | None, x: FloatArray) -> FloatArray | None:
    """Return the weights, 0 where a value does not count; None where no stream has weights."""
    if (weights is not None) != any(rule.weighted):
        raise LossError(
            f"Weights belong to streams that were declared to have them, but weights are "
            f"{'missing' if weights is None else 'given'} and the declaration is "
            f"{rule.weighted}. Declare it before the watch begins: make_rule(..., weighted=...)."
        )
    if weights is None:
        return None
    w = np.ascontiguousarray(weights, dtype=np.float64)
    if w.shape != x.shape:
        raise LossError(
            f"Every value has a weight, but there are values of shape {x.shape} and weights of "
            f"shape {w.shape}. Give weights of the same shape."
        )
    counted = ~np.isnan(x)
    w = np.where(rule.weighted, w, 1.0)
    if not ((w >= 0) & (w <= 1))[counted].all():
        raise LossError(
            "A weight is a share of the largest weight that there can be, in [0, 1], but one that "
            "counts is not. Divide by the largest weight that was declared when the watch began; "
            "for sampled labels that is 1 / (the smallest sampling probability)."
        )
    return np.where(counted, w, 0.0)


class Accounts:
    """The state while labels are taken, in arrays of its own that are written to.

    Whoever takes labels one by one keeps it, and asks for the state where it is needed. ``rows``:
    how many labels there were. ``alarms``: the first alarm of each stream.
    """

    def __init__(self, rule: Rule, state: State) -> None:
        self.rows = state.rows
        self.alarms = state.alarms
        self._rule = rule
        self._sums = state.sums.copy()
        self._recent = state.recent.copy()
        self._restarts = state.restarts
        self._reserve = rule.reserve_after(state.restarts)
        self._both = np.stack((state.capital, state.rise))  # they are multiplied alike
        self._capital, self._rise = self._both
        self._starts = state.starts.copy()

    def state(self) -> State:
        """Return the state after the labels that were taken, in arrays of its own."""
        return State(
            self._sums.copy(),
            self._recent.copy(),
            self._restarts,
            self._capital.copy(),
            self._rise.copy(),
            self._starts.copy(),
            self.alarms,
        )

    def wealth(self) -> FloatArray:
        """Compute the capital of each stream, its reserve included."""
        return np.asarray(np.add.reduce(self._capital, axis=1) + self._reserve)

    def sums(self) -> FloatArray:
        """Return the sums of each stream, shape (K, 5)."""
        return self._sums.copy()

    def take(
        self, values: FloatArray, weights: FloatArray | None, scores: FloatArray | None = None
    ) -> None:
        """Take some labels, shape (b, K), one after the other.

        They must be as `update` demands, and weights are 0 where a value does not count; nothing is
        checked here.
        """
        step = max(1, _CHUNK // self._rule.bet_array.size)
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            w, z = (None if one is None else one[part] for one in (weights, scores))
            self._take(values[part], w, z)
        self.rows += len(values)

    def _take(
        self, values: FloatArray, weights: FloatArray | None, scores: FloatArray | None
    ) -> None:
        """Take so many labels that what is computed for all of them fits into memory."""
        limits, forgetting = self._rule.limit_array, self._rule.forgetting_array
        counted = ~np.isnan(values)
        # A value at the limit multiplies every account by exactly 1.
        x = np.where(counted, values, limits)
        above = x - limits
        if weights is not None:
            # E[w (loss - limit)] <= 0 says that limit + w (loss - limit), which lies in [0, 1] as
            # the loss does, has a mean of at most the limit.
            above *= weights
            x = limits + above
        gains = above[:, :, None]
        if scores is not None:
            gains = gains - self._rule.judge_array * np.where(counted, scores, 0.0)[:, :, None]
        factors = self._rule.bet_array * gains
        factors += 1
        added = np.empty((*x.shape, N_SUMS))  # the spread needs the recent mean before each label
        added[:, :, ROWS] = 1
        added[:, :, COUNT] = counted
        np.multiply(x, counted, out=added[:, :, TOTAL])
        added[:, :, MASS] = counted if weights is None else weights
        shares = forgetting * counted
        for t in range(len(x)):
            self._bet(factors[t])
            self._remember(x[t], counted[t], shares[t], added[t])
            self._restart(counted[t])
            self._look_for_starts()
            self._look_for_alarms()

    def _bet(self, factors: FloatArray) -> None:
        """Multiply every account by its factor, shape (K, G)."""
        self._both *= factors
        np.minimum(self._both, _CEILING, out=self._both)

    def _remember(
        self, x: FloatArray, counted: BoolArray, shares: FloatArray, added: FloatArray
    ) -> None:
        """Add a label to the sums, and move the recent mean towards it."""
        deviations = x - self._recent
        self._recent += shares * deviations
        deviations *= deviations
        np.multiply(deviations, counted, out=added[:, SPREAD])
        self._sums += added

    def _restart(self, counted: BoolArray) -> None:
        """Pay a restart to every stream whose recent mean is above its limit."""
        is_paid = self._recent > self._rule.limit_array
        is_paid &= counted
        if np.count_nonzero(is_paid):
            self._restarts = self._restarts + is_paid
            left = self._rule.reserve_after(self._restarts)
            self._capital += (self._reserve - left)[:, None] * self._rule.prior_array
            self._reserve = left

    def _look_for_starts(self) -> None:
        """Move the best moment of bets that have lost since then to now.

        That moment is where the test by cumulative sums puts the change.
        """
        is_start = self._rise < 1
        if np.count_nonzero(is_start):
            np.copyto(self._starts, self._sums[:, None], where=is_start[:, :, None])
            np.maximum(self._rise, 1.0, out=self._rise)

    def _look_for_alarms(self) -> None:
        """Note an alarm of every stream that reaches its threshold for the first time."""
        reached = np.add.reduce(self._capital, axis=1) + self._reserve >= self._rule.threshold_array
        if not np.count_nonzero(reached):
            return
        had = {alarm.stream for alarm in self.alarms}
        self.alarms += tuple(
            Alarm(
                stream,
                int(self._sums[stream, ROWS]),
                best_segment(self._rule, stream, self._rise, self._starts, self._sums),
            )
            for stream in reached.nonzero()[0].tolist()
            if stream not in had
        )
