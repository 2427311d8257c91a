"""SQL storages with fewer statements than Optuna's; only these modules load SQLAlchemy."""

from riskpilot.study.storages.sql.connections import (
    address_of_file,
    engine_options,
    file_that_opens,
    is_made_elsewhere,
    opening_errors,
    opening_patience,
)
from riskpilot.study.storages.sql.postgresql import PostgresqlStorage, advisory_lock
from riskpilot.study.storages.sql.sqlite import SqliteStorage
from riskpilot.study.storages.sql.storage import SqlStorage
from riskpilot.study.storages.sql.tables import check_tables

__all__ = [
    "PostgresqlStorage",
    "SqlStorage",
    "SqliteStorage",
    "address_of_file",
    "advisory_lock",
    "check_tables",
    "engine_options",
    "file_that_opens",
    "is_made_elsewhere",
    "opening_errors",
    "opening_patience",
]
