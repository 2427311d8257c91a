"""What riskpilot says when an input cannot be used: the rule, the value, the way out."""


def shown(value: object, longest: int = 200) -> str:
    """Write a value for an error message: as Python shows it, but never longer than ``longest``.

    A value that cannot be shown, such as a number of 5,000 digits, is named by its type.

    >>> shown("half"), shown(list(range(100)), 10), shown(10**5000)
    ("'half'", '[0, 1, 2, ...', '(an int that cannot be shown)')
    """
    try:
        text = repr(value)
    except Exception:  # whatever the object's own code raises, the error at hand matters more
        kind = type(value).__name__
        return f"({'an' if kind[0] in 'aeiou' else 'a'} {kind} that cannot be shown)"
    # Half of a surrogate pair cannot be printed; it is shown by its code.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= longest else f"{text[:longest]}..."


class RiskpilotError(ValueError):
    """The base of every error that riskpilot raises on purpose."""


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
