"""What a selection says that it would have taken: the test itself agrees with the number."""

import re
from typing import Any

import numpy as np
import pytest

import riskpilot as rp

QUANTILE = rp.Risk("harm", 0.5, statistic=rp.Quantile(0.95))
CVAR = rp.Risk("harm", 0.05, statistic=rp.CVaR(0.8))
DIFFERENCE = rp.Risk("harm", 0.05, statistic=rp.Difference("before"))
STRICT_DIFFERENCE = rp.Risk("harm", 0.02, statistic=rp.Difference("before"))


def select(risk: rp.Risk, losses: Any) -> rp.Selection:
    """One configuration, without any loss on validation data; the reference has none, either."""
    given = np.asarray(losses, dtype=float)
    problem = rp.Problem([risk], "cost")

    def beside(m: int) -> dict[str, Any]:
        every = {"before": np.zeros(m), "w": np.ones(m), "groups": np.arange(m) % 2}
        return {name: every[name] for name in problem.beside}

    return rp.select_from_losses(
        problem,
        validation={"harm": np.zeros((1, 200)), "cost": [1.0], **beside(200)},
        calibration={"harm": given[None], **beside(given.size)},
    )


def words(risk: rp.Risk, losses: Any) -> str:
    selection = select(risk, losses)
    assert selection.config is None
    return next(line for line in str(selection).splitlines() if line.startswith("  harm"))


def number(text: str) -> int:
    found = re.search(r"about ([\d,]+) examples", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize(
    ("risk", "m", "least"),
    [
        (QUANTILE, 4, 45),
        (QUANTILE, 44, 45),
        (CVAR, 4, 242),
        (CVAR, 150, 242),
        (CVAR, 191, 242),
        (CVAR, 241, 242),
        (DIFFERENCE, 4, 45),
        (DIFFERENCE, 40, 45),
        (DIFFERENCE, 44, 45),
        (STRICT_DIFFERENCE, 100, 114),
        (rp.Risk("harm", 0.05), 4, 45),
        (rp.Risk("harm", 0.05, p_value="hoeffding"), 4, 461),
    ],
)
def test_the_number_for_losses_of_zero_is_the_least_that_passes(
    risk: rp.Risk, m: int, least: int
) -> None:
    text = words(risk, np.zeros(m))
    assert "close" not in text
    assert number(text) == least
    assert select(risk, np.zeros(least - 1)).config is None
    assert select(risk, np.zeros(least)).config is not None


def test_the_numbers_are_those_of_the_planner() -> None:
    for risk, least in ((QUANTILE, 45), (CVAR, 242)):
        (plan,) = rp.plan_calibration(rp.Problem([risk], "cost"), 4, binary=False)
        assert plan.fewest == least


@pytest.mark.parametrize("m", [4, 20, 30, 44])
def test_a_quantile_of_losses_that_are_not_0_or_1_lacks_examples_and_no_other_test(m: int) -> None:
    text = words(QUANTILE, np.linspace(0, 0.3, m))
    assert "0/1" not in text
    assert "betting" not in text
    assert number(text) == 45


def test_losses_that_a_quantile_cannot_pass_with_get_no_number() -> None:
    on_the_share = np.repeat([0.0, 1.0], [95, 5])
    assert "it takes more than 65,536 examples with losses like these" in words(
        QUANTILE, on_the_share
    )
    above = np.repeat([0.0, 1.0], [93, 7])
    assert "more examples would not help at this value" in words(QUANTILE, above)


@pytest.mark.parametrize(
    ("risk", "losses"),
    [
        (QUANTILE, np.repeat([0.0, 1.0], [97, 3])),
        (DIFFERENCE, np.repeat([0.0, 1.0], [48, 2])),
        (CVAR, np.repeat([0.0, 0.08], [270, 30])),
    ],
)
def test_about_so_many_examples_like_these_pass_and_half_of_them_do_not(
    risk: rp.Risk, losses: np.ndarray[Any, Any]
) -> None:
    needed = number(words(risk, losses))
    enough = round(1.3 * needed) if risk is CVAR else needed  # bets hang on the order as well
    for m, passes in ((enough, True), (needed // 2, False)):
        alike = losses[((np.arange(m) + 0.5) * losses.size / m).astype(int)]
        assert (select(risk, alike).config is not None) == passes


def test_weighted_examples_are_tried_with_their_weights() -> None:
    weighted = rp.Risk("harm", 0.05, weights="w", largest_weight=4.0)
    needed = number(words(weighted, np.zeros(20)))
    assert select(weighted, np.zeros(needed - 1)).config is None
    assert select(weighted, np.zeros(needed)).config is not None


def test_groups_keep_their_shares() -> None:
    gap = rp.Risk("harm", 0.05, statistic=rp.GroupGap())
    losses = np.repeat([0.0, 1.0], [180, 20])
    text = words(gap, np.random.default_rng(0).permutation(losses))
    assert "examples, in groups as they are here, with losses like these would have" in text
