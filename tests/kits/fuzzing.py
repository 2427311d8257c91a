"""Odd values, and valid calls in which one or two arguments have been made odd.

The property that `test_fuzz_kit` holds every public function to: a call returns, or it raises one
of the errors that say what is wrong. Anything else is a raw traceback: an exception of Python, of
numpy or of Optuna, a warning, a call that does not end or that asks for gigabytes.
"""

import inspect
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from riskpilot.errors import RiskpilotError

SECONDS = 10  # a call that takes longer does not end
GIGABYTES = 6  # what a call may ask for beside what the process has


class Outburst(Exception):
    """What an object raises that cannot even be shown or compared."""


class Unprintable:
    """An object whose ``__repr__`` fails, as that of a half-made one does."""

    def __repr__(self) -> str:
        raise Outburst("__repr__")


class Incomparable:
    """An object whose comparisons are no truth values, as those of arrays and data frames."""

    def __eq__(self, other: object) -> Any:
        return np.array([True, False])

    def __ne__(self, other: object) -> Any:
        return np.array([True, False])

    def __hash__(self) -> int:
        return 1


class Hollow:
    """An object that says it has a length, but none of its items can be had."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: object) -> Any:
        raise IndexError(place)


NUMBERS = (
    *(0, 1, -1, 2, 10**6, 10**12, -(10**12), 2**53 + 1, 2**63, 2**64, 10**400, -(10**400)),
    *(True, False, 0.0, -0.0, 0.5, 2.5, -0.1, 1.0, 1.5, 5e-324, 1e-300, 1e-17, 1e16),
    *(1e19, 1e300, 1.7e308, -1.7e308, float("nan"), float("inf"), float("-inf"), 1j, 0.5 + 0j),
    *(np.True_, np.False_, np.int8(3), np.uint64(2**64 - 1), np.float16(0.5), np.float32("nan")),
    *(np.float64(0.1), np.longdouble("1e400"), np.complex128(1j), np.datetime64("2020-01-01")),
    *(np.timedelta64(3, "s"), np.datetime64("NaT"), np.str_("a"), np.bytes_(b"\xff")),
    *(Fraction(1, 3), Fraction(10**400, 3), Decimal("0.1"), Decimal("NaN"), Decimal("sNaN")),
    *(Decimal("Infinity"), Decimal("1e999999")),
)
TEXTS = (
    *("", " ", "a", "error", "cost", "groups", "0.1", "nan", "inf", "1e400", "-1", "True", "None"),
    *("é", "名", "\x00", "a\x00b", "\n", "a\nb", "\t", "\x1b[31m", "\ud800", "a\udcff", "\u202e"),
    *("a | b", "a,b", "a=b", "%s", "{0}", "[red]", "<b>", "../x", "x" * 10_000, "é" * 300),
)
# Containers and objects are made anew for every call: a function may change what it is given.
MAKERS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: ...,
    lambda: 10**5000,
    lambda: NotImplemented,
    object,
    lambda: object,
    Unprintable,
    Incomparable,
    Hollow,
    lambda: b"",
    lambda: b"\xff\xfe",
    lambda: bytearray(b"ab"),
    lambda: (),
    lambda: (0.5,),
    lambda: (1, 2, 3),
    list,
    lambda: [None],
    lambda: ["a", "b"],
    lambda: [[1, 2], [3]],
    lambda: [[[0.5]]],
    lambda: [float("nan")] * 3,
    lambda: [0.5, "a", None],
    lambda: [Unprintable()],
    dict,
    lambda: {"a": 1},
    lambda: {(1, 2): 3},
    lambda: {1: 2, "a": 3},
    lambda: {"error": None},
    lambda: {Unprintable(): 1},
    lambda: {"a": {"b": {"c": [1]}}},
    set,
    lambda: {1, "a"},
    lambda: frozenset({0.5}),
    lambda: range(3),
    lambda: iter([1, 2]),
    lambda: (x for x in (0.1, 0.2)),
    lambda: Path("somewhere"),
    lambda: memoryview(b"abc"),
    lambda: np.array(0.5),
    lambda: np.array(None),
    lambda: np.array([]),
    lambda: np.empty((0, 3)),
    lambda: np.empty((3, 0)),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.array([0.1, np.nan, np.inf]),
    lambda: np.array([1, 2, 3]),
    lambda: np.array([2**63], dtype=np.uint64),
    lambda: np.array([True, False]),
    lambda: np.array([1j]),
    lambda: np.array(["a", "é", ""]),
    lambda: np.array([b"\xff", b"a"]),
    lambda: np.array([None, "a", 0.5], dtype=object),
    lambda: np.array([10**400, 1], dtype=object),
    lambda: np.array([Fraction(1, 3)], dtype=object),
    lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    lambda: np.array([1, 2], dtype="timedelta64[s]"),
    lambda: np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    lambda: np.ma.masked_array([0.1, 0.2], mask=[True, False]),
    lambda: np.ma.masked,
    lambda: np.array([1e308, -1e308]),
    lambda: np.array([5e-324], dtype=np.float64),
    lambda: np.array([0.5], dtype=np.float16),
    lambda: np.array([0.5], dtype=np.longdouble),
    lambda: np.matrix([[0.1, 0.2]]),
)
if find_spec("pandas"):
    import pandas

    MAKERS += (
        lambda: pandas.Series([0.1, None]),
        lambda: pandas.DataFrame({"error": [0.1, 0.2]}),
        lambda: pandas.Series(["a", None], dtype="category"),
        lambda: pandas.NA,
    )
# What JSON can hold.
JSON_MAKERS: tuple[Callable[[], Any], ...] = (
    *(lambda value=value: value for value in (None, True, False, 0, 1, -1, 3, 10**12, 10**400)),
    *(lambda value=value: value for value in (0.5, -0.5, 1e308, float("nan"), float("inf"))),
    *(
        lambda value=value: value
        for value in TEXTS
        if "\ud800" <= max(value, default="") < "\ue000"
    ),
    *(lambda value=value: value for value in ("", "a", "0.1", "é", "\x00", "error", "x" * 10_000)),
    *(
        list,
        dict,
        lambda: [None],
        lambda: [1, "a"],
        lambda: {"a": 1},
        lambda: [[0.5]],
        lambda: [{}],
    ),
)

ODD = st.one_of(
    st.sampled_from(MAKERS).map(lambda make: make()),
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.floats(),
    st.integers(-3, 10),
)
ODD_JSON = st.sampled_from(JSON_MAKERS).map(lambda make: make())


def _with(array: np.ndarray, value: Any, dtype: Any = float) -> np.ndarray:
    """The array with its first entry replaced."""
    changed = array.astype(dtype)
    if changed.size:
        changed.flat[0] = value
    return changed


def _ragged(array: np.ndarray) -> Any:
    rows = array.tolist()
    if not isinstance(rows, list) or not rows:
        return rows
    if isinstance(rows[0], list):
        rows[0] = rows[0][:-1]
    else:
        rows[0] = [rows[0]]
    return rows


# An array of the right shape gets further than any other value.
ARRAYS: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda a: a.tolist(),
    lambda a: tuple(a.tolist()) if a.ndim else a,
    lambda a: a.astype(object),
    lambda a: a.astype(str),
    lambda a: a.astype("S8") if a.dtype.kind != "U" else np.char.encode(a, "utf-8"),
    lambda a: np.full(a.shape, b"\xff\xfe"),
    lambda a: np.full(a.shape, "é\x00\n | "),
    lambda a: np.full(a.shape, None, dtype=object),
    lambda a: np.full(a.shape, 10**400, dtype=object),
    lambda a: np.full(a.shape, Fraction(1, 2), dtype=object),
    lambda a: np.full(a.shape, Decimal("0.5"), dtype=object),
    lambda a: np.full(a.shape, np.datetime64("2020-01-01")),
    lambda a: np.full(a.shape, np.timedelta64(1, "s")),
    lambda a: np.full(a.shape, 0.5 + 0j),
    lambda a: np.full(a.shape, (1, 2.0), dtype=[("a", int), ("b", float)]),
    lambda a: np.zeros(a.shape, dtype=bool),
    lambda a: np.ones(a.shape, dtype=np.int8),
    lambda a: np.full(a.shape, 0.25, dtype=np.float16),
    lambda a: np.full(a.shape, 0.25, dtype=np.float32),
    lambda a: np.full(a.shape, 0.25, dtype=np.longdouble),
    lambda a: np.full(a.shape, np.nan),
    lambda a: np.full(a.shape, np.inf),
    lambda a: np.full(a.shape, -1.0),
    lambda a: np.full(a.shape, 1.7e308),
    lambda a: np.full(a.shape, 5e-324),
    lambda a: np.full(a.shape, 2**63, dtype=np.uint64),
    lambda a: np.ma.masked_array(np.full(a.shape, 0.5), mask=np.ones(a.shape, dtype=bool)),
    lambda a: _with(a, np.nan),
    lambda a: _with(a, np.inf),
    lambda a: _with(a, -0.5),
    lambda a: _with(a, 1e-320),
    lambda a: _with(a, 1.7e308),
    lambda a: _with(a, None, object),
    lambda a: _with(a, Unprintable(), object),
    lambda a: _with(a, "a\ud800", object),
    lambda a: a.T,
    lambda a: a[..., :-1] if a.ndim else a,
    lambda a: a[:1] if a.ndim else a,
    lambda a: a[:0] if a.ndim else a,
    lambda a: a[..., :0] if a.ndim else a,
    lambda a: a[None],
    lambda a: a.ravel(),
    lambda a: a.flat[0] if a.size else a,
    _ragged,
)
SCALARS: tuple[Callable[[Any], Any], ...] = (
    lambda x: -x,
    lambda x: x * 1e300,
    lambda x: x * 1e-300,
    lambda x: x + 1,
    lambda x: str(x),
    lambda x: np.float32(x),
    lambda x: np.array(x),
    lambda x: np.array([x]),
    lambda x: [x],
    lambda x: Fraction(x),
    lambda x: Decimal(str(x)),
    lambda x: float(x),
    lambda x: int(x),
    lambda x: complex(x),
)
WORDS: tuple[Callable[[str], Any], ...] = (
    lambda x: x + "\x00",
    lambda x: x + "\ud800",
    lambda x: x + " ",
    lambda x: x.upper(),
    lambda x: x.encode(),
    lambda x: np.str_(x),
    lambda x: [x],
    lambda x: x * 3_000,
    lambda x: x[:-1],
)
LETTERS: tuple[Callable[[str], str], ...] = (  # what stays text
    lambda x: x + "\ud800",
    lambda x: x + "é",
    lambda x: x[:-1],
    lambda x: x * 2,
)


@st.composite
def changed(draw: Any, value: Any, odd: Any = ODD) -> Any:
    """A value near a valid one, or an odd one in its place, or in the place of a part of it."""
    if draw(st.integers(0, 3)) == 0:
        return draw(odd)
    match value:
        case dict() if value:
            key = draw(st.sampled_from(list(value)))
            what = draw(st.sampled_from(("value", "value", "value", "drop", "add", "key")))
            rest = {k: v for k, v in value.items() if k != key}
            match what:
                case "drop":
                    return rest
                case "add":
                    return {**value, draw(_KEYS if odd is ODD else _TEXT_KEYS): draw(odd)}
                case "key":
                    return {**rest, draw(_KEYS if odd is ODD else _TEXT_KEYS): value[key]}
            return {**value, key: draw(changed(value[key], odd))}
        case list() | tuple() if value:
            place = draw(st.integers(0, len(value) - 1))
            what = draw(st.sampled_from(("value", "value", "value", "drop", "add")))
            items = list(value)
            match what:
                case "drop":
                    del items[place]
                case "add":
                    items.append(draw(odd))
                case _:
                    items[place] = draw(changed(value[place], odd))
            return tuple(items) if isinstance(value, tuple) else items
        case np.ndarray():
            return _apply(draw(st.sampled_from(ARRAYS)), value)
        case str():
            return draw(st.sampled_from(WORDS if odd is ODD else LETTERS))(value)
        case int() | float() if odd is ODD:
            return _apply(draw(st.sampled_from(SCALARS)), value)
    return draw(odd)


def _apply(change: Callable[[Any], Any], value: Any) -> Any:
    """A changed value; None where this one cannot be changed so, as an array of texts to floats."""
    try:
        return change(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return None


_KEYS = st.sampled_from(("", "a", "é", "\ud800", "x" * 300, 1, None, (1, 2), 2.5, b"a", True))
_TEXT_KEYS = st.sampled_from(("", "a", "é", "extra"))


@dataclass(frozen=True)
class Fresh:
    """A value that is made anew for every call, since calls change it."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A public function, and calls of it that are valid.

    ``name``: how users write it. ``valid``: arguments of calls, by keyword. ``use``: what is done
    with the result, which must not fail either. ``examples``: how many calls are drawn in a short
    run. ``odd``: what is put in the place of arguments. ``allowed``: the errors that callers
    expect. ``signatures``: where the names of the arguments are read; the function's by default.
    ``others_warn``: whether warnings of other packages are none of ours. ``far``: calls at the ends
    of what is accepted, or beyond: they are made as they are, and changed, too.
    """

    name: str
    function: Callable[..., Any]
    valid: tuple[Mapping[str, Any], ...]
    use: Callable[[Any], object] = repr
    examples: int = 100
    odd: Any = ODD
    allowed: tuple[type[Exception], ...] = (RiskpilotError,)
    signatures: tuple[Callable[..., Any], ...] = ()
    others_warn: bool = False
    far: tuple[Mapping[str, Any], ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The names of all arguments that can be changed, with their defaults."""
        empty = inspect.Parameter.empty
        result = dict.fromkeys((name for arguments in self.valid for name in arguments), empty)
        for function in self.signatures or (self.function,):
            for name, parameter in inspect.signature(function).parameters.items():
                if name != "self" and parameter.kind in (
                    parameter.POSITIONAL_OR_KEYWORD,
                    parameter.KEYWORD_ONLY,
                ):
                    result[name] = parameter.default
        return result

    def run(self, arguments: Mapping[str, Any]) -> None:
        """Call the function, and use what it returns."""
        made = {k: v.make() if isinstance(v, Fresh) else v for k, v in arguments.items()}
        self.use(self.function(**made))


class Call:
    """A drawn call, which can be shown whatever it holds."""

    def __init__(self, arguments: Mapping[str, Any], changed: tuple[str, ...]) -> None:
        self.arguments, self.changed = arguments, changed

    def __repr__(self) -> str:
        return ", ".join(f"{name}={shown(self.arguments[name])}" for name in self.changed)


def shown(value: Any) -> str:
    """A value in at most 300 characters, even where it cannot be printed."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {type(error).__name__} when it is shown>"
    return ascii(text[:300])[1:-1]


@st.composite
def calls(draw: Any, case: Case) -> Call:
    """A valid call with one or two of its arguments changed."""
    is_far = bool(case.far) and draw(st.booleans())
    arguments = dict(draw(st.sampled_from(case.far if is_far else case.valid)))
    parameters = case.parameters
    # What a valid call is made of is changed more often than what it leaves out.
    pool = [*sorted(arguments), *sorted(arguments), *sorted(parameters)]
    fewest = 0 if is_far else 1
    names = draw(st.lists(st.sampled_from(pool), min_size=fewest, max_size=2, unique=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of odd arrays when they are made
        for name in names:
            valid = arguments.get(name, parameters[name])
            known = valid is not inspect.Parameter.empty and not isinstance(valid, Fresh)
            arguments[name] = draw(changed(valid, case.odd) if known else case.odd)
    return Call(arguments, tuple(arguments if is_far else names))


def raw_error(case: Case, call: Call) -> BaseException | None:
    """What a call raises that it must not; None where it returns or is refused in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if case.others_warn else "error")
        warnings.filterwarnings("error", module="riskpilot")
        try:
            with within(SECONDS):
                case.run(call.arguments)
        except case.allowed as error:
            try:
                str(error)
            except Exception as failure:
                return failure
            return None
        except (Exception, TooSlow) as error:
            return error
    return None


class TooSlow(BaseException):
    """Raised in a call that does not end."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stop what works for more than so many seconds, or waits for twenty times as long.

    On a busy machine a call must not pass for one that never ends.
    """

    def stop(*_: object) -> None:
        raise TooSlow(f"more than {seconds} seconds")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, 20 * seconds),
    }
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def little_memory(gigabytes: float = GIGABYTES) -> Iterator[None]:
    """Let this process have only so much more memory than it has: what asks for more fails."""
    statm = Path("/proc/self/statm")
    if not statm.exists():  # no Linux: the time limit alone must do
        yield
        return
    pages = int(statm.read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
