"""The command line: one module per command, and the options and output they share."""

from riskpilot.cli.app import app

__all__ = ["app"]
