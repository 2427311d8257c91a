"""What a name means: the losses, their direction, their condition, and what is limited of them.

This is the one place that decides it. A name is read without regard to case, spaces, hyphens,
underscores and the order of its words, so that "Worst-group error", "worstgrouperror" and "error of
the worst group" say what "worst_group_error" says.
"""

import difflib
from dataclasses import dataclass

from riskpilot.common import exact
from riskpilot.errors import ProblemError, type_in_words, with_article
from riskpilot.problem.metrics import METRICS, Metric
from riskpilot.problem.sounds import said_statistic, sounds_larger, words_of
from riskpilot.statistics import Difference, GroupGap, Mean, Ratio, Statistic, WorstGroup


@dataclass(frozen=True)
class Meaning:
    """What a known name says.

    ``metric``: what its losses are. ``statistic``: what is limited of them, where the name says
    it; None where it leaves that open. ``opposite``: of a name that is better when larger, a known
    one to make small instead.
    """

    metric: Metric
    statistic: Statistic | None = None
    opposite: str | None = None

    @property
    def loss_words(self) -> str:
        """The losses in words."""
        if self.statistic is not None and self.statistic.reference_name is not None:
            return f"{self.metric.loss_words}; those of the reference likewise"
        return self.metric.loss_words

    @property
    def conditional(self) -> bool:
        """Whether only some examples count."""
        return self.metric.conditional

    @property
    def better_when_larger(self) -> bool:
        """Whether the number of that name is better when larger."""
        return larger_is_better(self, self.statistic or Mean())


_OPPOSITES = {
    "accuracy": "error",
    "selective_accuracy": "selective_error",
    "coverage": "abstention",
    "specificity": "false_positive_rate",
    "recall": "false_negative_rate",
    "precision": "false_discovery_rate",
}
_SELECTED, _RECALL = METRICS["selection_rate"], METRICS["recall"]
KNOWN: dict[str, Meaning] = {
    **{name: Meaning(metric, None, _OPPOSITES.get(name)) for name, metric in METRICS.items()},
    **{
        f"worst_group_{name}": Meaning(
            metric,
            WorstGroup(),
            f"worst_group_{_OPPOSITES[name]}" if metric.better_when_larger else None,
        )
        for name, metric in METRICS.items()
    },
    **{f"{name}_gap": Meaning(metric, GroupGap()) for name, metric in METRICS.items()},
    # Where predictions decide which examples count, a drop is known in order to be refused.
    **{f"{name}_drop": Meaning(metric, Difference()) for name, metric in METRICS.items()},
    "demographic_parity_gap": Meaning(_SELECTED, GroupGap()),
    "demographic_parity_ratio": Meaning(_SELECTED, Ratio(), "demographic_parity_gap"),
    "equal_opportunity_gap": Meaning(_RECALL, GroupGap()),
    "equalized_odds_gap": Meaning(_SELECTED, GroupGap(within="label")),
}
_SHORT = {
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tpr": "recall",
    "tnr": "specificity",
    "fdr": "false_discovery_rate",
    "ppv": "precision",
    "sensitivity": "recall",
    "true_positive_rate": "recall",
    "true_negative_rate": "specificity",
}
ALIASES: dict[str, str] = {
    alias: name
    for short, long in _SHORT.items()
    for alias, name in (
        (short, long),
        (f"worst_group_{short}", f"worst_group_{long}"),
        (f"{short}_gap", f"{long}_gap"),
        (f"{short}_drop", f"{long}_drop"),
    )
    if name in KNOWN
} | {
    "demographic_parity_difference": "demographic_parity_gap",
    "statistical_parity_difference": "demographic_parity_gap",
    "statistical_parity_gap": "demographic_parity_gap",
    "equal_opportunity_difference": "equal_opportunity_gap",
    "equalized_odds_difference": "equalized_odds_gap",
}
# What compares two numbers of one metric.
_COMPARISONS = {
    "difference": "GroupGap() between groups, or Difference() from a reference",
    "ratio": "Ratio()",
}
# Words that only join others.
_JOINING = frozenset({"of", "in", "the", "for"})
_JOINING_OF_GAPS = _JOINING | {"between", "across", "groups"}
# Known names by their words in alphabetical order, and by their letters.
_BY_WORDS = {tuple(sorted(name.split("_"))): name for name in (*KNOWN, *ALIASES)}
_BY_LETTERS = {name.replace("_", ""): name for name in (*KNOWN, *ALIASES)}


def meaning(name: str) -> Meaning | None:
    """What a name says; None where it is the user's own.

    >>> meaning("Worst-group error").statistic, meaning("fpr").metric.name, meaning("harm")
    (WorstGroup(groups=None), 'false_positive_rate', None)
    >>> meaning("gap_error") == meaning("errorgap") == meaning("gap in error") == KNOWN["error_gap"]
    True
    """
    words = words_of(name)
    key = "_".join(words)
    if key not in KNOWN and key not in ALIASES:
        joining = _JOINING_OF_GAPS if "gap" in words else _JOINING
        telling = tuple(sorted(word for word in words if word not in joining))
        key = _BY_WORDS.get(telling) or _BY_LETTERS.get("".join(words)) or key
    return KNOWN.get(ALIASES.get(key, key))


def larger_is_better(known: Meaning | None, statistic: Statistic) -> bool:
    """Whether a limit on this is a lower one: metric and statistic decide it together.

    A gap and a drop are better when smaller, whatever they are gaps and drops of.
    """
    return statistic.better_when_larger(_metric_is_larger(known))


def _metric_is_larger(known: Meaning | None) -> bool:
    """Whether a name stands for a number that is better when larger; not where it is unknown."""
    return known is not None and known.metric.better_when_larger


def subject(name: str, statistic: Statistic, *, lower: bool) -> str:
    """What a limit is on: the name, and before it what turns its direction.

    ``lower``: whether the limit is a lower one, on what is better when larger.

    >>> subject("recall", GroupGap(), lower=False), subject("error", GroupGap(), lower=False)
    ('gap of recall', 'error')
    """
    known = meaning(name)
    says_it = known is not None and known.statistic is not None
    if says_it or statistic.noun is None or lower == _metric_is_larger(known):
        return name
    return f"{statistic.noun} of {name}"


def statistic_of(name: str, given: Statistic | None) -> Statistic:
    """What is limited: what was given, or what the name says, which must not contradict it."""
    known = meaning(name)
    said = None if known is None else known.statistic
    if given is None:
        part = None if known is not None else said_statistic(name) or _said_comparison(name)
        if part is not None:
            raise ProblemError(
                f"A limit is on the mean of the losses unless it is said otherwise, but the name "
                f"{name!r} says {part}.{near(name, 0.85)} Give it; or write statistic=Mean() where "
                f"every loss is such a number already, or use another name."
            )
        given = said or Mean()
    if said is not None and not _agree(said, given):
        raise ProblemError(
            f"The name {name!r} says that {type_in_words(said)} is limited, but the statistic is "
            f"{given!r}. Leave the statistic out, or use a name that says what is limited."
        )
    if known is not None:
        _check_metric(name, known, given)
    return given


def _said_comparison(name: str) -> str | None:
    """The part of a name that compares a known metric, with what to write for it.

    An "absolute_difference" is a mean, and so may an "error_ratio" be; the difference of two rates,
    and their ratio, are none.
    """
    words = words_of(name)
    for word, statistic in _COMPARISONS.items():
        rest = tuple(one for one in words if one != word and one not in _JOINING_OF_GAPS)
        known = meaning("_".join(rest)) if rest and len(words) > 1 and word in words else None
        is_rate = "rate" in rest or "_".join(rest) in _SHORT
        if known is not None and known.statistic is None and (word != "ratio" or is_rate):
            return f"{word!r}: statistic={statistic}"
    return None


def _agree(said: Statistic, given: Statistic) -> bool:
    """Whether a statistic is of the kind that a name says; which groups it names is open."""
    both_within = (said.label_name is None) == (given.label_name is None)
    return type(said) is type(given) and both_within


def _check_metric(name: str, known: Meaning, statistic: Statistic) -> None:
    """Refuse statistics of a metric's losses that are not those of the metric."""
    metric = known.metric
    if statistic.reference_name is not None and metric.condition == "prediction":
        raise ProblemError(
            f"{name!r} counts other examples for every set of predictions, so that no difference "
            f"against a reference can be taken example by example, but the statistic is "
            f"{statistic!r}. Limit {name!r} itself; or the difference of a metric that counts the "
            f"same examples for both, such as 'error'."
        )
    if metric.better_when_larger and not statistic.of_complements:
        raise ProblemError(
            f"{name!r} is better when larger and its losses are those of one minus it, so that "
            f"{statistic!r} of the losses is not that of {name!r}. Limit it under the name of "
            f"the losses, {_OPPOSITES[metric.name]!r}."
        )


def check_direction(name: str, statistic: Statistic, bound: float, *, lower: bool) -> None:
    """Refuse a lower limit on what is better when smaller, and the other way round."""
    known, how = meaning(name), "at_least" if lower else "at_most"
    larger = larger_is_better(known, statistic)
    if lower == larger:
        return
    if known is None and statistic.noun is None:
        raise ProblemError(
            f"at_least goes with metrics that are known to be better when larger, but "
            f"{name!r} is no metric that riskpilot knows.{near(name)} Record the loss instead, one "
            f"minus the quantity, and give it limit=."
        )
    of_its_own = known is None or known.statistic is None
    what = f"A {statistic.noun} of {name!r}" if statistic.noun and of_its_own else repr(name)
    right = "at_most=" if not larger else "at_least="
    if _metric_is_larger(known) and larger:
        right += exact(bound)
    raise ProblemError(
        f"{what} is better when {'larger' if larger else 'smaller'}, but it was given "
        f"{how}={exact(bound)}. Write {right}."
    )


def check_limit(name: str, statistic: Statistic, limit: float | None) -> None:
    """Refuse a limit on losses under a name that speaks of the opposite."""
    known = meaning(name)
    if known is None:
        if statistic.of_losses:
            check_sounds(name)
        return
    compared = not statistic.of_losses and known.statistic is None
    if limit is None or compared or not larger_is_better(known, statistic):
        return
    raise ProblemError(
        f"{name!r} is better when larger, but limit={exact(limit)} is an upper limit, on losses. "
        f"Write Risk({name!r}, at_least={exact(limit)}) for {with_article(name)} of at least "
        f"{exact(limit)}. "
        f"Its losses: {known.loss_words}."
    )


def near(name: object, closeness: float = 0.6) -> str:
    """A hint at a known name that is close, as a sentence with a space before it; or nothing.

    ``closeness``: the share of letters, from 0 to 1, that the two must have in common.
    """
    text = name if isinstance(name, str) else ""
    found = difflib.get_close_matches(text, [*KNOWN, *ALIASES], n=1, cutoff=closeness)
    return f" Did you mean {found[0]!r}?" if found else ""


def check_minimized(name: str) -> None:
    """Refuse to minimise what is better when larger."""
    known = meaning(name)
    larger = sounds_larger(name) if known is None else known.better_when_larger
    if not larger:
        return
    opposite = None if known is None else known.opposite
    way_out = (
        f"Write minimize={opposite!r}."
        if opposite is not None
        else f"Record one minus it, or its negative, under a name that says so: "
        f"minimize={_as_loss(name)!r}."
    )
    raise ProblemError(
        f"minimize names what to make small, but {name!r} is better when larger. {way_out}"
    )


def check_sounds(name: str) -> None:
    """Refuse a limit on losses under a name, not a known one, that says "larger is better"."""
    if sounds_larger(name):
        raise ProblemError(
            f"A limit is on losses, which are better when smaller, but the name {name!r} says that "
            f"larger is better.{near(name)} Record the loss, such as one minus the quantity, under "
            f"a name that says so: Risk({_as_loss(name)!r}, limit=...). "
            f"Where it is a loss already, use another name."
        )


def _as_loss(name: str) -> str:
    return f"one_minus_{'_'.join(words_of(name)) or name}"
