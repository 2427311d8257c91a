"""What the settings of a guided search may be."""

from riskpilot.errors import ProblemError, shown, type_in_words
from riskpilot.guarantee import MOST_EXAMPLES, is_whole
from riskpilot.problem import Problem
from riskpilot.search import Strategy, check_delta_prime

LARGEST_SEED = 2**64 - 1
# No study has more trials than this; a larger pool would only fill the memory.
_LARGEST_POOL = 10**6


def check_settings(
    problem: Problem,
    n_startup_trials: int | None,
    delta_prime: float | None,
    n_calibration: int | None,
    seed: int | None,
    strategy: Strategy,
) -> None:
    """Refuse settings that no search can use."""
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"GuidedSampler takes a Problem first, but got {type_in_words(problem)}. "
            f'Write GuidedSampler(Problem([Risk("error", limit=0.1)], minimize="cost")).'
        )
    if not isinstance(strategy, Strategy):
        raise ProblemError(
            f"strategy must be a Strategy, such as riskpilot.GUIDED or riskpilot.PAPER, but it is "
            f"{shown(strategy)}. Leave it out for the default."
        )
    if delta_prime is not None:
        check_delta_prime(delta_prime)
    for name, value, least, most in (
        ("n_startup_trials", n_startup_trials, 0, _LARGEST_POOL),
        ("n_calibration", n_calibration, 1, MOST_EXAMPLES),
        ("seed", seed, 0, LARGEST_SEED),
    ):
        if value is not None and not is_whole(value, least, most):
            raise ProblemError(
                f"{name} must be a whole number of at least {least} and at most {most}, but it is "
                f"{shown(value)}. Leave it out for the default."
            )
