"""Before any label: about how many labels a judge is worth. These are approximations for plans."""

import math

from scipy.special import ndtr, ndtri

from riskpilot.errors import ProblemError


def labels_worth(correlation: float, per_label: float) -> float:
    """By what a judge multiplies the labels, about: one label with it is worth so many without.

    Z has 1 - r^2 k / (k + 1) times the variance of L, for the correlation r of loss and score and
    k unlabelled scores per label. What is learned on the way costs some of it: with 500
    labels about a tenth.

    Parameters
    ----------
    correlation : float
        Of loss and score, in [-1, 1].
    per_label : float
        Unlabelled scores for each label.

    Returns
    -------
    float
        At least 1.

    Examples
    --------
    >>> round(labels_worth(0.8, 10), 2)
    2.39
    """
    if not -1 <= correlation <= 1 or per_label < 0:
        raise ProblemError(
            f"A correlation lies in [-1, 1] and unlabelled scores per label are at least 0, but "
            f"they are {correlation!r} and {per_label!r}. Take the correlation from validation."
        )
    explained = correlation**2 * per_label / (per_label + 1)
    return math.inf if explained >= 1 else 1 / (1 - explained)


def judged_power(
    limit: float,
    risk: float,
    labels: int,
    delta: float,
    *,
    correlation: float,
    per_label: float,
    deviation: float | None = None,
) -> float:
    """About the probability that a candidate of a given true risk passes with a judge's help.

    Parameters
    ----------
    limit, risk : float
        On the unit scale, the risk below the limit.
    labels : int
        The number of labels.
    delta : float
        The tolerance.
    correlation, per_label : float
        As in `labels_worth`.
    deviation : float, optional
        The standard deviation of the losses; of 0/1 losses where None.

    Returns
    -------
    float
        A normal approximation; it is a little too hopeful below some twenty losses of 1.

    Examples
    --------
    >>> with_judge = judged_power(0.1, 0.07, 500, 0.1, correlation=0.8, per_label=10)
    >>> without = judged_power(0.1, 0.07, 500, 0.1, correlation=0.0, per_label=10)
    >>> round(with_judge, 2), round(without, 2)
    (0.99, 0.87)
    """
    spread = math.sqrt(risk * (1 - risk)) if deviation is None else deviation
    at_limit = math.sqrt(limit * (1 - limit)) if deviation is None else deviation
    worth = math.sqrt(labels * labels_worth(correlation, per_label))
    needed = -float(ndtri(delta)) * at_limit
    return float(ndtr(((limit - risk) * worth - needed) / max(spread, 1e-12)))
