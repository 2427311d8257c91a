"""Differences between two groups' means, from examples that come one after the other.

Only the examples of the two groups count. They are cut into blocks of consecutive examples; the
length of a block is fixed when it begins. At the end of a block, the mean loss of the one group in
it minus that of the other is one value. A block without examples of both groups gives none.

Why that is valid. H0 says that at every moment i the means m_i and k_i of the two groups differ by
m_i - k_i <= limit; both may wander together. Let the order in which the groups come within a block
be random: given how many there are of each, every order is equally likely, whatever the losses.
Then each example of the first group has any place in the block with the same probability, and the
mean of their losses has as its expectation the mean of m_i over the block; likewise for the second.
The value of the block has the mean of m_i - k_i as its expectation, which is at most the limit. If
both means stand still within the blocks, the order need not be random.

What would not be valid: a group that always comes in the morning, and losses of both groups that
are larger in the morning. From one loss at each moment, nobody can distinguish that from a gap.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common.arrays import FloatArray
from riskpilot.errors import LossError

# A block has the length in which one example of the smaller group is expected, and this many
# examples more. Shorter blocks too often lack a group, and longer ones are too few.
_LONGER = 2
_LONGEST = 200


@dataclass(frozen=True)
class Claim:
    """The claim a E[x] + b E[y] <= bound about the losses x and y, in [0, 1], of two groups."""

    a: float
    b: float
    bound: float

    @property
    def limit(self) -> float:
        """The bound, on the unit scale of the values."""
        return (self.bound - self.low) / self.width

    def value(self, x: float, y: float) -> float:
        """Compute the value of a block whose groups have the means x and y, on the unit scale."""
        unit = (self.a * x + self.b * y - self.low) / self.width
        return min(max(unit, 0.0), 1.0)

    @property
    def low(self) -> float:
        return min(self.a, 0.0) + min(self.b, 0.0)

    @property
    def width(self) -> float:
        return abs(self.a) + abs(self.b)


@dataclass(frozen=True)
class Contrast:
    """Two groups and what is claimed about them; each claim is a stream.

    The key of a group is whatever the examples carry: a name, or a tuple of a label and a name
    where groups are compared within labels.
    """

    first: Hashable
    second: Hashable
    claims: tuple[Claim, ...]


def gap(first: Hashable, second: Hashable, limit: float, *, directed: bool = False) -> Contrast:
    """Claim that two groups' means differ by at most a limit.

    Parameters
    ----------
    first, second : hashable
        The keys of the groups.
    limit : float
        On the scale of losses in [0, 1].
    directed : bool
        Whether only the mean of the first less that of the second is limited.

    Returns
    -------
    Contrast
        With one claim, or one for each direction.
    """
    claims = (Claim(1.0, -1.0, limit), Claim(-1.0, 1.0, limit))
    return Contrast(first, second, claims[:1] if directed else claims)


def ratio(first: Hashable, second: Hashable, limit: float, *, directed: bool = False) -> Contrast:
    """Claim that one minus the ratio of two groups' means is at most a limit.

    With r = 1 - limit, the claim is r E[y] - E[x] <= 0: it needs no division, and a mean of 0 is no
    special case.

    Parameters
    ----------
    first, second : hashable
        The keys of the groups.
    limit : float
        In (0, 1); 0.2 says that each mean is at least 80 % of the other.
    directed : bool
        Whether only the ratio of the first to the second is limited.

    Returns
    -------
    Contrast
        With one claim, or one for each direction.
    """
    r = 1 - limit
    claims = (Claim(-1.0, r, 0.0), Claim(r, -1.0, 0.0))
    return Contrast(first, second, claims[:1] if directed else claims)


@dataclass(frozen=True)
class Block:
    """A block that is being filled, and how many examples of each group there ever were."""

    length: int = 2
    n_first: int = 0
    total_first: float = 0.0
    n_second: int = 0
    total_second: float = 0.0
    ever_first: int = 0
    ever_second: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Write the block as plain numbers, which JSON keeps exactly."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Block":
        """Read what `to_dict` wrote."""
        return cls(**data)


def fill_blocks(
    contrasts: Sequence[Contrast],
    blocks: Sequence[Block],
    losses: npt.ArrayLike,
    groups: Sequence[Hashable],
) -> tuple[FloatArray, list[Block]]:
    """Take the next labels, and give the values of the blocks that they complete.

    Parameters
    ----------
    contrasts : sequence of Contrast
        What is compared.
    blocks : sequence of Block, one for each contrast
        What the last call returned, or ``[Block()] * len(contrasts)`` at first.
    losses : array of shape (b,)
        On the unit scale, NaN where they do not count.
    groups : sequence of length b
        The key of each example.

    Returns
    -------
    values : array of shape (b, number of claims)
        On the unit scale, with the limit of each claim; NaN but where an example ends a block.
    blocks : list of Block
        For the next call.

    Raises
    ------
    LossError
        Where the losses and groups have not the same length.
    """
    x = np.asarray(losses, dtype=np.float64)
    if x.shape != (len(groups),):
        raise LossError(
            f"Every loss has a group, but there are losses of shape {x.shape} and {len(groups)} "
            f"groups. Give one group for each loss."
        )
    values = np.full((len(x), sum(len(each.claims) for each in contrasts)), np.nan)
    filled, column = [], 0
    for contrast, block in zip(contrasts, blocks, strict=True):
        columns = slice(column, column + len(contrast.claims))
        filled.append(_fill(contrast, block, x, groups, values[:, columns]))
        column = columns.stop
    return values, filled


def _fill(
    contrast: Contrast,
    block: Block,
    x: FloatArray,
    groups: Sequence[Hashable],
    values: FloatArray,
) -> Block:
    """Take the labels for one contrast, and write its values where a block ends."""
    for t, group in enumerate(groups):
        if group not in (contrast.first, contrast.second) or np.isnan(x[t]):
            continue
        block = _add(block, float(x[t]), is_first=group == contrast.first)
        if block.n_first + block.n_second < block.length:
            continue
        if block.n_first and block.n_second:
            means = block.total_first / block.n_first, block.total_second / block.n_second
            values[t] = [claim.value(*means) for claim in contrast.claims]
        block = _next(block)
    return block


def _add(block: Block, loss: float, *, is_first: bool) -> Block:
    """Add the loss of an example of one of the groups to a block."""
    if is_first:
        return replace(
            block,
            n_first=block.n_first + 1,
            total_first=block.total_first + loss,
            ever_first=block.ever_first + 1,
        )
    return replace(
        block,
        n_second=block.n_second + 1,
        total_second=block.total_second + loss,
        ever_second=block.ever_second + 1,
    )


def _next(block: Block) -> Block:
    """Begin a block whose length follows from the shares of the groups so far."""
    first, second = block.ever_first + 1, block.ever_second + 1
    length = round((first + second) / min(first, second)) + _LONGER
    return Block(
        length=min(length, _LONGEST),
        ever_first=block.ever_first,
        ever_second=block.ever_second,
    )
