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
    return text if len(text) <= longest else f"{text[:longest]}..."


class RiskpilotError(ValueError):
    """Base of every error that riskpilot raises on purpose."""


class ProblemError(RiskpilotError):
    """A risk, a limit or a tolerance that cannot be meant."""


class LossError(RiskpilotError):
    """Losses of the wrong name, shape or kind."""


class LossRangeError(LossError):
    """A loss outside the range that its risk declares."""


class LeakageError(RiskpilotError):
    """Calibration data that validation has already seen."""


class StudyError(RiskpilotError):
    """A study that lacks what is asked of it."""


class CertificateError(RiskpilotError):
    """A certificate that cannot be read."""


class TableError(RiskpilotError):
    """A table of losses on disk that cannot be read."""


class PlotError(RiskpilotError):
    """A figure that cannot be drawn or written."""


class NotCertifiedError(RiskpilotError):
    """A prediction asked of a model when nothing could be certified."""
