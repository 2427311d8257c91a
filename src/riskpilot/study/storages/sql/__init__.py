"""SQL storages with fewer statements than Optuna's; only these modules load SQLAlchemy."""

from riskpilot.study.storages.sql.connections import opening_errors
from riskpilot.study.storages.sql.sqlite import SqliteStorage
from riskpilot.study.storages.sql.storage import SqlStorage

__all__ = ["SqlStorage", "SqliteStorage", "opening_errors"]
