"""How two pieces of work are compared: by turns, several times, by their medians."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One comparison. ``ratio``: peer over ours where ``goal`` is "faster", ours over peer where it
    is "within"; ``target`` is the ratio to reach or to stay below. ``unit``: what both are counted
    in, seconds or labels."""

    name: str
    peer_name: str
    ours_seconds: float
    peer_seconds: float
    goal: Literal["faster", "within"]
    target: float | None
    repeats: int
    unit: str = "seconds"

    @property
    def ratio(self) -> float:
        if self.goal == "faster":
            return self.peer_seconds / self.ours_seconds
        return self.ours_seconds / self.peer_seconds

    @property
    def met(self) -> bool | None:
        """None where the row is reported without a target."""
        if self.target is None:
            return None
        return self.ratio >= self.target if self.goal == "faster" else self.ratio <= self.target


def compare(
    name: str,
    peer_name: str,
    ours: Work,
    peer: Work,
    *,
    goal: Literal["faster", "within"],
    target: float | None,
    repeats: int,
    warm_up: bool = True,
) -> Row:
    """Run both ``repeats`` times, the one that goes first changing each time."""
    times: dict[bool, list[float]] = {True: [], False: []}
    if warm_up:
        ours()
        peer()
    for i in range(repeats):
        for is_ours in (True, False) if i % 2 == 0 else (False, True):
            start = time.perf_counter()
            (ours if is_ours else peer)()
            times[is_ours].append(time.perf_counter() - start)
    medians = {key: statistics.median(values) for key, values in times.items()}
    return Row(name, peer_name, medians[True], medians[False], goal, target, repeats)
