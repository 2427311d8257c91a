"""Losses from files and frames: read by DuckDB, checked, one row for each configuration."""

from riskpilot.tables.archives import save_losses

# The names below that are not in __all__ are for other rooms, and not for users.
from riskpilot.tables.columns import Columns as Columns
from riskpilot.tables.columns import Wanted as Wanted
from riskpilot.tables.columns import named_columns as named_columns
from riskpilot.tables.columns import wanted_columns as wanted_columns
from riskpilot.tables.files import is_archive as is_archive
from riskpilot.tables.files import read_losses
from riskpilot.tables.files import with_example as with_example
from riskpilot.tables.labels import JudgeFile as JudgeFile
from riskpilot.tables.labels import LabelFile as LabelFile
from riskpilot.tables.labels import example_id as example_id
from riskpilot.tables.labels import marked_fresh as marked_fresh
from riskpilot.tables.labels import read_judge_file as read_judge_file
from riskpilot.tables.labels import read_label_file as read_label_file
from riskpilot.tables.local_files import LEDGER as LEDGER
from riskpilot.tables.local_files import local_files as local_files
from riskpilot.tables.local_files import local_path as local_path
from riskpilot.tables.logs import is_log as is_log
from riskpilot.tables.long import LongTable as LongTable
from riskpilot.tables.long import open_table as open_table
from riskpilot.tables.loss_table import LossTable
from riskpilot.tables.pairs import OneRun as OneRun
from riskpilot.tables.pairs import read_pair as read_pair
from riskpilot.tables.rows import read_rows as read_rows
from riskpilot.tables.sources import column_names as column_names

__all__ = ["LossTable", "read_losses", "save_losses"]
