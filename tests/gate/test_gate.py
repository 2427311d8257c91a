"""The gate: what passes, what it writes, and what it refuses."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import bound_in_words
from riskpilot.errors import LossError, ProblemError, TableError
from riskpilot.gate import as_json, as_junit, as_markdown, check_change, in_words

LOGS = Path(__file__).parents[1] / "tables" / "logs" / "fixtures" / "inspect_ai"
SMALL, LARGE = LOGS / "terse-small.eval", LOGS / "terse-large.eval"
DROP = "accuracy_drop<=0.03"


def write(path, accuracy):
    rows = "".join(f"e{i},{int(value)}\n" for i, value in enumerate(accuracy))
    path.write_text(f"example,accuracy\n{rows}")
    return path


def test_a_better_model_passes_and_a_worse_one_does_not():
    assert check_change(LARGE, reference=SMALL, risks=[DROP]).passed
    answer = check_change(SMALL, reference=LARGE, risks=[DROP])
    assert not answer.passed
    (checked,) = answer.risks
    assert checked.test == "trinomial"
    by_the_tool = json.loads((LOGS / "read_by_the_tool.json").read_text())
    small, large = (
        np.mean([sample["scores"]["match"] != "C" for sample in by_the_tool[log.name]])
        for log in (SMALL, LARGE)
    )
    assert checked.value == pytest.approx(small - large)
    assert (checked.new, checked.reference) == pytest.approx((small, large))
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
    assert run(LARGE, "-r", "error<=0.3", "--out", tmp_path / "none" / "gate.json").exit_code == 2
    for delta in ("2", "nan", "inf"):
        assert run(LARGE, "-r", "error<=0.3", "--delta", delta).exit_code == 2
    assert run(LARGE, "-r", "error<=0.3", "--spend", "0.5").exit_code == 2  # no ledger to spend of
    broken = tmp_path / "broken.eval"
    broken.write_bytes(LARGE.read_bytes()[:1000])
    result = run(broken, "-r", "error<=0.3")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert json.loads(run(LARGE, "-r", "error<=0.3", "--json").stdout)["level"] == 0.05


def test_forms_agree():
    limits = [DROP, "accuracy>=0.8", "match_error<=0.5 as difference"]
    answer = check_change(SMALL, reference=LARGE, risks=limits)
    data = json.loads(as_json(answer))
    suite = ElementTree.fromstring(as_junit(answer)).find("testsuite")
    rows = [line for line in as_markdown(answer).splitlines() if line.startswith("| ")][1:]
    cases = suite.findall("testcase")
    for checked, one, case, row in zip(answer.risks, data["risks"], cases, rows, strict=True):
        assert one["p_value"] == checked.p_value
        assert one["passed"] == checked.passed == (case.find("failure") is None)
        assert one["risk"] == str(checked.risk) == case.get("name")
        assert ("**not shown**" in row) == (not checked.passed)
        assert len(row.replace("\\|", "").strip("|").split("|")) == 7
    assert data["passed"] is False
    assert int(suite.get("failures")) == sum(not checked.passed for checked in answer.risks) > 0
    # An accuracy is written as itself, and not as one minus it.
    assert "accuracy >= 0.8: not shown; 0.7 on 60 examples, and at least 0.5" in in_words(answer)
    assert "Tested at level 0.05, as a question on its own." in in_words(answer)


def test_a_name_that_would_break_a_form_is_escaped(tmp_path):
    path = tmp_path / "new.csv"
    name = 'a|b & "c" *d*'
    rows = "".join(f"e{i},0\n" for i in range(20))
    path.write_text('example,"a|b & ""c"" *d*"\n' + rows)
    answer = check_change(path, risks=[rp.Risk(name, 0.5)])
    case = ElementTree.fromstring(as_junit(answer)).find("testsuite/testcase")
    assert case.get("name") == f"{name} <= 0.5"
    assert 'a\\|b & "c" \\*d\\* &lt;= 0.5' in as_markdown(answer)


@pytest.mark.parametrize(
    ("risks", "words"),
    [
        ([], "needs a limit"),
        (["accuracy_drop<=0.03"], "none is given"),
        (["error<=0.1 as cvar(0.9)"], "limits something else"),
        (["verbosity<=0.1"], "has no column 'verbosity'"),
        (["error<=0.1 conditional"], "takes no conditional means"),
        (["precision>=0.9"], "takes no conditional means"),
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


def test_a_column_that_no_metric_is_known_by_is_checked_too():
    drop = "match_error<=0.1 as difference"
    assert check_change(LARGE, reference=SMALL, risks=[drop]).passed
    assert not check_change(SMALL, reference=LARGE, risks=[drop]).passed


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", "has no rows"),
        ("a,1\na,0\n", "'a' is there twice"),
        ("a,1\nb,\n", "'b' has none"),
        ("a,2\nb,1\n", r"lie in \[0"),
        ("a,x\n", "must be numbers, or empty where there is none, but line 2 has 'x'"),
    ],
)
def test_tables_with_odd_rows_are_refused(tmp_path, rows, words):
    path = tmp_path / "new.csv"
    path.write_text(f"example,error\n{rows}")
    with pytest.raises((TableError, LossError), match=words):
        check_change(path, risks=["error<=0.5"])


@pytest.mark.parametrize("bad", ["inf", "-inf", "2.5"])
@pytest.mark.parametrize("which", ["new", "reference", "own range"])
def test_a_loss_outside_its_range_is_bad_input_and_spends_nothing(tmp_path, bad, which):
    odd, fine = tmp_path / "odd.csv", tmp_path / "fine.csv"
    odd.write_text(f"example,error\na,0\nb,{bad}\n")
    fine.write_text("example,error\na,0\nb,1\n")
    words = {
        "new": [odd, "--reference", fine, "-r", "error_drop<=0.5"],
        "reference": [fine, "--reference", odd, "-r", "error_drop<=0.5"],
        "own range": [odd, "-r", "error<=1 in [0,2]"],
    }[which]
    ledger = tmp_path / "gate.db"
    command = ["gate", *map(str, words), "--ledger", str(ledger), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2, result.output
    assert "'odd.csv': losses of 'error" in " ".join(result.output.split())
    assert bad in result.output
    assert not ledger.exists()


def test_an_id_that_means_another_example_in_the_reference_is_refused(tmp_path):
    log = json.loads((LOGS / "repeated.json").read_text())
    for sample in log["samples"]:
        sample |= {"input": f"Another {sample['input']}", "target": "none"}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(log))
    with pytest.raises(TableError, match="'sum-00' is another one"):
        check_change(LOGS / "repeated.json", reference=other, risks=[DROP])


def test_the_guide_shows_what_the_command_says(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")
    shown = [part.split("```")[0] for part in page.split("```text\n")[1:]]
    alone = check_change(LARGE, reference=SMALL, risks=[DROP])
    counted = check_change(LARGE, reference=SMALL, risks=[DROP], ledger=tmp_path / "gate.db")
    assert shown[0] == in_words(alone) + "\n"
    assert shown[1].strip() == in_words(counted).splitlines()[-1]


@pytest.mark.parametrize("form", ["csv", "words", "parquet"])
def test_columns_of_0_and_1_get_an_exact_test_under_any_name(tmp_path, form):
    slow = np.random.default_rng(5).random(300) < 0.1
    frame = pd.DataFrame({"example": range(300), "slow": slow})
    path = tmp_path / f"new.{'parquet' if form == 'parquet' else 'csv'}"
    if form == "parquet":
        frame.to_parquet(path)
    else:
        (frame if form == "words" else frame.astype(int)).to_csv(path, index=False)
    (checked,) = check_change(path, risks=["slow<=0.15"]).risks
    assert checked.test == "binomial"
    assert checked.p_value == pytest.approx(scipy.stats.binom.cdf(slow.sum(), 300, 0.15))
    drop = check_change(path, reference=path, risks=["slow<=0.1 as difference"])
    assert drop.risks[0].test == "trinomial"


@pytest.mark.parametrize("risk", ["once<=0.45 in [0,3]", "thrice<=0.45 in [0,3]"])
def test_whole_numbers_in_another_range_are_bet_on(tmp_path, risk):
    once = np.random.default_rng(5).random(300) < 0.1
    frame = pd.DataFrame({"example": range(300), "once": once, "thrice": 3 * once})
    frame.to_parquet(tmp_path / "new.parquet")
    (checked,) = check_change(tmp_path / "new.parquet", risks=[risk]).risks
    assert checked.test == "betting"


def test_a_value_next_to_its_limit_is_shown_on_its_side(tmp_path):
    frame = pd.DataFrame({"example": range(20_000), "slow": np.arange(20_000) < 2_399})
    frame.to_parquet(tmp_path / "new.parquet")
    assert "0.11995 on 20,000" in in_words(
        check_change(tmp_path / "new.parquet", risks=["slow<=0.12"])
    )


def test_one_side_that_is_not_0_and_1_is_bet_on(tmp_path):
    draws = np.random.default_rng(5).random(300)
    for name, slow in (("new", draws), ("main", (draws < 0.5).astype(int))):
        frame = pd.DataFrame({"example": range(300), "slow": slow})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    new, main = tmp_path / "new.csv", tmp_path / "main.csv"
    for one, other in ((new, main), (main, new)):
        gate = check_change(one, reference=other, risks=["slow<=0.3 as difference"])
        assert gate.risks[0].test == "betting"


@pytest.mark.parametrize("limit", [0.14205, 0.14213, 0.1420001, 0.2])
def test_no_bound_is_written_beyond_a_limit_that_is_shown(limit, tmp_path):
    rows = "".join(f"{i},{int(i < 20)},{int(i >= 20)}\n" for i in range(200))
    (tmp_path / "new.csv").write_text(f"example,error,accuracy\n{rows}")
    for risk in (rp.Risk("error", limit), rp.Risk("accuracy", at_least=round(1 - limit, 7))):
        answer = check_change(tmp_path / "new.csv", risks=[risk])
        assert answer.passed
        for text in (in_words(answer), as_markdown(answer), as_junit(answer)):
            (said,) = re.findall(r"(?:at most|at least) (0\.[0-9]+)", text)
            shown = risk.in_words(float(said))
            assert answer.risks[0].upper_bound - 1e-12 <= shown <= risk.limit


def test_a_bound_beyond_its_limit_is_not_written_as_the_limit():
    assert bound_in_words(0.1 + 1e-15, up=True, limit=0.1) == repr(0.1 + 1e-15)
    assert bound_in_words(0.9 - 1e-15, up=False, limit=0.9) == repr(0.9 - 1e-15)
