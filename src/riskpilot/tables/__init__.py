"""Losses from files and frames: read by DuckDB, checked, one row for each configuration."""

from riskpilot.tables.archives import read_archive, save_losses
from riskpilot.tables.columns import Columns, Wanted, named_columns
from riskpilot.tables.files import existing, is_archive, read_losses, with_example
from riskpilot.tables.logs import is_log
from riskpilot.tables.long import LongTable, open_table
from riskpilot.tables.loss_table import LossTable
from riskpilot.tables.pairs import OneRun, read_pair

__all__ = [
    "Columns",
    "LongTable",
    "LossTable",
    "OneRun",
    "Wanted",
    "existing",
    "is_archive",
    "is_log",
    "named_columns",
    "open_table",
    "read_archive",
    "read_losses",
    "read_pair",
    "save_losses",
    "with_example",
]
