"""What a statistic is: everything that is particular to one number made of losses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from riskpilot.common import FloatArray, is_name
from riskpilot.errors import ProblemError, shown
from riskpilot.statistics.families import Start, family_named
from riskpilot.statistics.samples import Groups, Limit, Sample, TestSettings
from riskpilot.statistics.sequential.following import (
    BOUNDARY,
    CAPITAL,
    JUDGED_CAPITAL,
    Stream,
)
from riskpilot.statistics.summaries import AnySummary, Recorded
from riskpilot.statistics.sums import Gatherer

# The family that tests weighted losses: they are no 0/1 losses any more.
WEIGHTED = "betting"
# The family of a mean that is tested with the help of a judge.
JUDGED = "judged"


@dataclass(frozen=True)
class Statistic(ABC):
    """A number made of losses that can be limited. Its classes are abstract or final.

    ``kind``: its name in files. ``p_values``: what a risk may ask for as its test. ``steers``:
    whether the largest mean that its test lets pass is known; otherwise searches and plans go by
    the normal approximation. ``takes_weights``: whether a valid test of weighted examples is known.
    ``needs_groups``: whether the groups of the examples stand beside the losses. ``from_zero``:
    whether losses must start at 0. ``exact``: whether its test compares the losses themselves with
    the limit, so that neither may be rounded. ``ends``: what a loss at an end of its range, or the
    difference of two such losses, is on the unit scale. ``noun``: what a comparison of two means is
    called, as in "gap of recall"; None where there is nothing to compare. ``of_losses``: whether it
    is of losses, which are better when smaller; groups may be compared by any rate. ``argument``:
    the field that stands in brackets behind its name, and what it holds, where there is one.
    ``assumed``: what plans assume where no deviation is given and its test is foretold by the
    normal approximation. ``power_hangs_on``: what else than its value decides how probably it
    passes; None where the assumption is the worst case.
    """

    kind: ClassVar[str]
    p_values: ClassVar[tuple[str, ...]]
    steers: ClassVar[bool]
    takes_weights: ClassVar[bool]
    needs_groups: ClassVar[bool] = False
    from_zero: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    ends: ClassVar[tuple[float, ...]] = (0.0, 1.0)
    noun: ClassVar[str | None] = None
    of_losses: ClassVar[bool] = True
    argument: ClassVar[tuple[str, type[float] | type[str]] | None] = None
    assumed: ClassVar[str] = "the losses are spread as widely as they can be"
    power_hangs_on: ClassVar[str | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Write the kind and the fields as JSON-ready values; `from_dict` reads them back."""
        fields = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value is not None or name != "within"
        }
        return {"kind": self.kind, **fields}

    @abstractmethod
    def words(self, *, by: str | None = None, larger: bool = False) -> str:
        """Say what is limited; the mean needs no words.

        ``by``: the name under which the groups stand beside the losses, where it says something.
        ``larger``: whether the limit is a lower one, on what is better when larger.
        """

    def better_when_larger(self, metric: bool) -> bool:
        """Whether its value, in the words of a name, is better when larger.

        ``metric``: whether that holds of the number that the name stands for.
        """
        return metric

    @property
    def of_complements(self) -> bool:
        """Whether one minus the losses has the same value, or one minus it. Only then can it be
        limited under a name whose losses are one minus what the name says."""
        return True

    @property
    def label_name(self) -> str | None:
        """The name under which labels stand beside the losses, where groups are parted by them."""
        return None

    @property
    def reference_name(self) -> str | None:
        """The name under which the losses of a reference stand beside the others, if they do."""
        return None

    def span(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest number of one example, given the range of the losses."""
        return low, high

    @abstractmethod
    def value_range(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest value that the statistic can have."""

    @property
    def largest_deviation(self) -> float:
        """The largest standard deviation that there can be, on the unit scale of the statistic:
        that of numbers of which half lie at each end of their range."""
        return 0.5

    @property
    def widest_deviation(self) -> float:
        """The largest standard deviation that may be given to a plan, on the unit scale."""
        return self.largest_deviation

    @abstractmethod
    def auto(self, binary: bool) -> str:
        """The family of p-values that ``p_value="auto"`` means; ``binary``: for 0/1 losses."""

    def family(self, p_value: str, *, binary: bool, weighted: bool) -> str:
        """The family that tests it where a risk asks for ``p_value``."""
        if weighted:
            return WEIGHTED
        return self.auto(binary) if p_value == "auto" else p_value

    @abstractmethod
    def limit_of_zeros(self, limit: float) -> float:
        """The limit that the best losses there can be keep like so many zeros keep theirs; both on
        the unit scale. It says how many examples it takes to pass."""

    @abstractmethod
    def gatherer(
        self, groups: Groups | None, weights: FloatArray | None, n_configs: int, m: int
    ) -> Gatherer | None:
        """Make what gathers more than the plain sums; None where these are enough."""

    @abstractmethod
    def summary_of(self, records: Sequence[Recorded]) -> AnySummary:
        """Join what many configurations recorded, each by `Summary.record`, into one summary."""

    @abstractmethod
    def starts(self, summary: AnySummary) -> tuple[Start, ...]:
        """What validation losses say of the losses that are bet on, of every configuration.

        Empty where bets are on something else than the summary is about. Numbers are rounded, so
        that a plan does not hang on how another machine rounds its sums.
        """

    @abstractmethod
    def log_p_for_order(self, summary: AnySummary, family: str, limit: float) -> FloatArray:
        """Approximate log p-values on validation data, shape (n_configs,), that only order.

        ``family``: the one that steers searches; ``limit``: on the unit scale.
        """

    def log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """Log p-values of "the statistic is above its limit" for some rows, shape (len(rows),).

        Every test is valid in finite samples. What must be fixed beforehand comes from validation
        data; the order in which examples are seen comes from a seed.
        """
        family = family_named(settings.family).name
        known = {*self.p_values[1:], self.auto(True), self.auto(False)}
        if sample.weights is not None:
            known = {WEIGHTED} if self.takes_weights else set()
        if family not in known:
            tests = " or ".join(sorted(known)) or "no family that is known here"
            weighted = "" if sample.weights is None else " of weighted examples"
            raise ProblemError(
                f"{self}{weighted} is tested by {tests}, but the family is {family!r}. "
                f'Use p_value="auto".'
            )
        return self._log_p(sample, rows, settings, limit)

    @abstractmethod
    def _log_p(
        self, sample: Sample, rows: Sequence[int], settings: TestSettings, limit: Limit
    ) -> FloatArray:
        """Do what `log_p` says, with a family that fits."""

    def family_by_label(self, family: str, limit: Limit) -> str:
        """The test that may be looked at after every label, in place of a family for one look."""
        tests = {"binomial": BOUNDARY, WEIGHTED: CAPITAL, JUDGED: JUDGED_CAPITAL}
        if family not in tests:
            raise ProblemError(
                f"Labels that arrive one after another are tested by an exact boundary or by "
                f"betting, but the test asked for is {family!r}, which is for one look at the end. "
                f'Use p_value="auto".'
            )
        return tests[family]

    def streams(
        self, settings: TestSettings, limit: Limit, n_groups: int, conditional: bool
    ) -> tuple[Stream, ...]:
        """What is followed label by label: all of it must be shown for the statistic to be.

        ``settings``: with a family of `family_by_label`; ``n_groups``: how many groups count;
        ``conditional``: whether some labels may not count.
        """
        raise ProblemError(
            f"{self} compares groups, and a comparison after every label is not offered here, but "
            f"one is limited. Limit the WorstGroup, or collect all labels first and use "
            f"select_from_losses."
        )


def check_beside(statistic: Statistic, field: str, name: object, example: str) -> None:
    """Refuse what is no name of an array beside the losses."""
    if not is_name(name):
        kind = type(statistic).__name__
        raise ProblemError(
            f"{kind}: {field} is the name of an array beside the losses, but it is {shown(name)}. "
            f'Write {kind}({field}="{example}") and pass {{..., "{example}": array}}.'
        )
