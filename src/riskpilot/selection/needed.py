"""What it would have taken for a candidate that did not pass: in words, and in examples."""

import math
from dataclasses import replace

import numpy as np

from riskpilot.common import Places, how_many
from riskpilot.guarantee import (
    MOST_EXAMPLES,
    Labelling,
    TestPlan,
    TestResult,
    fewest_examples,
    log_p,
    samples_to_pass,
    steering_family,
)
from riskpilot.losses import RiskLosses
from riskpilot.problem import Risk
from riskpilot.statistics import GroupSummary, name_in_words

# A test that hangs on more than the mean is tried on at most so many examples ...
_MOST_TRIED = 1 << 16
# ... and, where the order of the examples matters, in so many orders.
_ORDERS = 3


def examples_behind(plan: TestPlan, result: TestResult, i: int, at: int) -> tuple[int, str]:
    """Count the calibration examples behind risk ``i``, and name the group that has the fewest."""
    groups = _sizes(plan, result, i, at)
    if groups is None:
        return int(result.n[at, i]), ""
    name, fewest = min(groups.items(), key=lambda group: group[1])
    return sum(groups.values()), f", {fewest:,} of them in the smallest group, {name}"


def _sizes(plan: TestPlan, result: TestResult, i: int, at: int) -> dict[str, int] | None:
    """Count the examples of each group of a risk; None where it has no groups."""
    if result.calibration is None:
        return None
    summary = result.calibration.risks[plan.problem.risks[i].name].summary
    if not isinstance(summary, GroupSummary):
        return None
    return {
        name_in_words(name): int(part.n[result.rows[at]])
        for name, part in zip(summary.names, summary.sums, strict=True)
    }


def what_would_decide(plan: TestPlan, result: TestResult, i: int, at: int) -> str:
    """Say what it would have taken for risk ``i`` of the candidate at position ``at`` to pass."""
    risk = plan.problem.risks[i]
    if result.labelling is not None:
        return _labels_left(result.labelling, at)
    few = _too_few(plan, result, i, at)
    if few is not None:
        return few
    if int(result.n[at, i]) == 0:
        return "without examples nothing can be shown"
    if _counts_parts(plan, result, i, at):
        return (
            f"the test was settled for 0/1 losses, as validation data or the risk's name said, and "
            f"these are not: each above 0 counts as a whole one. Ask with "
            f'Risk({risk.name!r}, ..., p_value="betting")'
        )
    unit = risk.to_unit(float(result.means[at, i]))
    on_limit = unit == risk.unit_limit and risk.statistic.exact  # a quantile may be at its limit
    if unit >= risk.unit_limit and not on_limit:
        return "more examples would not help at this value: it is not below the limit"
    return _more_examples(plan, result, i, at, unit)


def _more_examples(plan: TestPlan, result: TestResult, i: int, at: int, unit: float) -> str:
    """Say how many examples with the value at hand, ``unit``, would have passed."""
    risk, n = plan.problem.risks[i], int(result.n[at, i])
    family, alone = _family(plan, risk), " without a judge" if risk.name in plan.judged else ""
    losses = None if result.calibration is None else result.calibration.risks[risk.name]
    if steering_family(risk, family) == "normal":  # what passes hangs on more than the mean
        if losses is None or losses.values is None or risk.name in plan.judged:
            return _at_least(risk, family, n, plan.aims[at])
        return _tried(plan, losses, result.rows[at], i, at)
    deviation = None if losses is None else _deviation(losses, result.rows[at])
    needed = samples_to_pass(family, risk.unit_limit, unit, plan.aims[at], deviation)
    needed = max(needed, fewest_examples(risk, family, plan.aims[at]))
    if needed <= n and risk.needs_groups and losses is not None and losses.values is not None:
        return _tried(plan, losses, result.rows[at], i, at)  # another group may have decided
    each = " in each group" if risk.needs_groups else ""
    if needed <= n:
        return f"{_CLOSE}{alone}"
    if needed > MOST_EXAMPLES:
        return (
            f"no number of examples that anybody has would do{alone}: with this value it takes "
            f"more than {MOST_EXAMPLES:,}{each}"
        )
    return f"about {how_many(needed, 'example')}{each} with this value would have passed{alone}"


_CLOSE = "it was close: about every second draw with this value would have passed"


def _family(plan: TestPlan, risk: Risk) -> str:
    """Name the family of a risk's test, where a judge helps the one that it would have without."""
    if risk.name in plan.judged:
        return risk.statistic.auto(plan.judged[risk.name])
    return plan.families[risk.name]


def _at_least(risk: Risk, family: str, n: int, aim: float) -> str:
    """Say the fewest examples with which anything passes, where no more than that is known."""
    fewest = fewest_examples(risk, family, aim)
    if n >= fewest:
        return "it takes more examples; how many is not known"
    return f"nothing can pass with {how_many(n, 'example')}; it takes at least {fewest:,}"


def _tried(plan: TestPlan, losses: RiskLosses, row: int, i: int, at: int) -> str:
    """Try the test itself on more examples like these, and say how many of them pass."""
    risk = plan.problem.risks[i]
    settings = plan.settings(risk, slice(at, at + 1))
    orders = _ORDERS if settings.family == "betting" else 1
    alike = _alike(losses, row)

    def passes(m: int) -> bool:
        drawn = losses.drawn(row, alike[((np.arange(m) + 0.5) * len(alike) / m).astype(np.intp)])
        passed = sum(
            log_p(risk, drawn, [0], replace(settings, seed=settings.seed + turn))[0]
            < math.log(plan.aims[at])
            for turn in range(1, orders + 1)
        )
        return bool(2 * passed > orders)

    low, high = 0, len(alike)
    if high <= _MOST_TRIED and passes(high):
        return _CLOSE
    while high < _MOST_TRIED:
        low, high = high, min(2 * high, _MOST_TRIED)
        if passes(high):
            break
    else:
        most = max(high, len(alike))
        return f"it takes more than {most:,} examples with losses like these"
    while high - low > 1 + low // 500:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    counted = round(high * _share_that_counts(losses, row))
    shared = ", in groups as they are here," if risk.needs_groups else ""
    return f"about {how_many(counted, 'example')}{shared} with losses like these would have passed"


def _alike(losses: RiskLosses, row: int) -> Places:
    """Bring examples that are alike next to each other, so that any even choice of them has their
    proportions."""
    values = losses.rows([row])[0]
    keys = [values]
    if losses.weights is not None:
        keys.insert(0, losses.weights)
    if losses.groups is not None:
        keys.append(losses.groups.codes)
    return np.lexsort(keys)


def _share_that_counts(losses: RiskLosses, row: int) -> float:
    """Compute the share of the examples that count for a configuration."""
    return float(np.mean(~np.isnan(losses.rows([row])[0])))


def _deviation(losses: RiskLosses, row: int) -> float:
    """Find the standard deviation of the losses of a configuration, on the unit scale."""
    return float(losses.summary.standard_deviation[row])


def _counts_parts(plan: TestPlan, result: TestResult, i: int, at: int) -> bool:
    """Tell whether the exact test of 0/1 losses was settled for losses that are others."""
    risk = plan.problem.risks[i]
    name, by_count = risk.name, plan.families[risk.name] == "binomial"
    if result.calibration is None or not by_count or "betting" not in risk.statistic.p_values:
        return False
    summary, row = result.calibration.risks[name].summary, result.rows[at]
    parts = summary.sums if isinstance(summary, GroupSummary) else (summary,)
    return any(not math.isclose(part.total[row], part.above_zero[row]) for part in parts)


def _labels_left(labelling: Labelling, at: int) -> str:
    """Say whether further labels can still decide about a candidate."""
    used, most = int(labelling.labels[at]), labelling.horizon
    if used >= most:
        return f"all labels of the horizon, {most:,}, are used"
    if at not in labelling.needed:
        return f"after {used:,} of at most {how_many(most, 'label')} no further one can change that"
    return f"not decided by {used:,} of at most {how_many(most, 'label')}"


def _too_few(plan: TestPlan, result: TestResult, i: int, at: int) -> str | None:
    """Say which group is too small for anything to be shown about it; None where none is."""
    risk, groups = plan.problem.risks[i], _sizes(plan, result, i, at)
    if groups is None:
        return None
    name, fewest = min(groups.items(), key=lambda group: group[1])
    needs = fewest_examples(risk, plan.families[risk.name], plan.aims[at])
    if fewest >= needs:
        return None
    return (
        f"group {name} cannot be certified with {how_many(fewest, 'example')}; it needs {needs:,}"
    )
