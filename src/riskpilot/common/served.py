"""Where a page is served: the error for a host and a port on which nothing can listen."""

from riskpilot.errors import StudyError, shown


def unusable_address(host: object, port: object, reason: object) -> StudyError:
    """Make the error that says why no page can be served on a host and a port."""
    return StudyError(
        f"The page cannot be served on host {shown(host)} and port {shown(port)}: "
        f"{str(reason).rstrip('.')}. Take an address of this machine, such as 127.0.0.1, and a "
        f"free port from 1 to 65535."
    )
