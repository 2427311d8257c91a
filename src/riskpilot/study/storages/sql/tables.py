"""The tables of a database, which are read before anything is written to it."""

import sqlalchemy

from riskpilot.errors import StudyError, shown
from riskpilot.study.storages.addresses import hide_password
from riskpilot.study.storages.optuna_internals import TABLES
from riskpilot.study.storages.sql.connections import engine_options

_NEEDED = {"studies", "version_info"}  # which every database with studies has


def check_tables(address: str, *, existing: bool) -> None:
    """Refuse a database in which Optuna would make its tables where they do not belong.

    ``existing``: whether the database must hold studies already, because it is only read. A SQLite
    file for a new study may be new, or one with studies beside whatever else; not a file that
    somebody keeps other things in. On a server, databases are shared, so that a new study may go
    beside other tables.
    """
    if not (existing or address.startswith("sqlite")):
        return
    engine = sqlalchemy.create_engine(address, **engine_options(address))
    try:
        found = set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()
    if found >= _NEEDED:
        return
    if existing:
        raise StudyError(
            f"There is no study in the storage {hide_password(address)!r}: the database does "
            f"not have the tables of studies, and is left as it is. Make a study with "
            f"riskpilot.create_study(problem, storage=...); if it held one, restore it from a copy."
        )
    others = sorted(found - TABLES)
    if others:
        raise StudyError(
            f"A study is not put into a file that keeps something else, but "
            f"{hide_password(address)!r} has the tables {shown(others)[1:-1]} and none of a study. "
            f"Name a file that is yet to be made."
        )
