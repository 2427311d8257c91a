"""What an argument must be to be of use: a finite number, or a name that can be shown."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from numbers import Real

import numpy as np

from riskpilot.errors import is_visible

# Below this probability of failure a confidence in per cent is a row of nines.
_TINY_DELTA = 1e-9
# Below this many per cent, twelve places behind the point may not be enough.
_TINY_PERCENT = 1e-3


def finite_number(value: object) -> float | None:
    """The number as a float; None for what is no number, not finite, a truth value or a text.

    >>> finite_number(np.float32(0.5)), finite_number("0.5"), finite_number(10**400)
    (0.5, None, None)
    """
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):  # numpy counts spans of time among integers
        return None
    return number if math.isfinite(number) else None


def is_flag(value: object) -> bool:
    """Whether a value is True or False, of Python or of numpy."""
    return isinstance(value, bool | np.bool_)


def is_name(value: object) -> bool:
    """Whether a value is a text that can name a quantity: not empty, and all of it visible.

    >>> is_name("error rate"), is_name(""), is_name(b"error"), is_name("er\\x00ror")
    (True, False, False, False)
    """
    return isinstance(value, str) and bool(value.strip()) and all(map(is_visible, value))


def one_minus(value: float) -> float:
    """One minus a number in decimal arithmetic, so that one minus 0.9 is 0.1 and not 0.09999...

    >>> one_minus(0.9), one_minus(one_minus(0.9))
    (0.1, 0.9)
    """
    return float(1 - Decimal(repr(float(value))))


def exact(number: float) -> str:
    """A number in as few digits as tell it apart: a promise must not be rounded.

    >>> exact(50.0), exact(0.175), exact(0.12345678)
    ('50', '0.175', '0.12345678')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def how_many(number: int, one: str, several: str | None = None) -> str:
    """Write a number of things; ``several``: their name where it is not the other with an s.

    >>> how_many(1, "label"), how_many(2000, "label"), how_many(0, "study", "studies")
    ('1 label', '2,000 labels', '0 studies')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def percent(share: float) -> str:
    """A share in per cent, without rounding a chance of failure away.

    >>> percent(0.9), percent(one_minus(1e-9)), percent(1e-15)
    ('90%', '99.9999999%', '1e-13%')
    """
    hundredfold = 100 * share
    tiny = abs(hundredfold) < _TINY_PERCENT
    return f"{exact(float(f'{hundredfold:.12g}') if tiny else round(hundredfold, 12))}%"


def confidence(delta: float) -> str:
    """The probability with which a promise holds that may fail with ``delta``, never rounded up.

    >>> confidence(0.1), confidence(0.00012345), confidence(1 / 3), confidence(1e-15)
    ('90%', '99.987655%', '66.666666666666%', '1 - 1e-15')
    """
    if delta < _TINY_DELTA:
        return f"1 - {exact(delta)}"
    kept = 100 * (1 - Decimal(repr(float(delta))))
    return f"{kept.quantize(Decimal('1e-12'), ROUND_FLOOR).normalize():f}%"


def on_its_side(value: float, mark: float, digits: int = 4, most: int = 12) -> str:
    """Write a number in a few digits, and in more where these do not show its side of a mark.

    ``most``: after so many digits they are taken for one; the arithmetic of floats adds others.

    >>> on_its_side(0.119995, 0.12), on_its_side(0.31, 0.12), on_its_side(0.1 + 0.2, 0.3)
    ('0.119995', '0.31', '0.3')
    """
    texts = (f"{value:.{n}g}" for n in range(digits, most + 1))
    on_it = (text for text in texts if _side(float(text), mark) == _side(value, mark))
    return next(on_it, f"{mark:.{most}g}")


def _side(value: float, mark: float) -> int:
    """Say whether a number is below a mark (-1), at it (0) or above it (1)."""
    return (value > mark) - (value < mark)


def bound_in_words(bound: float, *, up: bool, digits: int = 4, limit: float | None = None) -> str:
    """A bound in a few digits, rounded to the side on which it still holds, though not to the
    other side of a limit, which would contradict whether the bound keeps it.

    >>> bound_in_words(0.100041, up=True), bound_in_words(0.89996, up=False)
    ('0.1001', '0.8999')
    >>> bound_in_words(0.100031, up=True, limit=0.10004)
    '0.10004'
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    # Twelve digits leave out what the arithmetic of floats added: 0.30000000000000004 is 0.3.
    short = f"{float(context.create_decimal(f'{bound:.12g}')):.{digits}g}"
    if limit is None or _is_kept(bound, limit, up) == _is_kept(float(short), limit, up):
        return short
    return exact(limit if _is_kept(bound, limit, up) else bound)


def _is_kept(value: float, limit: float, up: bool) -> bool:
    """Whether a value keeps an upper limit, or a lower one."""
    return value <= limit if up else value >= limit
