"""What a watch knows between two updates; JSON holds it exactly."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from riskpilot.common.arrays import FloatArray, IntArray
from riskpilot.errors import CertificateError, shown
from riskpilot.watch.rule import Rule

# The columns of sums over labels: how many there are, how many of them count for the stream, and
# the sums of values, of squared deviations from the recent mean before each, and of weights.
ROWS, COUNT, TOTAL, SPREAD, MASS = range(5)
N_SUMS = 5


@dataclass(frozen=True)
class Segment:
    """Sums over the labels of one stream from some moment on.

    ``row``: after how many labels of the watch it begins. ``start``: after how many labels of the
    stream. The other fields are sums over the ``count`` labels of the stream since then.
    """

    row: int
    start: int
    count: int
    total: float
    spread: float
    mass: float


def segment_between(start: FloatArray, stop: FloatArray) -> Segment:
    """Make a segment of the sums where it begins and where it ends, each of shape (5,)."""
    since = stop - start
    return Segment(
        row=int(start[ROWS]),
        start=int(start[COUNT]),
        count=int(since[COUNT]),
        total=float(since[TOTAL]),
        spread=float(since[SPREAD]),
        mass=float(since[MASS]),
    )


def best_segment(
    rule: Rule, stream: int, rise: FloatArray, starts: FloatArray, sums: FloatArray
) -> Segment:
    """Sum the labels of a stream since the best moment of the bet that would have won the most."""
    bet = int(np.argmax(rule.prior_array[stream] * rise[stream]))
    return segment_between(starts[stream, bet], sums[stream])


@dataclass(frozen=True)
class Alarm:
    """Stream ``stream`` reached its threshold at label ``row`` of the watch (the first is 1).

    ``segment``: the labels from the estimated time of the change until the alarm.
    """

    stream: int
    row: int
    segment: Segment


@dataclass(frozen=True, eq=False)
class State:
    """The capital of K streams with G bets each, and what is needed to say when the risk changed.

    Nothing here grows with the number of labels, and no array is ever written to again.

    Parameters
    ----------
    sums : array of shape (K, 5)
        How many labels there are, how many of them count for the stream, and over these the sums
        of values, of squared deviations from the recent mean before each, and of weights.
    recent : array of shape (K,)
        The recent mean, in which each label counts a little less than the one after it.
    restarts : array of int, shape (K,)
        How many restarts have been paid.
    capital : array of shape (K, G)
        What the bets hold, all restarts together. The reserve is not in it.
    rise : array of shape (K, G)
        By how much each bet would have multiplied its capital since the best moment to begin.
    starts : array of shape (K, G, 5)
        The sums at that moment.
    alarms : tuple of Alarm
        The first alarm of each stream that has raised one, in the order in which they came.
    """

    sums: FloatArray
    recent: FloatArray
    restarts: IntArray
    capital: FloatArray
    rise: FloatArray
    starts: FloatArray
    alarms: tuple[Alarm, ...] = ()

    @property
    def rows(self) -> int:
        """The number of labels so far, those that count for no stream included."""
        return int(self.sums[0, ROWS])


def begin(rule: Rule) -> State:
    """Start a watch, before its first label.

    Parameters
    ----------
    rule : Rule
        The limits and bets, from `make_rule`.

    Returns
    -------
    State
        With all capital in the bets, but for the reserve.
    """
    k, g = rule.prior_array.shape
    return State(
        sums=np.zeros((k, N_SUMS)),
        recent=rule.limit_array.copy(),
        restarts=np.zeros(k, np.int64),
        capital=(1 - rule.reserve) * rule.prior_array,
        rise=np.ones((k, g)),
        starts=np.zeros((k, g, N_SUMS)),
    )


# The format in which a watch is written; another one is not read.
FORMAT = "riskpilot-watch/1"

_ARRAYS: dict[str, type] = {
    "sums": np.float64,
    "recent": np.float64,
    "restarts": np.int64,
    "capital": np.float64,
    "rise": np.float64,
    "starts": np.float64,
}


def to_dict(rule: Rule, state: State) -> dict[str, Any]:
    """Write a watch as plain lists, numbers and texts.

    ``json`` writes the shortest text that reads back as the same float, so that nothing is lost.
    The rule is written with its bets and its reserve: a later version that would choose others
    must go on with those that the capital was won with.

    Parameters
    ----------
    rule : Rule
        The limits and bets.
    state : State
        What `begin` or `update` returned.

    Returns
    -------
    dict
        Ready for `json.dumps`; `from_dict` reads it.
    """
    arrays = {name: getattr(state, name).tolist() for name in _ARRAYS}
    alarms = [asdict(alarm) for alarm in state.alarms]
    return {"format": FORMAT, "rule": asdict(rule), **arrays, "alarms": alarms}


def from_dict(data: Mapping[str, Any]) -> tuple[Rule, State]:
    """Read a watch that `to_dict` wrote.

    Parameters
    ----------
    data : mapping
        What `json.loads` made of the text.

    Returns
    -------
    tuple of Rule and State
        The same numbers to the last bit.

    Raises
    ------
    CertificateError
        Where it is in another format, or something is missing, unknown or of another shape.
    """
    _check_names(data)
    try:
        rule = Rule(**{name: _tuples(value) for name, value in data["rule"].items()})
        arrays: dict[str, Any] = {
            name: np.array(data[name], dtype=kind) for name, kind in _ARRAYS.items()
        }
        alarms = tuple(
            Alarm(entry["stream"], entry["row"], Segment(**entry["segment"]))
            for entry in data["alarms"]
        )
        state = State(**arrays, alarms=alarms)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CertificateError(
            f"The state of a watch has a rule, alarms and {', '.join(_ARRAYS)}, but this one "
            f"cannot be read: {error!r}. Read it with the version of riskpilot that wrote it."
        ) from error
    _check_shapes(rule, state)
    return rule, state


def _check_names(data: object) -> None:
    """Refuse what is no state of a watch, or one of another version."""
    found = data.get("format") if isinstance(data, Mapping) else None
    if found != FORMAT:
        raise CertificateError(
            f"The state of a watch must be in the format {FORMAT!r}, but this one is in "
            f"{shown(found)}. Read it with the version of riskpilot that wrote it."
        )
    assert isinstance(data, Mapping)
    odd = sorted(map(str, data.keys() ^ {"format", "rule", "alarms", *_ARRAYS}))
    if odd:
        raise CertificateError(
            f"The state of this watch is incomplete or has been edited: see {shown(odd)[1:-1]}. "
            f"Go back to a copy, or begin a new watch."
        )


def _check_shapes(rule: Rule, state: State) -> None:
    """Refuse a state whose arrays do not fit its rule."""
    fresh = begin(rule)
    for name in _ARRAYS:
        found, expected = getattr(state, name), getattr(fresh, name)
        if found.shape != expected.shape or not np.isfinite(found).all():
            raise CertificateError(
                f"The state of this watch needs finite numbers of shape {expected.shape} under "
                f"{name!r}, but it has shape {found.shape}. The file was damaged or changed; go "
                f"back to a copy, or begin a new watch."
            )


def _tuples(value: Any) -> Any:
    """Turn lists, and lists inside them, into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
