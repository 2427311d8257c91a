"""What riskpilot says when an input cannot be used: the rule, the value, the way out."""


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
