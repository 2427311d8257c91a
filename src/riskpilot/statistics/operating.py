"""What a boundary does at a given true risk: the chance to cross it, and the labels that it takes.

Everything about one candidate is exact, by the same recursion as the boundary itself, run at the
true risk: counts beyond the last critical count can never cross, so that they need not be followed,
and nothing is cut off. A sequence of candidates is simulated, since their losses go together.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from riskpilot.errors import ProblemError
from riskpilot.statistics.boundary import (
    BoolArray,
    Boundary,
    FloatArray,
    IntArray,
    Spending,
    exact_boundary,
    quadratic,
)
from riskpilot.statistics.p_values import log_binomial

_CHUNK = 4_000_000  # losses that are simulated at a time


@dataclass(frozen=True)
class Outlook:
    """What labelling up to a horizon promises for a candidate of a given true risk.

    Attributes
    ----------
    risk : float
        The true risk.
    power : float
        The probability to cross by the horizon.
    mean_labels : float
        The mean number of labels where one stops at the crossing, or else at the horizon.
    mean_labels_decided : float
        The same where one also stops once the boundary can no longer be crossed.
    fixed_power : float
        The probability that all labels of the horizon pass the exact binomial test at the end.
    chances : array of shape (m,)
        The probability to have crossed by each label.
    """

    risk: float
    power: float
    mean_labels: float
    mean_labels_decided: float
    fixed_power: float
    chances: FloatArray = field(repr=False)


def crossing_chances(
    critical: IntArray, risk: float, *, labels: int = 0, count: int = 0
) -> tuple[FloatArray, FloatArray]:
    """The probabilities to have crossed, and to be still undecided, by each label.

    Parameters
    ----------
    critical : array of int, shape (m,)
        The critical counts of a boundary.
    risk : float
        The true risk, in [0, 1].
    labels, count : int, optional
        Where the path stands: ``count`` losses among the first ``labels``, not crossed so far.

    Returns
    -------
    crossed : array of shape (m - labels,)
        P(crossed by label t) for t = labels + 1, ..., m.
    undecided : array of shape (m - labels,)
        P(not crossed by t, and the last critical count not exceeded).

    Raises
    ------
    ProblemError
        Where the risk is no probability.

    Examples
    --------
    >>> boundary = exact_boundary(0.1, 0.1, 1000)
    >>> crossed, _ = crossing_chances(boundary.critical, 0.07)
    >>> crossed[-1].round(3)
    np.float64(0.977)
    """
    if not 0 <= risk <= 1:
        raise ProblemError(
            f"A true risk lies in [0, 1] on the unit scale, but it is {risk!r}. "
            f"Give the risk that a candidate is believed to have."
        )
    relative = np.maximum(critical[labels:] - count, -1).tolist()
    steps = len(relative)
    crossed, undecided = np.zeros(steps), np.zeros(steps)
    if steps == 0 or relative[-1] < 0:
        return crossed, undecided
    top = relative[-1] + 1
    alive = np.zeros(top)
    alive[0] = 1.0
    low, high, done = 0, 1, 0.0
    for step, boundary in enumerate(relative):
        high = min(high + 1, top)
        band = alive[low:high]
        moved = band[:-1] * risk
        band *= 1 - risk
        band[1:] += moved
        while low <= boundary:
            done += float(alive[low])
            low += 1
        crossed[step], undecided[step] = done, alive[low:high].sum()
    return crossed, undecided


def outlook(
    limit: float, risk: float, delta: float, horizon: int, *, spending: Spending = quadratic
) -> Outlook:
    """What labelling one by one up to a horizon promises, against the fixed test at the horizon.

    Parameters
    ----------
    limit : float
        The limit on the risk, on the unit scale, in (0, 1).
    risk : float
        The true risk, in [0, 1].
    delta : float
        The tolerance.
    horizon : int
        The largest number of labels.
    spending : function, optional
        The share of delta that may be spent after a share of the labels.

    Returns
    -------
    Outlook
        Exact numbers, for 0/1 losses that all count.

    Examples
    --------
    >>> found = outlook(limit=0.1, risk=0.07, delta=0.1, horizon=1000)
    >>> round(found.power, 3), round(found.mean_labels), round(found.fixed_power, 3)
    (0.977, 473, 0.983)
    """
    boundary = exact_boundary(limit, delta, horizon, spending=spending)
    crossed, undecided = crossing_chances(boundary.critical, risk)
    return Outlook(
        risk=float(risk),
        power=float(crossed[-1]),
        mean_labels=_mean_labels(1 - crossed),
        mean_labels_decided=_mean_labels(undecided),
        fixed_power=_fixed_power(limit, risk, delta, horizon),
        chances=crossed,
    )


def _mean_labels(going_on: FloatArray) -> float:
    """E[T] = sum of P(T > t) over t >= 0, from the probabilities to go on after 1, 2, ... labels;
    after the last of them nobody does."""
    return float(1 + going_on[:-1].sum())


def _fixed_power(limit: float, risk: float, delta: float, n: int) -> float:
    """The probability that n losses of this risk pass the exact binomial test."""
    log_p = log_binomial(np.arange(n + 1), n, limit)
    passing = int((log_p <= np.log(delta)).sum()) - 1
    return float(bdtr(passing, n, risk)) if passing >= 0 else 0.0


@dataclass(frozen=True)
class SequenceOutlook:
    """What labelling promises for candidates that are tested in a frozen order.

    Attributes
    ----------
    certified : array of shape (n,)
        The share of runs in which a candidate and all before it crossed.
    mean_labels_first : float
        The mean number of labels until the first candidate is certified, or else the horizon.
    mean_labels_best : float
        The mean number of labels until the last candidate that ever is certified is, or else the
        horizon.
    mean_labels_done : float
        The mean number of labels until nothing more can change.
    """

    certified: FloatArray
    mean_labels_first: float
    mean_labels_best: float
    mean_labels_done: float


def simulate_sequence(
    risks: npt.ArrayLike,
    boundary: Boundary,
    rng: np.random.Generator,
    *,
    runs: int = 2000,
    together: float = 0.5,
) -> SequenceOutlook:
    """Simulate candidates with 0/1 losses on the same labelled examples, tested in this order.

    Parameters
    ----------
    risks : array of shape (n,)
        The true risks, in testing order.
    boundary : Boundary
        Of every candidate.
    rng : numpy Generator
        Of the losses.
    runs : int, optional
        The number of simulated streams.
    together : float, optional
        For this share of the examples one difficulty decides about all candidates; on the others
        their losses are independent.

    Returns
    -------
    SequenceOutlook
        Means over the runs.
    """
    rates = np.asarray(risks, dtype=np.float64)
    n, m = len(rates), boundary.horizon
    crossings, ends = [], []
    step = max(1, _CHUNK // (n * m))
    for start in range(0, runs, step):
        size = min(step, runs - start)
        shared = rng.random((size, 1, m)) < together
        difficulty = np.where(shared, rng.random((size, 1, m)), rng.random((size, n, m)))
        crossing, hopeless = sequence_times(difficulty < rates[:, None], boundary.critical)
        crossings.append(crossing)
        ends.append(hopeless)
    return summarise_sequence(np.concatenate(crossings), np.concatenate(ends), m)


def sequence_times(losses: BoolArray, critical: IntArray) -> tuple[IntArray, IntArray]:
    """The labels at which paths cross and at which they no longer can.

    Parameters
    ----------
    losses : array of bool, shape (..., n, m)
        The losses of n candidates at m labels.
    critical : array of int, shape (m,)
        The critical counts.

    Returns
    -------
    crossing, hopeless : array of int, shape (..., n)
        Labels from 1 to m; m + 1 where never.
    """
    counts = np.add.accumulate(losses, axis=-1, dtype=np.int64)
    never = losses.shape[-1] + 1
    below, above = counts <= critical, counts > critical[-1]
    crossing = np.where(below.any(axis=-1), below.argmax(axis=-1) + 1, never)
    return crossing, np.where(above.any(axis=-1), above.argmax(axis=-1) + 1, never)


def summarise_sequence(crossing: IntArray, hopeless: IntArray, m: int) -> SequenceOutlook:
    """What came of simulated runs, for candidates in testing order.

    Parameters
    ----------
    crossing, hopeless : array of int, shape (runs, n)
        As `sequence_times` gives them.
    m : int
        The horizon.

    Returns
    -------
    SequenceOutlook
        Means over the runs.
    """
    certified = np.maximum.accumulate(crossing, axis=1)
    ever = certified <= m
    runs, n = crossing.shape
    passed = ever.sum(axis=1)  # the candidates before the first that never crosses
    rows = np.arange(runs)
    last = np.where(passed > 0, certified[rows, np.maximum(passed - 1, 0)], m)
    failing = hopeless[rows, np.minimum(passed, n - 1)]
    before = np.where(passed > 0, last, 0)
    done = np.where(passed < n, np.maximum(before, failing), last)
    return SequenceOutlook(
        certified=ever.mean(axis=0),
        mean_labels_first=float(np.minimum(crossing[:, 0], m).mean()),
        mean_labels_best=float(last.mean()),
        mean_labels_done=float(np.minimum(done, m).mean()),
    )
