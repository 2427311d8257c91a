"""Where a storage keeps a study: an address, a file, or memory that is gone with the process."""

from pathlib import Path

from optuna.storages import InMemoryStorage, JournalStorage

from riskpilot.study.storages.optuna_internals import journal_file_of, sql_storage_of


def address_of(storage: object) -> str | None:
    """Return the address of an SQL storage, with its password; None for other storages."""
    if isinstance(storage, str):
        return storage
    sql = sql_storage_of(storage)
    return None if sql is None else sql.url


def file_of(storage: object) -> Path | None:
    """Return the file of a SQLite or journal storage; None for other storages."""
    if isinstance(storage, JournalStorage):
        path = journal_file_of(storage)
        return None if path is None else Path(path)
    address = address_of(storage)
    if address is None or not address.startswith("sqlite") or is_in_memory(address):
        return None
    return Path(address.partition(":///")[2].split("?")[0])


def is_in_memory(storage: object) -> bool:
    """Tell whether a storage, or the storage at an address, is gone with its process.

    >>> is_in_memory("sqlite:///:memory:"), is_in_memory("sqlite:///study.db")
    (True, False)
    """
    if storage is None or isinstance(storage, InMemoryStorage):
        return True
    address = address_of(storage)
    if address is None or not address.startswith("sqlite"):
        return False
    return address.endswith("://") or ":memory:" in address or "mode=memory" in address
