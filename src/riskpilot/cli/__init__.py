"""The command line: one module per command."""

from riskpilot.cli.app import app

__all__ = ["app"]
