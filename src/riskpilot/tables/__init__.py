"""Losses from files: read, checked, and brought to one row per configuration."""

from riskpilot.tables.files import read_losses, save_losses
from riskpilot.tables.long import LossTable

__all__ = ["LossTable", "read_losses", "save_losses"]
