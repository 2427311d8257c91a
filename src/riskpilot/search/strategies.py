"""Strategies: the choices that make up a search, and the presets of the paper and the default."""

from dataclasses import dataclass, replace

from riskpilot.errors import ProblemError, shown
from riskpilot.guarantee import DELTA_PRIME, DOUBT, TRUST, as_number
from riskpilot.search import choices
from riskpilot.search.choices import Front, Reference, Scale
from riskpilot.search.pools import Pool, ends_and_latin_hypercube, uniform
from riskpilot.statistics import P_VALUES

_REGION_FAMILIES = P_VALUES[1:]  # all but "auto"
# Settings that are numbers of at least 0: the largest that is taken, what each is, and what to use.
_RANGES = {
    "caution": (100, "a number of standard deviations", "2.0, or 0 for none"),
    "exploration": (100, "a number of evaluations for each parameter", "4.0, or 0 for none"),
    "fallback": (100, "a multiple of what free objectives differ by", "1.0, or 0 for none"),
    "own_noise": (
        1,
        "a share of the noise",
        "0.15, or 1 where evaluations see different examples",
    ),
}


@dataclass(frozen=True)
class Strategy:
    """The choices that make up a search; `GUIDED`, `PAPER`, `ONE_SIDED` and `HVI` are presets.

    Change one choice of a preset with ``dataclasses.replace(riskpilot.GUIDED, bold=False)``.

    Parameters
    ----------
    pool : callable, default ends_and_latin_hypercube
        Where a parameter stands in a slot of the initial pool: a function of the slot, the size of
        the pool and a random generator, with values in [0, 1].
    reference : callable, default open_reference
        The point up to which improvement counts: a function of the region of interest, the
        posterior means over the space and the observed values.
    front : callable, default posterior_front
        The front that is to be improved: a function of the fitted model.
    scale : callable, default chance_to_pass
        How risks count near their limits: a function of the region of interest and of a shift of
        what passes, which returns a function of objectives.
    safe_first : bool, default True
        Whether a configuration that can pass is looked for before a better one.
    bold : bool, default True
        Whether values count as optimistic as long as everything evaluated is expected to pass.
    avoid_repeats : bool, default True
        Whether improvements count by the chance that no earlier evaluation has shown them.
    region_family : str, optional
        The p-value whose bounds make the region of interest; by default the risk's own.
    delta_prime : float, default 0.05
        The width of the region of interest; smaller is wider.
    trust : float, default 0.7
        The chance that validation is not too optimistic; 1 trusts it.
    doubt : float, default 0.2
        By up to what share of the largest mean that passes validation risks are too low otherwise.
    caution : float, default 2.0
        How risky a configuration is expected to be that is unlike all evaluated ones: by so many
        standard deviations of the evaluated risks more than their mean. It counts as soon as an
        evaluation is expected to pass, or nearly so where a safe configuration was named.
    exploration : float, default 4.0
        For how long the search also goes by what its surrogates do not know: for so many
        evaluations for each of two parameters, 8 by default. Improvements are then averaged over
        what the surrogates leave likely, and proposals leave the line on which all evaluations
        lie. With one parameter, or more than two, it goes by what surrogates expect. Three things
        depend on this number only through its being above 0: where there is a penalty, proposals
        of three parameters leave the line as well; values of choices that nobody has tried are
        tried now and then, whatever the number of parameters; and where next to nothing is left to
        gain among at most three, every third evaluation goes far from all others. 0 switches all of
        it off. A choice counts as many parameters as it has values.
    fallback : float, default 1.0
        What it is worth to have anything certified at all where no safe configuration was named:
        nothing certified counts as worse than the worst free objective by so many times what free
        objectives differ by. It sends some evaluations to safer places than seem to be needed.
    own_noise : float, default 0.15
        The share of an evaluation's noise that is its own. The rest it has in common with its
        neighbours, which see the same examples, so that differences between them are known better
        than their means are.

    Raises
    ------
    ProblemError
        If a choice is not of its kind.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(GUIDED, bold=False).avoid_repeats
    True
    """

    pool: Pool = ends_and_latin_hypercube
    reference: Reference = choices.open_reference
    front: Front = choices.posterior_front
    scale: Scale = choices.chance_to_pass
    safe_first: bool = True
    bold: bool = True
    avoid_repeats: bool = True
    region_family: str | None = None
    delta_prime: float = DELTA_PRIME
    trust: float = TRUST
    doubt: float = DOUBT
    caution: float = 2.0
    exploration: float = 4.0
    fallback: float = 1.0
    own_noise: float = 0.15

    def __post_init__(self) -> None:
        for name in ("pool", "reference", "front", "scale"):
            if not callable(value := getattr(self, name)) or isinstance(value, type):
                raise ProblemError(
                    f"Strategy: {name} must be a function, but it is {shown(value)}. Take one of "
                    f"a preset: dataclasses.replace(riskpilot.GUIDED, ...)."
                )
        for name in ("safe_first", "bold", "avoid_repeats"):
            if not isinstance(value := getattr(self, name), bool):
                raise ProblemError(
                    f"Strategy: {name} must be True or False, but it is {shown(value)}. "
                    f"Leave it out for the default."
                )
        family = self.region_family
        if family is not None and not (isinstance(family, str) and family in _REGION_FAMILIES):
            raise ProblemError(
                f"Strategy: region_family must be one of {', '.join(_REGION_FAMILIES)}, "
                f"but it is {shown(family)}. Leave it out for the risk's own test."
            )
        check_delta_prime(self.delta_prime)
        check_hedge(self.trust, self.doubt)
        for name, (most, what, use) in _RANGES.items():
            number = as_number(value := getattr(self, name))
            if number is None or not 0 <= number <= most:
                raise ProblemError(
                    f"Strategy: {name} is {what} and must lie in [0, {most}], but it is "
                    f"{shown(value)}. Use {name}={use}."
                )


def check_delta_prime(delta_prime: float) -> None:
    """Refuse a width of the region of interest that is no probability."""
    if not 0 < (as_number(delta_prime) or 0) < 1:
        raise ProblemError(
            f"delta_prime sets the width of the region of interest and must lie in (0, 1), but it "
            f"is {shown(delta_prime)}. Use delta_prime=0.05; smaller is wider."
        )


def check_hedge(trust: float, doubt: float) -> None:
    """Refuse a trust in validation that is no chance, and a doubt about it that is no share."""
    number = as_number(trust)
    if number is None or not 0 <= number <= 1:
        raise ProblemError(
            f"trust is the chance that validation is not too optimistic and must lie in [0, 1], "
            f"but it is {shown(trust)}. Use trust=0.7, or 1 to trust validation."
        )
    number = as_number(doubt)
    if number is None or not 0 <= number < 1:
        raise ProblemError(
            f"doubt is the share of a risk up to which validation may be too optimistic and must "
            f"lie in [0, 1), but it is {shown(doubt)}. Use doubt=0.2, or trust=1 to trust "
            f"validation."
        )


def without_limits(strategy: Strategy) -> Strategy:
    """Change a strategy to one that asks for no limits: it improves the whole front."""
    return replace(
        strategy,
        reference=choices.fixed_reference,
        scale=choices.as_they_are,
        safe_first=False,
        bold=False,
        fallback=0.0,
    )


GUIDED = Strategy()
"""The default search, with all that the page of the method lists as different from the paper."""

PAPER = Strategy(
    pool=uniform,
    reference=choices.guided_reference,
    front=choices.observed_front,
    scale=choices.as_they_are,
    safe_first=False,
    bold=False,
    avoid_repeats=False,
    region_family="hoeffding_bentkus",
    delta_prime=1e-4,
    trust=1.0,
    doubt=0.0,
    caution=0.0,
    exploration=0.0,
    fallback=0.0,
    own_noise=1.0,
)
"""The search by the paper's equations; what the paper leaves open is handled as in `GUIDED`."""

ONE_SIDED = replace(PAPER, reference=choices.one_sided_reference)
"""The paper's search with a region of interest that has an upper edge alone."""

HVI = replace(PAPER, reference=choices.fixed_reference)
"""The paper's search with a fixed reference point: it improves the whole front, without a region
of interest."""
