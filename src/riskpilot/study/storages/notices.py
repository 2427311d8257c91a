"""What a worker says while it waits: once, in one sentence, where somebody can read it."""

import logging
import sys

logger = logging.getLogger("riskpilot")


def say(sentence: str) -> None:
    """Log a sentence as a warning, and print it where nobody listens to the log.

    A worker that waits for minutes without a word looks like one that hangs, so that these few
    sentences are not left to those who have set up logging.
    """
    logger.warning("%s", sentence)
    if not _is_heard():
        print(f"riskpilot: {sentence}", file=sys.stderr, flush=True)


def _is_heard() -> bool:
    """Tell whether a handler other than the silent one gets the warnings of riskpilot."""
    handlers = [*logger.handlers, *(logging.getLogger().handlers if logger.propagate else [])]
    return any(not isinstance(handler, logging.NullHandler) for handler in handlers)
