"""How labelled examples are split into validation and calibration."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from riskpilot.common import IntArray
from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee.passing import MOST_EXAMPLES
from riskpilot.guarantee.power import is_whole

# The share of labelled examples that is best spent on validation: the optimum is flat, between a
# fifth and two fifths (experiments/tuning).
VALIDATION_SHARE = Fraction(1, 3)


class LabelledSplit(NamedTuple):
    """How many labelled examples go to validation, and how many to calibration.

    Parameters
    ----------
    validation : int
        The number of validation examples.
    calibration : int
        The number of calibration examples.
    """

    validation: int
    calibration: int

    def indices(self, seed: int) -> tuple[IntArray, IntArray]:
        """Draw at random which examples go where.

        Parameters
        ----------
        seed : int
            The same seed gives the same draw.

        Returns
        -------
        tuple of arrays of int
            The places of the validation examples and of the calibration examples, in order.

        Raises
        ------
        ProblemError
            If ``seed`` is no whole number of at least 0.

        Examples
        --------
        >>> validation, calibration = split_labelled(6).indices(seed=0)
        >>> sorted([*validation, *calibration]) == list(range(6))
        True
        """
        if not is_whole(seed, 0, 2**64 - 1):
            raise ProblemError(
                f"seed is a whole number from 0 to 2**64 - 1, but it is {shown(seed)}. Use 0."
            )
        order = np.random.default_rng(int(seed)).permutation(sum(self))
        return np.sort(order[: self.validation]), np.sort(order[self.validation :])


def split_labelled(n: int) -> LabelledSplit:
    """Say how many of n labelled examples to use for validation, and how many for calibration.

    Validation steers the search and orders the candidates; calibration has to prove the result,
    and gets twice as many. Which examples go where must be drawn at random.

    Parameters
    ----------
    n : int
        The number of labelled examples, at least 2.

    Returns
    -------
    LabelledSplit
        The numbers of validation and of calibration examples, a tuple; its ``indices(seed)`` draws
        which examples these are.

    Raises
    ------
    ProblemError
        If ``n`` is no whole number from 2 to 10**12.

    Examples
    --------
    >>> split_labelled(6_000)
    LabelledSplit(validation=2000, calibration=4000)
    """
    if not is_whole(n, 2, MOST_EXAMPLES):
        raise ProblemError(
            f"The number of labelled examples must be a whole number of at least 2, one for "
            f"validation and one for calibration, and at most 10**12, but it is {shown(n)}. "
            f"Give how many examples have a label, such as 7500."
        )
    n_validation = max(round(int(n) * VALIDATION_SHARE), 1)
    return LabelledSplit(n_validation, int(n) - n_validation)
