"""The ledger of a gate: how much of delta each question may spend, in one SQLite file.

Let the k-th question be tested at the level delta * s_k, and let the shares s_k sum to at most 1.
The k-th p-value is below its level with probability at most delta * s_k where the change breaks its
limits, so that by the union bound a change that breaks its limits passes, at any time, with
probability at most delta * (s_1 + s_2 + ...) <= delta. Without a budget of its own a question gets
s_k = 6 / (pi^2 k^2), and these shares sum to 1 over infinitely many questions (Euler).

The p-value of a change is valid where the change was not made by looking at the examples that it
is tested on. Whoever mends a change by what these examples said of it needs fresh ones, and with
them a new ledger.

SQLite writes a question whole or not at all, and locks the file while it does.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from riskpilot.common import exact
from riskpilot.errors import ProblemError, TableError, shown
from riskpilot.guarantee import stamp

_WAIT = 60.0  # seconds until a ledger that another process holds is given up
_TABLES = """
    CREATE TABLE IF NOT EXISTS promise (delta REAL NOT NULL);
    CREATE TABLE IF NOT EXISTS questions (
        number INTEGER PRIMARY KEY,
        question TEXT NOT NULL UNIQUE,
        share REAL NOT NULL CHECK (share > 0),
        seed INTEGER NOT NULL,
        created TEXT NOT NULL,
        passed INTEGER
    );
"""


@dataclass(frozen=True)
class Entry:
    """A question of a ledger.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1 on.
    share : float
        The share of delta that it may spend.
    spent : float
        The shares of all questions of the ledger together.
    seed : int
        The seed of the order in which bets see the examples.
    """

    number: int
    share: float
    spent: float
    seed: int


def share_of(number: int) -> float:
    """Return the share of delta for a question by its number; all shares together make 1.

    >>> [round(share_of(k), 3) for k in (1, 2, 3, 10)]
    [0.608, 0.152, 0.068, 0.006]
    """
    return 6 / (math.pi * number) ** 2


def enter(path: Path, question: str, delta: float, spend: float | None, seed: int) -> Entry:
    """Record a question before its answer is known; the same one keeps its number and its share.

    ``question``: a digest of all that is asked. ``spend``: the share of delta; by default what
    `share_of` gives. ``seed``: what is recorded for a new question.
    """
    with _open(path) as ledger:
        _check_delta(ledger, path, delta)
        known = ledger.execute(
            "SELECT number, share, seed FROM questions WHERE question = ?", (question,)
        ).fetchone()
        (count, spent) = ledger.execute(
            "SELECT count(*), coalesce(sum(share), 0) FROM questions"
        ).fetchone()
        if known is not None:
            return Entry(known[0], known[1], spent, known[2])
        share = share_of(count + 1) if spend is None else spend
        if spent + share > 1 + 1e-9:
            raise ProblemError(
                f"The questions of a ledger may spend all of delta and no more, but question "
                f"{count + 1} of {str(path)!r} wants a share of {share:.3g} and "
                f"{max(0.0, 1 - spent):.3g} is left. Give a smaller one (--spend), or begin a new "
                f"ledger with fresh examples."
            )
        ledger.execute(
            "INSERT INTO questions (number, question, share, seed, created) VALUES (?, ?, ?, ?, ?)",
            (count + 1, question, share, seed, stamp()["created"]),
        )
        return Entry(count + 1, share, spent + share, seed)


def note_answer(path: Path, number: int, *, passed: bool) -> None:
    """Write the answer beside a question."""
    with _open(path) as ledger:
        ledger.execute("UPDATE questions SET passed = ? WHERE number = ?", (int(passed), number))


def _check_delta(ledger: sqlite3.Connection, path: Path, delta: float) -> None:
    """Refuse a ledger that was begun with another delta; a new one begins with this."""
    kept = ledger.execute("SELECT delta FROM promise").fetchone()
    if kept is None:
        ledger.execute("INSERT INTO promise (delta) VALUES (?)", (delta,))
    elif kept[0] != delta:
        raise ProblemError(
            f"All questions of a ledger share one delta, but {str(path)!r} was begun with "
            f"{exact(kept[0])} and this question says {exact(delta)}. Use the same delta, or "
            f"another ledger."
        )


def _check_tables(ledger: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that keeps something else, such as a study."""
    rows = ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    found = [name for (name,) in rows]
    if found and not {"promise", "questions"}.issubset(found):
        raise TableError(
            f"A ledger is a file of its own, but {str(path)!r} is a database with other tables: "
            f"{shown(found)[1:-1]}. Name the ledger of a gate, or a file that is yet to be made."
        )


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger for one transaction, which no other process can come between."""
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT, isolation_level=None)) as ledger:
            ledger.execute("BEGIN IMMEDIATE")
            try:
                _check_tables(ledger, path)
                for statement in filter(str.strip, _TABLES.split(";")):
                    ledger.execute(statement)
                yield ledger
                ledger.execute("COMMIT")
            except BaseException:
                ledger.execute("ROLLBACK")
                raise
    except sqlite3.Error as error:
        raise TableError(
            f"The ledger {str(path)!r} cannot be used: {error}. Check that its folder can be "
            f"written and that it is a ledger of riskpilot; restore it from a copy where it was "
            f"damaged."
        ) from error
