"""What stood around a test and is shown with it; none of it takes part in the decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riskpilot.guarantee.region import Interval


@dataclass(frozen=True)
class SearchOutline:
    """How a search stood at its end.

    Attributes
    ----------
    intervals : tuple of Interval
        The region of interest, one interval for each risk.
    reference : tuple of float
        The reference point: a value for each risk, then one for the free objective.
    pool : tuple of bool
        Whether each configuration belonged to the initial pool; empty where another search
        evaluated them, which had none.
    """

    intervals: tuple[Interval, ...]
    reference: tuple[float, ...]
    pool: tuple[bool, ...]


@dataclass(frozen=True)
class Background:
    """What stood around a test, for people who look at it.

    Attributes
    ----------
    configs : sequence of mappings
        Every configuration that was considered, in the order of the validation losses.
    numbers : sequence of int
        The trial number of each configuration.
    ledger : sequence of mappings
        The questions that have been put to the calibration data.
    search : SearchOutline, optional
        How the search stood at its end; None where there was none, or none that can be drawn.
    left_out : tuple of int
        The numbers of finished trials that carry no losses, or a free objective that is too large,
        and could not be considered.
    foretold : mapping from int to two mappings
        Of the configurations whose evaluation a race ended, by their place among all: what is
        foretold of each risk on all validation examples, and its standard error, by the name of the
        risk. Empty where that is not at hand.
    """

    configs: Sequence[Mapping[str, Any]] = ()
    numbers: Sequence[int] = ()
    ledger: Sequence[Mapping[str, Any]] = ()
    search: SearchOutline | None = None
    left_out: tuple[int, ...] = ()
    foretold: Mapping[int, tuple[Mapping[str, float], Mapping[str, float]]] = field(
        default_factory=dict
    )


def config_in_words(config: Mapping[str, Any], longest: int | None = None) -> str:
    """Write a configuration in one line, of at most ``longest`` characters where that is given.

    >>> config_in_words({"reg": 0.21052, "layers": 3})
    'reg=0.2105, layers=3'
    >>> config_in_words({"reg": 0.21052, "layers": 3}, longest=12)
    'reg=0.2105,…'
    """
    line = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    )
    return line if longest is None or len(line) <= longest else line[: longest - 1] + "…"


def with_short_numbers(words: str, config: Mapping[str, Any]) -> str:
    """Write a configuration that stands in words with six digits, for people; files keep them all.

    >>> config = {"reg": 0.6055879974838839, "layers": 3}
    >>> with_short_numbers(f"Chosen: {config}", config)
    "Chosen: {'reg': 0.605588, 'layers': 3}"
    """
    short = {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in config.items()
    }
    return words.replace(str(dict(config)), str(short))
