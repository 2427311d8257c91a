"""Addresses of storages: what counts as one, and how it is shown without its password."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus

SQLITE_FILES = (".db", ".sqlite", ".sqlite3")
JOURNAL_FILES = (".log", ".journal")

_LONG_ENOUGH = 3  # letters that a password must have to be looked for within words


def is_storage(address: str) -> bool:
    """Tell whether an address means an Optuna storage rather than a table of losses.

    >>> is_storage("sqlite:///adult.db"), is_storage("adult.db"), is_storage("losses.npz")
    (True, True, False)
    """
    return "://" in address or Path(address).suffix.lower() in (*SQLITE_FILES, *JOURNAL_FILES)


def hide_password(address: str) -> str:
    """Return an address with its password hidden, so that it may be shown.

    >>> hide_password("postgresql://ann:secret@host/db")
    'postgresql://ann:***@host/db'
    """
    head, separator, rest = address.partition("://")
    if not separator:
        return address
    # A password may contain an @, so that only the last @ separates it from the host.
    credentials, at, host = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    hidden = f"{user}:***" if colon else user
    return f"{head}://{hidden}{at}{_hide_query(host)}"


def without_password(text: str, address: str) -> str:
    """Return a message of another library with the password of an address hidden in it.

    >>> without_password("no way into 'secret'", "postgresql://ann:secret@host/db")
    "no way into '***'"
    """
    text = text.replace(address, hide_password(address))
    for secret in sorted(set(_secrets(address)) - {""}, key=len, reverse=True):
        if len(secret) >= _LONG_ENOUGH:
            text = text.replace(secret, "***")
        else:  # one or two letters are in every other word; a message shows a password by itself
            alone = rf"(?<=['\":=]){re.escape(secret)}(?=['\"@,;)\s]|$)"
            text = re.sub(alone, "***", text)
    return text


def _secrets(address: str) -> Iterator[str]:
    """Yield the password of an address in every spelling that a message may have."""
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
    """Hide the options after a question mark, because they can contain a password, too."""
    path, mark, _ = host.partition("?")
    return f"{path}?***" if mark else path
