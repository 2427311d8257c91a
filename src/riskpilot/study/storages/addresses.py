"""Addresses of storages: which ones there are, and how they may be shown."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus

SQLITE_FILES = (".db", ".sqlite", ".sqlite3")
JOURNAL_FILES = (".log", ".journal")


def is_storage(address: str) -> bool:
    """Whether an address means an Optuna storage rather than a table of losses.

    >>> is_storage("sqlite:///adult.db"), is_storage("adult.db"), is_storage("losses.npz")
    (True, True, False)
    """
    return "://" in address or Path(address).suffix.lower() in (*SQLITE_FILES, *JOURNAL_FILES)


def hide_password(address: str) -> str:
    """The address as it may be shown.

    >>> hide_password("postgresql://ann:secret@host/db")
    'postgresql://ann:***@host/db'
    """
    head, separator, rest = address.partition("://")
    if not separator:
        return address
    # The password may hold any character, so the last @ before the path's end is the one.
    credentials, at, host = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    hidden = f"{user}:***" if colon else user
    return f"{head}://{hidden}{at}{_hide_query(host)}"


def without_password(text: str, address: str) -> str:
    """A message of another library, with the address in it as it may be shown.

    >>> without_password("no way into 'secret'", "postgresql://ann:secret@host/db")
    "no way into '***'"
    """
    text = text.replace(address, hide_password(address))
    for secret in sorted(set(_secrets(address)) - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _secrets(address: str) -> Iterator[str]:
    _, _, rest = address.partition("://")
    credentials, _, host = rest.rpartition("@")
    _, _, password = credentials.partition(":")
    # A driver may take the first @ for the end of the password and show what follows as the host.
    for part in (password, *password.split("@")):
        yield from (part, unquote(part), unquote_plus(part))
    _, _, query = host.partition("?")
    for name, value in parse_qsl(query):
        if "pass" in name.lower() or "secret" in name.lower() or "token" in name.lower():
            yield value


def _hide_query(host: str) -> str:
    """Options after a question mark can carry a password, too."""
    path, mark, _ = host.partition("?")
    return f"{path}?***" if mark else path
