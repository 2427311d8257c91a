"""The gate: what passes, what it writes, how its ledger spends delta, and that it keeps it."""

import json
import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from riskpilot.cli.app import app
from riskpilot.errors import ProblemError, TableError
from riskpilot.gate import as_json, as_junit, as_markdown, check_change, in_words, share_of
from riskpilot.gate.gate_ledger import enter

LOGS = Path(__file__).parents[1] / "tables" / "logs" / "fixtures" / "inspect_ai"
SMALL, LARGE = LOGS / "terse-small.eval", LOGS / "terse-large.eval"
DROP = "accuracy_drop<=0.03"


def write(path, accuracy):
    rows = "".join(f"e{i},{int(value)}\n" for i, value in enumerate(accuracy))
    path.write_text(f"example,accuracy\n{rows}")
    return path


def pair(folder, rng, n, worse, better):
    """Draw answers of a reference and of a change that gets some worse and some better."""
    draw = rng.random(n)
    reference = np.where(draw < worse, 1, np.where(draw < worse + better, 0, rng.random(n) < 0.9))
    new = np.where(draw < worse, 0, np.where(draw < worse + better, 1, reference))
    return write(folder / "new.csv", new), write(folder / "main.csv", reference)


def test_a_better_model_passes_and_a_worse_one_does_not():
    assert check_change(LARGE, reference=SMALL, risks=[DROP]).passed
    answer = check_change(SMALL, reference=LARGE, risks=[DROP])
    assert not answer.passed
    (checked,) = answer.risks
    assert checked.test == "trinomial"
    assert checked.value == pytest.approx(18 / 60 - 1 / 60)
    assert (checked.new, checked.reference) == pytest.approx((18 / 60, 1 / 60))
    assert answer.new["model"] == "sums/small"


def test_a_value_below_the_limit_does_not_pass_by_itself(tmp_path):
    ones = np.ones(60)
    new, reference = write(tmp_path / "new.csv", ones), write(tmp_path / "main.csv", ones)
    (checked,) = check_change(new, reference=reference, risks=[DROP]).risks
    assert checked.value == 0
    assert not checked.passed
    assert checked.upper_bound > 0.03


def test_repeats_are_bet_on_and_absolute_limits_need_no_reference():
    log = LOGS / "repeated.json"
    answer = check_change(log, reference=log, risks=["accuracy_drop<=0.9", "error<=0.99"])
    assert [checked.test for checked in answer.risks] == ["betting", "betting"]
    assert check_change(LARGE, risks=["error<=0.3"]).passed


def test_command_writes_all_forms_and_its_exit_code_says_the_answer(tmp_path):
    out, junit, summary = (tmp_path / name for name in ("gate.json", "gate.xml", "gate.md"))
    options = ["--out", out, "--junit", junit, "--summary", summary]

    def run(*words):
        return CliRunner().invoke(app, ["gate", *map(str, words)])

    assert run(LARGE, "--reference", SMALL, "-r", DROP, *options).exit_code == 0
    assert json.loads(out.read_text())["passed"] is True
    assert ElementTree.parse(junit).getroot().find("testsuite").get("failures") == "0"
    assert "gate: passed" in summary.read_text()
    result = run(SMALL, "--reference", LARGE, "-r", DROP, "-r", "error<=0.6", *options)
    assert result.exit_code == 1
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "not shown" in suite.find("testcase/failure").get("message")
    assert "**not shown**" in summary.read_text()
    assert run(SMALL, "-r", DROP).exit_code == 2  # no reference
    assert run("nowhere.eval", "--reference", LARGE, "-r", DROP).exit_code == 2
    assert json.loads(run(LARGE, "-r", "error<=0.3", "--json").stdout)["level"] == 0.05


def test_forms_agree():
    answer = check_change(SMALL, reference=LARGE, risks=[DROP])
    data = json.loads(as_json(answer))
    assert data["risks"][0]["p_value"] == answer.risks[0].p_value
    assert "not shown" in in_words(answer)
    assert "accuracy_drop &lt;= 0.03" in as_markdown(answer)
    ElementTree.fromstring(as_junit(answer))


@pytest.mark.parametrize(
    ("risks", "words"),
    [
        ([], "needs a limit"),
        (["accuracy_drop<=0.03"], "none is given"),
        (["error<=0.1 as cvar(0.9)"], "limits something else"),
        (["fluency<=0.1"], "has no column 'fluency'"),
    ],
)
def test_what_cannot_be_checked_is_refused(risks, words):
    with pytest.raises((ProblemError, TableError), match=words):
        check_change(LARGE, risks=risks)


def test_other_examples_are_refused(tmp_path):
    new = write(tmp_path / "new.csv", np.ones(5))
    reference = write(tmp_path / "main.csv", np.ones(4))
    with pytest.raises(TableError, match=r"1 of 'new\.csv' are not in 'main\.csv', such as 'e4'"):
        check_change(new, reference=reference, risks=[DROP])
    with pytest.raises(TableError, match="must hold one configuration"):
        check_change(str(LOGS / "terse-*.eval"), risks=["error<=0.3"])


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
    assert second.level == pytest.approx(0.05 * share_of(2))
    assert again.risks == first.risks
    with sqlite3.connect(ledger) as opened:
        assert opened.execute("SELECT passed FROM questions").fetchall() == [(1,), (0,)]
    with pytest.raises(ProblemError, match=r"begun with 0\.05"):
        check_change(LARGE, risks=["error<=0.3"], ledger=ledger, delta=0.1)


def test_a_ledger_spends_no_more_than_delta(tmp_path):
    ledger = tmp_path / "gate.db"
    assert enter(ledger, "one", 0.05, 0.9, 1).share == 0.9
    with pytest.raises(ProblemError, match=r"wants a share of 0.152 and 0.1 is left"):
        enter(ledger, "two", 0.05, None, 1)
    assert enter(ledger, "three", 0.05, 0.1, 1).number == 2
    with pytest.raises(ProblemError, match="0 is left"):
        enter(ledger, "four", 0.05, 0.01, 1)


def test_questions_that_come_at_once_get_different_numbers(tmp_path):
    ledger = tmp_path / "gate.db"
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda i: enter(ledger, f"q{i}", 0.05, None, 1), range(24)))
    assert sorted(entry.number for entry in entries) == list(range(1, 25))


def test_a_damaged_ledger_is_said_to_be_one(tmp_path):
    ledger = tmp_path / "gate.db"
    ledger.write_text("no database at all, but a text")
    with pytest.raises(TableError, match="cannot be used"):
        check_change(LARGE, risks=["error<=0.3"], ledger=ledger)


def test_changes_at_the_limit_pass_at_most_delta_of_the_time_over_a_whole_ledger():
    """Twelve changes with a true drop at the limit, each at its own level, many ledgers: the rate
    of ledgers in which any passed is at most delta, up to four standard errors."""
    from riskpilot.statistics.families import log_trinomial

    rng, n, limit, delta, ledgers = np.random.default_rng(0), 300, 0.03, 0.2, 400
    counts = rng.multinomial(n, [0.06, 0.03, 0.91], size=(ledgers, 12))
    any_passed = np.zeros(ledgers, dtype=bool)
    for k in range(1, 13):
        level = delta * share_of(k)
        log_p = log_trinomial(counts[:, k - 1, 0], counts[:, k - 1, 1], n, limit, level)
        any_passed |= log_p < math.log(level)
    rate = any_passed.mean()
    assert 0 < rate <= delta + 4 * math.sqrt(delta * (1 - delta) / ledgers)


def test_a_true_drop_at_the_limit_passes_through_the_door_as_its_level_says(tmp_path):
    rng, delta = np.random.default_rng(1), 0.2
    passed = 0
    for _ in range(30):
        new, reference = pair(tmp_path, rng, 200, 0.08, 0.05)
        passed += check_change(new, reference=reference, risks=[DROP], delta=delta).passed
    assert passed <= 30 * delta + 4 * math.sqrt(30 * delta * (1 - delta))
