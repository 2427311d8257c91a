"""What riskpilot says when an input cannot be used: the rule, the value, the way out."""

import re
import unicodedata
from typing import NoReturn

# Characters that a terminal acts on or cannot show: controls, halves of a character, line ends; and
# those that turn the direction of what follows, so that a promise would not read as it is stored.
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
# What sounds as if it began with a vowel: most words with one, but "uint8" and "one"; "ndarray" and
# "NDFrame", which are spelled out; 8, 11 and 18.
_BEFORE_AN = re.compile(r"(?!u(ni|se|int|uid)|eu|one)[aeiou]|nd|8|1[18]\b", re.IGNORECASE)


def is_visible(character: str) -> bool:
    """Tell whether a character shows itself, and does nothing else to a terminal or a page."""
    return (
        unicodedata.category(character) not in _HIDDEN
        and unicodedata.bidirectional(character) not in _TURNING
    )


def visible(text: str) -> str:
    """Write a text so that a terminal shows all of it and obeys none of it.

    Line ends and tabs stay; other control characters, such as those of colours and links, become
    their codes.

    >>> visible("a\\x1b[31mred"), visible("half \\ud800")
    ('a\\\\x1b[31mred', 'half \\\\ud800')
    """
    if text.isprintable():
        return text
    return "".join(
        one if one in "\n\t" or is_visible(one) else one.encode("unicode_escape").decode()
        for one in text
    )


def shown(value: object, longest: int = 200) -> str:
    """Write a value for an error message: as Python shows it, but never longer than ``longest``.

    A value that cannot be shown, such as a number of 5,000 digits, is named by its type.

    >>> shown("half"), shown(list(range(100)), 10), shown(10**5000)
    ("'half'", '[0, 1, 2, ...', '(an int that cannot be shown)')
    """
    try:
        text = repr(value)
    except Exception:  # whatever the object's own code raises, the error at hand matters more
        return f"({type_in_words(value)} that cannot be shown)"
    # Half of a surrogate pair cannot be printed; it is shown by its code.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= longest else f"{text[:longest]}..."


def with_article(noun: str) -> str:
    """Write the indefinite article before a noun, or before the name of a class.

    >>> with_article("risk"), with_article("accuracy"), with_article("80% quantile")
    ('a risk', 'an accuracy', 'an 80% quantile')
    """
    return f"{'an' if _BEFORE_AN.match(noun) else 'a'} {noun}"


def type_in_words(value: object) -> str:
    """Name the type of a value for an error message, with its article.

    >>> type_in_words(3), type_in_words("half"), type_in_words(None)
    ('an int', 'a str', 'a NoneType')
    """
    return with_article(type(value).__name__)


def raise_alone(error: Exception) -> NoReturn:
    """Raise an error without those that led to it, because they could show a password.

    ``raise error from None`` hides them from people, but keeps them for programs that look.
    """
    try:
        raise error from None
    except Exception:
        error.__context__ = None
        raise


class RiskpilotError(ValueError):
    """The base of every error that riskpilot raises on purpose.

    Parameters
    ----------
    message : object, default ""
        What is wrong. Control characters in it are written as their codes, so that a name or a
        path in a message cannot act on the terminal that shows it.
    """

    def __init__(self, message: object = "") -> None:
        try:
            text = str(message)
        except Exception:  # a number of 5,000 digits, or an object whose own code fails
            text = shown(message)
        super().__init__(visible(text))


class ProblemError(RiskpilotError):
    """Raised for a risk, a limit, a tolerance or another setting that cannot be meant."""


class LossError(RiskpilotError):
    """Raised for losses of the wrong name, shape or kind."""


class LossRangeError(LossError):
    """Raised for a loss outside the range that its risk declares."""


class LeakageError(RiskpilotError):
    """Raised for calibration data that validation has already seen."""


class StudyError(RiskpilotError):
    """Raised for a study that lacks what is asked of it."""


class CertificateError(RiskpilotError):
    """Raised for a certificate or a seal that cannot be read or written."""


class TableError(RiskpilotError):
    """Raised for a table of losses on disk that cannot be read."""


class PlotError(RiskpilotError):
    """Raised for a figure that cannot be drawn or written."""


class NotCertifiedError(RiskpilotError):
    """Raised where a model is asked for a prediction and nothing could be certified."""
