"""Addresses of storages: what counts as one, and how it is shown without its password."""

from pathlib import Path

from riskpilot.common.passwords import hide_password, is_certain, without_password

__all__ = [
    "JOURNAL_FILES",
    "SQLITE_FILES",
    "hide_password",
    "is_certain",
    "is_storage",
    "without_password",
]

SQLITE_FILES = (".db", ".sqlite", ".sqlite3")
JOURNAL_FILES = (".log", ".journal")
# How addresses of tables begin, which DuckDB reads; every other address is a storage's.
_TABLES = ("file", "http", "https", "s3", "gs", "gcs", "r2", "az", "azure", "abfss", "hf")


def is_storage(address: str) -> bool:
    """Tell whether an address means an Optuna storage rather than a table of losses.

    >>> is_storage("sqlite:///adult.db"), is_storage("adult.db"), is_storage("losses.npz")
    (True, True, False)
    >>> is_storage("s3://bucket/losses.parquet"), is_storage("file:///data/losses.csv")
    (False, False)
    """
    scheme, is_url, _ = address.partition("://")
    if is_url:
        return scheme.lower() not in _TABLES
    return Path(address).suffix.lower() in (*SQLITE_FILES, *JOURNAL_FILES)
