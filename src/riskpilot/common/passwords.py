"""Addresses in messages: whatever could be a password in them is hidden.

An address shows its user, host and database only where it is written as addresses are, so that
each part of it is certain. Where it is mistyped, any part may be the password, and all are hidden.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus

from riskpilot.errors import shown

_HOST = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_ADDRESS = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+_.-]*)://"
    rf"(?:(?P<user>[A-Za-z0-9_.-]*)(?P<colon>:(?P<password>.*))?@)?"
    rf"(?P<place>(?:{_HOST}(?:,{_HOST})*)?(?:/[A-Za-z0-9_.~/+-]*)?)"
    rf"(?P<query>[?].*)?",
    re.DOTALL,
)
_SQLITE = re.compile(r"(?P<place>sqlite[A-Za-z0-9+_]*://(?:/[^?]*)?)(?P<query>[?].*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+_.-]*(?=://)")
# What gives away a text without "://" that was meant as an address or as a connection string.
_CREDENTIALS = re.compile(
    r":.*@|(?:pass|pwd|secret|token)[a-z]*\s*=|"
    r"^\s*(?:sqlite|postgres|mysql|mariadb|oracle|mssql|redis|cockroach)[a-z0-9+_]*\s*(?:[:;]|//)|"
    r"^[a-z][a-z0-9+_.-]+:/",
    re.DOTALL | re.IGNORECASE,
)
_FILES = (
    ".db",
    ".sqlite",
    ".sqlite3",
    ".log",
    ".journal",
    ".json",
    ".npz",
    ".csv",
    ".parquet",
    ".html",
)
# Options of an address that messages may show, because they help and hold no secret.
_OPEN_OPTIONS = {"host", "port", "dbname", "sslmode", "connect_timeout", "charset", "timeout"}
_LONG_ENOUGH = 3  # letters that a password must have to be looked for within words
_HIDDEN = "***"


@dataclass(frozen=True)
class _Reading:
    """An address as it may be shown, and what in it may be secret.

    ``certain``: whether it is written as addresses are, so that each part is what it seems.
    """

    shown: str
    secrets: tuple[str, ...]
    certain: bool


def hide_password(address: str) -> str:
    """Return an address with its password hidden, so that it may be shown.

    A text that is no address, such as the path of a file, is returned as it is, unless a password
    may be in it.

    >>> hide_password("postgresql://ann:secret@host/db"), hide_password("study.db")
    ('postgresql://ann:***@host/db', 'study.db')
    >>> hide_password("ann:secret@host/db"), hide_password("postgresql:/ann:secret@host/db")
    ('***', '***')
    """
    return _read(address).shown


def is_certain(address: str) -> bool:
    """Tell whether an address is written as addresses are, so that its password can be told.

    >>> is_certain("postgresql://ann:secret@host/db"), is_certain("postgresql://h/?password=a@b")
    (True, False)
    """
    return _read(address).certain


def without_password(text: str, address: str) -> str:
    """Return a message of another library with the password of an address hidden in it.

    >>> without_password("no way into 'secret'", "postgresql://ann:secret@host/db")
    "no way into '***'"
    """
    reading = _read(address)
    if address and reading.shown != address:
        text = text.replace(address, reading.shown)
    for secret in sorted(set(_spellings(reading.secrets)) - {""}, key=len, reverse=True):
        if len(secret) >= _LONG_ENOUGH:
            text = text.replace(secret, _HIDDEN)
        else:  # one or two letters are in every other word; a message shows a password by itself
            alone = rf"(?<=['\":=]){re.escape(secret)}(?=['\"@,;)\s]|$)"
            text = re.sub(alone, _HIDDEN, text)
    return text


def shown_safely(value: object) -> str:
    """Write a path or a name for an error message; an address given in its place is hidden.

    >>> shown_safely(Path("a.json")), shown_safely("postgresql://ann:secret@host/db")
    ("'a.json'", "'postgresql://ann:***@host/db'")
    """
    return shown(hide_password(str(value))) if isinstance(value, str | Path) else shown(value)


def _read(address: str) -> _Reading:
    """Find out what of an address may be shown."""
    if "://" not in address:
        return _read_without_scheme(address)
    sqlite = _SQLITE.fullmatch(address)
    if sqlite is not None and not _CREDENTIALS.search(_decoded(address.partition("://")[2])):
        query = sqlite["query"] or ""
        return _Reading(sqlite["place"] + _shown_query(query), tuple(_values(query)), True)
    found = _ADDRESS.fullmatch(address)
    # With an @ behind a question mark nobody can tell which of the two belongs to the password.
    if found is None or "@" in address.partition("?")[2]:
        scheme = _SCHEME.match(address)
        start = "" if scheme is None else f"{scheme[0]}://"
        return _Reading(start + _HIDDEN, tuple(_fragments(address.removeprefix(start))), False)
    user = f"{found['user']}:{_HIDDEN}@" if found["colon"] else f"{_HIDDEN}@"
    user = "" if found["user"] is None else user
    password, query = found["password"] or "", found["query"] or ""
    # A driver may take the first @ for the end of the password and show what follows as the host.
    secrets = (password, *password.split("@"), *_values(query))
    shown_address = f"{found['scheme']}://{user}{found['place']}{_shown_query(query)}"
    return _Reading(shown_address, secrets, True)


def _read_without_scheme(text: str) -> _Reading:
    """Read what has no ``://``: the path of a file, or an address that was mistyped."""
    decoded = _decoded(text)
    is_file = Path(decoded).suffix.lower() in _FILES
    if _CREDENTIALS.search(decoded) or ("@" in decoded and not is_file):
        return _Reading(_HIDDEN, tuple(_fragments(text)), False)
    return _Reading(text, (), True)


def _decoded(text: str) -> str:
    """Undo percent-encoding, however often it was done."""
    while (once := unquote(text)) != text:
        text = once
    return text


def _shown_query(query: str) -> str:
    """Hide the options after a question mark, because they can contain a password, too."""
    return f"?{_HIDDEN}" if query else ""


def _values(query: str) -> Iterator[str]:
    """Yield the values of options that may be secret."""
    for name, value in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if name.lower() not in _OPEN_OPTIONS:
            yield value
    for part in query.removeprefix("?").split("&"):  # as written: values can hold a + or a ;
        name, _, value = part.partition("=")
        if name.lower() not in _OPEN_OPTIONS:
            yield value


def _fragments(text: str) -> Iterator[str]:
    """Yield every part of a mistyped address: any of them may be the password."""
    for spelling in (text, _decoded(text)):
        yield spelling
        yield from re.split(r"[:/@?&=#,;\s]+", spelling)


def _spellings(secrets: tuple[str, ...]) -> Iterator[str]:
    """Yield secrets, and the words in them, in every spelling that a message may have."""
    words = [word for secret in secrets for word in re.split(r"\W+", secret)]
    for secret in (*secrets, *words):
        yield from (secret, unquote(secret), unquote_plus(secret))
        yield from (quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1])
