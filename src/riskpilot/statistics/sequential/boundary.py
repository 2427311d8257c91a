"""The exact boundary for 0/1 losses that are labelled one after another, up to a horizon.

The null hypothesis is H: P(loss = 1) > limit. Before the first label it is fixed how much of the
tolerance delta may have been spent after t of m labels: f(t), by default delta (t / m)^2. With S_t
the number of losses among the first t labels, the critical counts c_1 <= c_2 <= ... are the largest
ones for which

    P_limit(S_s <= c_s for some s <= t) <= f(t)    for every t,

where P_limit has independent losses with P(loss = 1) = limit. A configuration is certified at the
first t with S_t <= c_t, so that the probability to certify one at the limit is at most
f(m) <= delta, whenever one looks and whenever one stops. Above the limit it is smaller still:
losses with P(loss_t = 1 | past) >= limit can be coupled with losses at the limit that are never
larger, and fewer losses never leave the crossed region. Losses may be replaced by larger 0/1 ones
for the same reason; any loss in [0, 1] is tested validly by whether it is above 0.

**Only some losses count** (a condition, a group). Then S_t is a sum over the labels that count.
Examples are independent and the configuration is frozen, so that whether a label counts does not
depend on the losses before it. Given which labels count, their losses are then independent with the
conditional risk, and the same computation, carried out for the labels that counted so far, keeps
P(crossed | which count) <= f(t) for every pattern, and with it on average. The boundary is then one
for each pattern, and is walked on label by label: what counts later never changes what has been
decided.

**The computation** follows q_t(k) = P_limit(S_t = k and not crossed by t), one number for each
count. A label moves the share ``limit`` of each number up by one; then numbers are taken away from
the bottom as long as what has been taken stays within f(t). Counts that no boundary within delta
can ever reach are not followed at all, since nothing moves down. The far upper tail is cut off now
and then to save time, and what is cut off counts as spent. All numbers are sums and products of
positive numbers, whose relative rounding error after t labels is at most 4 t machine epsilons; f
is reduced by more than that and all cuts together, for up to five million labels. The inequality
therefore holds as stated, not approximately.

The time grows a little faster than the number of labels: a hundred thousand of them take a quarter
of a second, two million about ten seconds. Horizons end there, because whoever reads a saved
calibration, or verifies a certificate, computes its boundaries again, and trusts neither before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtrik

from riskpilot.common.arrays import BoolArray, FloatArray, IntArray
from riskpilot.errors import ProblemError, shown

Spending = Callable[[FloatArray], FloatArray]

MOST_LABELS = 2_000_000  # of all boundaries that are computed for one plan, together
_CUT_EVERY = 100  # labels between two cuts of the upper tail
_CUT = 1e-13  # what a cut may cost, as a share of the error that is allowed by then
# f is reduced by this share: twice the rounding and the cuts of five million labels.
_RESERVE = 2 * 5_000_000 * (4 * float(np.finfo(np.float64).eps) + _CUT / _CUT_EVERY)
_TINY = 1e-290  # more than what products of positive numbers can lose by underflow


def quadratic(share: FloatArray) -> FloatArray:
    """Spend little of delta early: the share of it that may be spent after a share of the labels.

    >>> quadratic(np.array([0.5, 1.0]))
    array([0.25, 1.  ])
    """
    return np.asarray(share**2)


def allowed_errors(delta: float, horizon: int, spending: Spending = quadratic) -> FloatArray:
    """f(1), ..., f(m): the error that may have been spent after each label.

    Parameters
    ----------
    delta : float
        The tolerance, spent completely at the horizon.
    horizon : int
        m, the largest number of labels.
    spending : function
        The share of delta that may be spent after a share of the labels: it maps (0, 1] to [0, 1]
        and never falls.

    Returns
    -------
    array of shape (m,)
        Never falling, at most ``delta``.

    Raises
    ------
    ProblemError
        Where delta is no probability, the horizon no positive number, or the spending falls or
        leaves [0, 1].

    Examples
    --------
    >>> allowed_errors(0.1, 4)
    array([0.00625, 0.025  , 0.05625, 0.1    ])
    """
    _check_delta(delta)
    check_labels(horizon)
    shares = np.asarray(spending(np.arange(1, horizon + 1) / horizon), dtype=np.float64)
    fine = shares.shape == (horizon,) and bool((np.diff(shares) >= 0).all())
    if not fine or not (shares[0] >= 0 and shares[-1] <= 1):
        raise ProblemError(
            "A spending function maps shares of the horizon to shares of delta, both in [0, 1], "
            "and never falls, but this one does not. Use one such as `lambda share: share**2`."
        )
    return delta * shares


@dataclass(frozen=True)
class Walk:
    """Where the boundary stands after some labels.

    Attributes
    ----------
    limit : float
        The limit on the risk, in (0, 1).
    labels : int
        Labels so far, counted or not.
    critical : int
        The critical count now; -1 where even no loss at all has not been enough so far.
    most : int
        The largest count from which the boundary could still be crossed before the horizon.
    alive : array
        P_limit(S = k, not crossed) for k = critical + 1, critical + 2, ...
    spent : float
        P_limit(crossed so far), an upper bound.
    """

    limit: float
    labels: int
    critical: int
    most: int
    alive: FloatArray
    spent: float


@dataclass(frozen=True)
class Boundary:
    """Critical counts and the error they have spent, after each label.

    Attributes
    ----------
    limit : float
        The limit on the risk, in (0, 1).
    critical : array of int, shape (m,)
        A path crosses at label t where its count is at most ``critical[t - 1]``; -1 where no
        count is small enough.
    spent : array of shape (m,)
        P_limit(crossed by then), the p-value of a path that crosses at that label.
    """

    limit: float
    critical: IntArray
    spent: FloatArray

    @property
    def horizon(self) -> int:
        """How many labels the boundary is for."""
        return len(self.critical)


def start_walk(limit: float, delta: float, horizon: int) -> Walk:
    """The boundary before the first label.

    Parameters
    ----------
    limit : float
        The limit on the risk, on the unit scale, in (0, 1).
    delta : float
        The largest error that will ever be allowed.
    horizon : int
        The largest number of labels.

    Returns
    -------
    Walk
        With all probability at a count of 0.

    Raises
    ------
    ProblemError
        Where the limit does not lie in (0, 1).
    """
    if not 0 < limit < 1:
        raise ProblemError(
            f"A boundary needs a limit in (0, 1) on the unit scale of the losses, but it is "
            f"{limit!r}. At 0 nothing can be shown, and at 1 there is nothing to show."
        )
    return Walk(float(limit), 0, -1, largest_critical(limit, delta, horizon), np.ones(1), 0.0)


def advance(
    walk: Walk, allowed: FloatArray, counts: BoolArray | None = None
) -> tuple[Walk, IntArray, FloatArray]:
    """Walk the boundary on by some labels.

    Parameters
    ----------
    walk : Walk
        Where it stands.
    allowed : array of shape (b,)
        The error that may have been spent after each of the next b labels; never falling.
    counts : array of bool, shape (b,), optional
        Which of these labels count; all where None.

    Returns
    -------
    walk : Walk
        Where it stands afterwards.
    critical : array of int, shape (b,)
        The critical count after each label.
    spent : array of shape (b,)
        The probability at the limit to have crossed by each label.
    """
    limit, steps = walk.limit, len(allowed)
    low, high = walk.critical + 1, walk.critical + 1 + len(walk.alive)  # counts low, ..., high - 1
    top = max(walk.most + 1, high)  # counts from here on are not followed
    alive = np.zeros(top)
    alive[low:high] = walk.alive
    spent, label = walk.spent, walk.labels
    critical, errors = np.empty(steps, np.int64), np.empty(steps)
    for step, budget in enumerate(allowed.tolist()):
        label += 1
        if counts is None or counts[step]:
            high = min(high + 1, top)
            band = alive[low:high]
            moved = band[:-1] * limit
            band *= 1 - limit
            band[1:] += moved
        room = budget * (1 - _RESERVE) - _TINY
        while low < high and spent + alive[low] <= room:
            spent += float(alive[low])
            low += 1
        if label % _CUT_EVERY == 0 and high - low > 1:
            tail = np.add.accumulate(alive[low:high][::-1])
            cut = int(np.searchsorted(tail, _CUT * budget))
            if 0 < cut < high - low:
                spent += float(tail[cut - 1])
                alive[high - cut : high] = 0.0
                high -= cut
        critical[step], errors[step] = low - 1, spent
    after = Walk(limit, label, low - 1, walk.most, alive[low:high].copy(), spent)
    return after, critical, errors


def exact_boundary(
    limit: float,
    delta: float,
    horizon: int,
    *,
    spending: Spending = quadratic,
    counts: BoolArray | None = None,
) -> Boundary:
    """The critical counts of every label up to the horizon.

    Parameters
    ----------
    limit : float
        The limit on the risk, on the unit scale, in (0, 1).
    delta : float
        The tolerance: the largest probability to cross at a risk of ``limit`` or more.
    horizon : int
        m, the largest number of labels.
    spending : function, optional
        The share of delta that may be spent after a share of the labels.
    counts : array of bool, shape (t,), optional
        Which of the first t <= m labels count; the boundary then ends at t.

    Returns
    -------
    Boundary
        Of m labels, or of t where ``counts`` is given.

    Examples
    --------
    >>> boundary = exact_boundary(0.1, 0.1, 1000)
    >>> boundary.critical[[99, 499, 999]].tolist()
    [1, 34, 84]
    """
    if spending is quadratic and counts is None:
        _check_delta(delta)
        check_labels(horizon)
        return _whole_boundary(float(limit), float(delta), int(horizon))
    allowed = allowed_errors(delta, horizon, spending)
    if counts is not None:
        allowed = allowed[: len(counts)]
    _, critical, spent = advance(start_walk(limit, delta, horizon), allowed, counts)
    return Boundary(float(limit), critical, spent)


@lru_cache(maxsize=8)
def _whole_boundary(limit: float, delta: float, horizon: int) -> Boundary:
    """Compute the boundary with the usual spending, where every label counts.

    A calibration needs it before the first label and for every answer, and all risks with the same
    limit share it. Nobody can write to its arrays.
    """
    _, critical, spent = advance(start_walk(limit, delta, horizon), shared_errors(delta, horizon))
    critical.flags.writeable = spent.flags.writeable = False
    return Boundary(limit, critical, spent)


@lru_cache(maxsize=8)
def shared_errors(delta: float, horizon: int) -> FloatArray:
    """Return `allowed_errors` with the usual spending; the same array, which cannot be written to,
    for all risks and groups of a calibration."""
    allowed = allowed_errors(delta, horizon)
    allowed.flags.writeable = False
    return allowed


def largest_critical(limit: float, delta: float, labels: int) -> int:
    """A count that no boundary within delta goes beyond, with so many labels that count.

    P(crossed) >= P(S_m <= c_m), so that c_m is at most the critical count of the binomial test. One
    more than can be needed costs nothing; one too few would cost power, not validity. It is -1
    where even labels without any loss are too few.

    >>> largest_critical(0.1, 0.1, 1000), largest_critical(0.1, 0.1, 21)
    (88, -1)
    """
    if labels < 1 or labels * math.log1p(-limit) > math.log(delta) + 1e-9:
        return -1
    largest = float(bdtrik(delta, labels, limit))
    return min(labels, int(largest) + 1) if math.isfinite(largest) else labels


def check_labels(horizon: int, boundaries: int = 1) -> None:
    """Refuse a horizon for which the boundaries of a plan are not computed.

    Parameters
    ----------
    horizon : int
        The largest number of labels.
    boundaries : int, optional
        How many different boundaries there are.

    Raises
    ------
    ProblemError
        If the horizon is no positive number, or all boundaries together have too many labels.

    Examples
    --------
    >>> check_labels(MOST_LABELS)
    >>> check_labels(MOST_LABELS // 2, boundaries=2)
    """
    most = MOST_LABELS // boundaries
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool | np.timedelta64)
    if whole and 1 <= horizon <= most:
        return
    together = "" if boundaries == 1 else f" with {boundaries} different limits"
    raise ProblemError(
        f"The horizon is the largest number of labels, for the exact boundary of 0/1 losses"
        f"{together} a whole number from 1 to {most:,}, but it is {shown(horizon)}. Use a horizon "
        f"of that size; or collect all labels first, and select with all of them at once."
    )


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ProblemError(
            f"delta is the largest error probability, in (0, 1), but it is {delta!r}. "
            f"Use delta=0.1 for a promise that holds with probability 0.9."
        )
