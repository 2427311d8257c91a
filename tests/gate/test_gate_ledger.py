"""The ledger of a gate: its shares, its memory, and what happens when processes meet or die."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from riskpilot.errors import ProblemError, TableError
from riskpilot.gate import check_change, share_of
from riskpilot.gate.gate_ledger import enter

LOGS = Path(__file__).parents[1] / "tables" / "logs" / "fixtures" / "inspect_ai"
SMALL, LARGE = LOGS / "terse-small.eval", LOGS / "terse-large.eval"
DROP = "accuracy_drop<=0.03"


def test_shares_of_infinitely_many_questions_sum_to_one():
    shares = [share_of(k) for k in range(1, 100_001)]
    # The rest of the sum lies between the integrals 6 / (pi^2 (N + 1)) and 6 / (pi^2 N).
    rest = 1 - math.fsum(shares)
    assert 6 / math.pi**2 / 100_001 < rest < 6 / math.pi**2 / 100_000


def test_a_ledger_counts_questions_and_knows_one_again(tmp_path):
    ledger = tmp_path / "gate.db"
    first = check_change(LARGE, reference=SMALL, risks=[DROP], ledger=ledger)
    second = check_change(SMALL, reference=LARGE, risks=[DROP], ledger=ledger)
    again = check_change(LARGE, reference=SMALL, risks=[DROP], ledger=ledger)
    assert [answer.entry.number for answer in (first, second, again)] == [1, 2, 1]
    assert first.level == pytest.approx(0.05 * share_of(1))
    assert second.level == pytest.approx(0.05 * share_of(2))
    assert again.risks == first.risks
    assert again.entry.spent == second.entry.spent == pytest.approx(share_of(1) + share_of(2))
    with sqlite3.connect(ledger) as opened:
        assert opened.execute("SELECT passed FROM questions").fetchall() == [(1,), (0,)]
    with pytest.raises(ProblemError, match=r"begun with 0\.05"):
        check_change(LARGE, risks=["error<=0.3"], ledger=ledger, delta=0.1)


def test_repeated_pull_requests_are_tested_at_ever_smaller_levels(tmp_path):
    """A change that passes as the first question does not as the tenth."""
    first = check_change(LARGE, risks=["error<=0.06"], ledger=tmp_path / "new.db")
    assert first.passed
    used = tmp_path / "used.db"
    for number in range(9):
        enter(used, f"question {number}", 0.05, None, 1)
    tenth = check_change(LARGE, risks=["error<=0.06"], ledger=used)
    assert tenth.entry.number == 10
    assert not tenth.passed
    assert tenth.risks[0].upper_bound > first.risks[0].upper_bound


def test_another_limit_or_another_test_is_another_question(tmp_path):
    ledger = tmp_path / "gate.db"
    answers = [
        check_change(LARGE, risks=[risk], ledger=ledger)
        for risk in ("error<=0.3", "error<=0.2", "accuracy>=0.8", "error<=0.3")
    ]
    assert [answer.entry.number for answer in answers] == [1, 2, 3, 1]


def test_a_ledger_spends_no_more_than_delta(tmp_path):
    ledger = tmp_path / "gate.db"
    assert enter(ledger, "one", 0.05, 0.9, 1).share == 0.9
    with pytest.raises(ProblemError, match=r"wants a share of 0\.152 and 0\.1 is left"):
        enter(ledger, "two", 0.05, None, 1)
    assert enter(ledger, "three", 0.05, 0.1, 1).number == 2
    with pytest.raises(ProblemError, match="0 is left"):
        enter(ledger, "four", 0.05, 0.01, 1)


def test_a_question_that_cannot_be_meant_spends_nothing(tmp_path):
    ledger = tmp_path / "gate.db"
    for wrong in ({"delta": 1.5}, {"spend": 0.0}, {"spend": 2.0}, {"risks": ["verbosity<=0.1"]}):
        with pytest.raises((ProblemError, TableError)):
            check_change(LARGE, ledger=ledger, **{"risks": ["error<=0.3"], **wrong})
    assert check_change(LARGE, risks=["error<=0.3"], ledger=ledger).entry.number == 1


def test_questions_that_come_at_once_get_different_numbers(tmp_path):
    ledger = tmp_path / "gate.db"
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda i: enter(ledger, f"q{i}", 0.05, None, 1), range(24)))
    assert sorted(entry.number for entry in entries) == list(range(1, 25))
    shares = {entry.number: entry.share for entry in entries}
    assert all(share == share_of(number) for number, share in shares.items())


def test_a_question_waits_for_the_process_that_holds_the_ledger(tmp_path):
    ledger = tmp_path / "gate.db"
    enter(ledger, "one", 0.05, None, 1)
    holder = sqlite3.connect(ledger, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    timer = threading.Timer(0.5, holder.execute, ["COMMIT"])
    timer.start()
    assert enter(ledger, "two", 0.05, None, 1).number == 2
    assert time.monotonic() - began >= 0.4
    timer.join()
    holder.close()


DIES_IN_THE_TRANSACTION = """
import sys, time
from pathlib import Path
from riskpilot.gate import gate_ledger
with gate_ledger._open(Path(sys.argv[1])) as ledger:
    ledger.execute("INSERT INTO questions VALUES (1, 'lost', 0.6, 1, 'now', NULL)")
    print("inside", flush=True)
    time.sleep(60)
"""

DIES_BEFORE_THE_ANSWER = """
import sys, time
from pathlib import Path
from riskpilot.gate import checking
def never_noted(path, number, *, passed):
    print("inside", flush=True)
    time.sleep(60)
checking.note_answer = never_noted
checking.check_change(sys.argv[2], risks=["error<=0.3"], ledger=sys.argv[1])
"""


def killed(program, *arguments):
    """Run a program until it says that it is where it shall be killed, and kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline().strip() == "inside"
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_behind(tmp_path):
    ledger = tmp_path / "gate.db"
    enter(ledger, "one", 0.05, None, 1)
    killed(DIES_IN_THE_TRANSACTION.replace("(1, 'lost'", "(2, 'lost'"), ledger)
    entry = enter(ledger, "two", 0.05, None, 1)
    assert (entry.number, entry.share) == (2, share_of(2))


def test_a_question_whose_process_is_killed_before_the_answer_stays_spent(tmp_path):
    ledger = tmp_path / "gate.db"
    killed(DIES_BEFORE_THE_ANSWER, ledger, LARGE)
    with sqlite3.connect(ledger) as opened:
        ((seed, passed),) = opened.execute("SELECT seed, passed FROM questions").fetchall()
    assert passed is None
    other = check_change(SMALL, risks=["error<=0.3"], ledger=ledger)
    again = check_change(LARGE, risks=["error<=0.3"], ledger=ledger)
    assert (other.entry.number, again.entry.number) == (2, 1)
    assert again.seed == seed


@pytest.mark.parametrize("content", [b"no database at all, but a text", b"SQLite format 3\0" * 99])
def test_a_damaged_ledger_is_said_to_be_one(tmp_path, content):
    ledger = tmp_path / "gate.db"
    ledger.write_bytes(content)
    with pytest.raises(TableError, match="cannot be used"):
        check_change(LARGE, risks=["error<=0.3"], ledger=ledger)
    assert ledger.read_bytes() == content
