"""What a watch has found: estimates of each risk between bounds, and alarms, in people's units."""

from collections.abc import Sequence
from dataclasses import dataclass

from riskpilot.common import bound_in_words, exact, how_many
from riskpilot.watch.estimates import Estimate
from riskpilot.watch.promises import Stream


def between(lower: float, upper: float, joint: str = " to ") -> str:
    """Write two bounds in a few digits, each rounded to the side on which it still holds.

    >>> between(0.012345, 0.045671)
    '0.01234 to 0.04568'
    """
    return f"{bound_in_words(lower, up=False)}{joint}{bound_in_words(upper, up=True)}"


@dataclass(frozen=True)
class WatchedRisk:
    """One risk, or one group of it, over all labels of a watch.

    Attributes
    ----------
    name : str
        The name of the risk.
    group : str or None
        The group, or the pair of groups, that the numbers are about; of a risk with groups, the
        worst of them. None where they are about all examples.
    what : str
        What the numbers are, in words.
    limit : float
        The limit that the numbers should stay at or below.
    count : int
        How many labels, or blocks of labels, count.
    counted : str
        Which of the two it is: "labels" or, of comparisons of groups, "blocks of labels".
    estimate : float or None
        The mean over these labels; None before the first.
    lower, upper : float
        Bounds on the mean risk at the moments of these labels. The bounds of all risks and groups,
        and those of alarms, hold together at all times with probability at least 1 - delta.
    alarm : bool
        Whether there was an alarm.
    groups : tuple of WatchedRisk
        The same for each group; empty for a risk without groups.
    """

    name: str
    group: str | None
    what: str
    limit: float
    count: int
    counted: str
    estimate: float | None
    lower: float
    upper: float
    alarm: bool
    groups: tuple["WatchedRisk", ...] = ()

    def __str__(self) -> str:
        of = "" if self.group is None else f", {self.group}"
        if self.estimate is None:
            return f"{self.what}{of}: no label yet; limit {exact(self.limit)}"
        return (
            f"{self.what}{of}: {self.estimate:.4g} over {over(self)}, between "
            f"{between(self.lower, self.upper, ' and ')}; limit {exact(self.limit)}"
        )


def over(risk: WatchedRisk) -> str:
    """Write how many labels, or blocks of labels, the numbers of a risk are over."""
    one = "label" if risk.counted == "labels" else "block of labels"
    return how_many(risk.count, one, risk.counted)


@dataclass(frozen=True)
class WatchAlarm:
    """A limit that was shown to be broken.

    Attributes
    ----------
    risk : str
        The name of the risk.
    group : str or None
        The group, or the pair of groups, that it is about; None for all examples.
    what : str
        What the numbers are, in words.
    limit : float
        The limit of these numbers.
    label : int
        The label at which the alarm was raised; the first label of the watch is 1.
    time : str
        When the update with that label came.
    change : int
        After how many labels the risk went above its limit, by estimate.
    change_time : str or None
        When the update at about that label came; None where it is no longer known.
    estimate : float or None
        The mean of the numbers since the change, when the alarm was raised.
    lower, upper : float
        Bounds on that mean, as those of `WatchedRisk`.
    """

    risk: str
    group: str | None
    what: str
    limit: float
    label: int
    time: str
    change: int
    change_time: str | None
    estimate: float | None
    lower: float
    upper: float

    def __str__(self) -> str:
        of = "" if self.group is None else f", {self.group}"
        since = "" if self.change_time is None else f" ({self.change_time})"
        value = "unknown" if self.estimate is None else f"{self.estimate:.4g}"
        return (
            f"{self.what}{of}: went above its limit {exact(self.limit)} around label "
            f"{self.change + 1:,}{since}; noticed at label {self.label:,} ({self.time}). When "
            f"it was noticed, the mean since then was {value}, between "
            f"{between(self.lower, self.upper, ' and ')}."
        )


def watched_risk(
    name: str, streams: Sequence[Stream], estimates: Sequence[Estimate], alarmed: Sequence[bool]
) -> WatchedRisk:
    """Say how a risk stands, from the estimates of its streams on the unit scale."""
    parts = tuple(
        WatchedRisk(
            name=name,
            group=stream.group,
            what=stream.what,
            limit=stream.limit,
            count=estimate.count,
            counted=stream.counted,
            estimate=None if estimate.mean is None else stream.shown(estimate.mean),
            lower=stream.shown(estimate.lower),
            upper=stream.shown(estimate.upper),
            alarm=alarm,
        )
        for stream, estimate, alarm in zip(streams, estimates, alarmed, strict=True)
    )
    if len(parts) == 1 and parts[0].group is None:
        return parts[0]
    # A mean of all groups together is never above that of the worst one.
    worst = max(parts, key=_height)
    return WatchedRisk(
        name=name,
        group=worst.group,
        what=worst.what,
        limit=worst.limit,
        count=worst.count,
        counted=worst.counted,
        estimate=worst.estimate,
        lower=max(part.lower for part in parts),
        upper=max(part.upper for part in parts),
        alarm=any(part.alarm for part in parts),
        groups=parts,
    )


def _height(part: WatchedRisk) -> float:
    """Return the estimate of a group; one without labels is below all others."""
    return float("-inf") if part.estimate is None else part.estimate
