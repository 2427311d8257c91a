"""The seed of the order in which losses are bet on: it never depends on the calibration losses."""

import hashlib
import secrets
from collections.abc import Mapping

import numpy as np

from riskpilot.errors import ProblemError, shown
from riskpilot.losses import ValidationLosses
from riskpilot.statistics import JUDGED

SEEDS = 2**128  # seeds lie below this, as large as those that NumPy makes from fresh entropy
# So many changes from one loss to the next make the order of validation losses random enough.
_ENOUGH_CHANGES = 32


def check_seed(seed: int) -> int:
    """A seed as a plain integer, or an error.

    Parameters
    ----------
    seed : int
        A whole number of at least 0; NumPy's integers will do.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    ProblemError
        Where it is something else.
    """
    # numpy counts spans of time among its integers
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool | np.timedelta64)
    if not whole or not 0 <= seed < SEEDS:
        raise ProblemError(
            f"A seed is a whole number from 0 to 2**128 - 1, but it is {shown(seed)}. "
            f"Use seed=0, or another number for another draw."
        )
    return int(seed)


def shuffle_seed(validation_digest: str, seed: int, entropy: int | None = None) -> int:
    """The seed of the order in which betting sees the calibration examples.

    An order that depends on the losses makes bets invalid, and examples may be stored in one, such
    as sorted by label. A shuffle helps only if it is drawn anew with every sample: a fixed one
    treats some sorted samples well each time. Validation losses are drawn anew, and they are
    independent of calibration losses; so their digest is what the shuffle is drawn from. ``seed``,
    the user's, makes other draws; ``entropy`` helps where validation losses are hardly random.
    """
    source = f"shuffle:{validation_digest}:{seed}:{'' if entropy is None else entropy}"
    digest = hashlib.sha256(source.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11  # 53 bits: exact for every reader of JSON


def entropy_of(
    validation: ValidationLosses, families: Mapping[str, str], seed: int, entropy: int | None
) -> int | None:
    """Return the randomness that the shuffle needs beside the validation losses, if it needs any.

    Validation losses that are all alike, or stored in sorted order, are the same in many samples,
    and so would be their digest. Where losses change too seldom along the examples to be random
    themselves, and the user gave no seed, it is a study's own randomness, or freshly drawn.
    """
    bets = [name for name, family in families.items() if family in ("betting", JUDGED)]
    if not bets:
        return None
    if seed or any(validation.risks[name].most_changes() >= _ENOUGH_CHANGES for name in bets):
        return None
    return secrets.randbits(53) if entropy is None else entropy
