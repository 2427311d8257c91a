"""The live page: a search under way, in the look of the report, from validation data alone."""

from riskpilot.live.server import Served, application, serve

__all__ = ["Served", "application", "serve"]
