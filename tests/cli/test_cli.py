"""The command line: what it prints, what it writes, and how it exits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.cli.options import parse_numbers
from riskpilot.errors import ProblemError
from riskpilot.problem.notation import parse_risk
from riskpilot.study import problem_of
from riskpilot.tables import save_losses

runner = CliRunner()
RISK = ["--risk", "error<=0.3", "--minimize", "cost"]


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Three configurations of error 0.1, 0.2 and 0.5, the cheaper the worse."""
    rng = np.random.default_rng(0)
    error = np.array([[0.1], [0.2], [0.5]])
    return save_losses(
        tmp_path / "losses.npz",
        validation={"error": rng.random((3, 500)) < error, "cost": np.array([3.0, 2.0, 1.0])},
        calibration={"error": rng.random((3, 600)) < error},
        configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
    )


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def test_select_prints_the_verdict_and_writes_what_was_asked(losses: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "certificate.json", tmp_path / "report.html"
    text = run("select", losses, *RISK, "--out", out, "--report", report)
    assert "{'size': 'medium'}" in text
    assert "at least 90%" in text
    assert rp.Certificate.load(out).config == {"size": "medium"}
    assert "<html" in report.read_text()
    assert "holds" in run("verify", out, "--losses", losses)


def test_select_writes_p_values_that_no_float_holds(tmp_path: Path) -> None:
    never = np.zeros((1, 4000), dtype=bool)
    path = save_losses(
        tmp_path / "losses.npz",
        validation={"error": never, "cost": np.ones(1)},
        calibration={"error": never},
    )
    text = run("select", path, *RISK)
    assert text.count("2.5e-620") == 2  # 0.7 ** 4000, in the table and in the verdict


def test_select_exits_with_3_where_nothing_is_certified(losses: Path, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    text = run("select", losses, "-r", "error<=0.05", "-m", "cost", "--out", out, code=3)
    assert "Nothing could be certified" in text
    assert rp.Certificate.load(out).config is None


def test_select_prints_json_for_programs(losses: Path) -> None:
    data = json.loads(run("select", losses, *RISK, "--json"))
    assert data["certified"] is True
    assert data["config"] == {"size": "medium"}
    assert data["certificate"]["schema"].startswith("riskpilot-certificate/")
    data = json.loads(run("select", losses, "-r", "error<=0.05", "-m", "cost", "--json", code=3))
    assert data["certified"] is False
    assert data["config"] is None


@pytest.mark.parametrize("procedure", ["fixed_sequence", "bonferroni", "holm"])
@pytest.mark.parametrize("p_value", ["auto", "hoeffding", "hoeffding_bentkus", "betting"])
def test_select_takes_every_procedure_and_test(losses: Path, procedure: str, p_value: str) -> None:
    options = ["--procedure", procedure, "--p-value", p_value, "--delta", "0.2", "--json"]
    certificate = json.loads(run("select", losses, *RISK, *options))["certificate"]
    assert certificate["procedure"] == {"name": procedure}
    assert certificate["families"]["error"] == ("binomial" if p_value == "auto" else p_value)
    assert certificate["level"] == 0.2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["select", "absent.npz", *RISK], "There is no file"),
        (["select", "losses.txt", *RISK], "There is no file"),
        (["select", __file__, *RISK], "is a .csv, .parquet, .json or .jsonl file"),
        (["select", "LOSSES", "--risk", "error<=0.3"], "needs --risk and --minimize"),
        (["select", "LOSSES", "--minimize", "cost"], "needs --risk and --minimize"),
        (["select", "LOSSES", "--risk", "error<0.3", "-m", "cost"], "NAME<=NUMBER"),
        (["select", "LOSSES", "--risk", "error<=1.3", "-m", "cost"], "strictly inside"),
        (["select", "LOSSES", "--risk", "miss<=0.3", "-m", "cost"], "no validation losses"),
        (["select", "LOSSES", *RISK, "--delta", "2"], "must lie in (0, 0.5]"),
        (["select", "LOSSES", *RISK, "--procedure", "guess"], "guess"),
        (["select", "LOSSES", *RISK, "--out", "/no/such/folder/c.json"], "folder exists"),
        (["select", "sqlite:///absent.db"], "does not exist"),
        (["select", "foo://ann:s3cret@host/db"], "ann:***@host"),
        (["verify", "absent.json", "--losses", "LOSSES"], "cannot be read"),
        (["verify", "LOSSES", "--losses", "LOSSES"], "cannot be read"),
        (["seal", "absent.db"], "does not exist"),
        (["seal", "LOSSES"], "such as sqlite:///study.db"),
        (["plan", "-r", "error<=0.1"], "--samples"),
        (["plan", "-r", "error<=0.1", "-n", "0"], "at least 1"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--true-risk", "error"], "NAME=NUMBER"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--true-risk", "miss=0.1"], "none of them"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--true-risk", "error=0.2"], "[0, 0.1)"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--deviation", "error=-1"], "above 0"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--target-power", "1"], "(0, 1)"),
        (["plan", "-r", "error<=0.1", "-n", "9", "--figure", "plan.html"], "Add --sequential"),
        (["demo", "--limit", "2"], "strictly inside"),
        (["nonsense"], "No such command"),
    ],
)
def test_bad_input_exits_with_2_and_one_message(
    losses: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, [losses.name if a == "LOSSES" else a for a in arguments])
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert "s3cret" not in result.output
    assert result.stdout == ""


def test_verify_says_what_differs(losses: Path, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    run("select", losses, *RISK, "--out", out)
    with np.load(losses) as archive:
        arrays = dict(archive)
    arrays["calibration.error"] = arrays["calibration.error"].copy()
    arrays["calibration.error"][1, :5] ^= True
    other = tmp_path / "other.npz"
    np.savez(other, **arrays)
    text = run("verify", out, "--losses", other, code=1)
    assert "does not hold" in text
    assert "calibration losses are not the ones" in text
    data = json.loads(run("verify", out, "--losses", other, "--json", code=1))
    assert data["holds"] is False
    assert len(data["differences"]) >= 2


def test_an_edited_certificate_does_not_hold(losses: Path, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    run("select", losses, *RISK, "--out", out)
    out.write_text(out.read_text().replace("0.3", "0.2"))
    assert "changed after it was written" in run("verify", out, "--losses", losses, code=1)


def test_a_certificate_of_other_configurations_does_not_hold(losses: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "certificate.json", tmp_path / "other.npz"
    run("select", losses, *RISK, "--out", out)
    with np.load(losses) as archive:
        arrays = dict(archive)
    arrays["configs"] = arrays["configs"][::-1]
    np.savez(other, **arrays)
    text = run("verify", out, "--losses", other, code=1)
    assert "row 0 of the losses is the configuration {'size': 'small'}" in text


def test_a_study_is_selected_from_and_verified_by_its_storage(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'study.db'}"
    small_study(address)
    out = tmp_path / "certificate.json"
    first = json.loads(run("select", address, "--out", out, "--json"))
    assert first["certified"]
    assert "holds" in run("verify", out, "--losses", address, "--study-name", "first")
    again = json.loads(run("select", address, "--json"))
    assert again["certificate"] == first["certificate"]
    stricter = json.loads(run("select", address, "-r", "error<=0.4", "--json"))
    assert stricter["certificate"]["use"]["number"] == 2
    assert "minimises 'cost'" in run("select", address, "-m", "time", code=2)
    assert "holds 'first'" in run("select", address, "--study-name", "second", code=2)


def small_study(address: str) -> optuna.Study:
    problem = rp.Problem([rp.Risk("error", 0.5)], "cost")
    study = rp.create_study(problem, storage=address, seed=0, study_name="first")
    rng = np.random.default_rng(1)

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation(
            {"error": rng.random(100) < x, "cost": 1 - x}, {"error": rng.random(200) < x}
        )

    study.optimize(rp.objective(study, evaluate), n_trials=6)
    return study


def test_a_seal_is_written_before_and_checked_after(tmp_path: Path) -> None:
    path, out, sealed = tmp_path / "s.db", tmp_path / "c.json", tmp_path / "seal.json"
    study = small_study(f"sqlite:///{path}")
    text = run("seal", path, "--out", sealed)
    digest = rp.Seal.load(sealed).digest
    assert digest in text.replace("\n", "")
    assert "had no question yet" in text.replace("\n", " ")
    assert rp.ledger(study) == []
    run("select", path, "--out", out)
    assert "holds" in run("verify", out, "--losses", path, "--seal", sealed)
    assert "before its question is asked" in run("seal", path, "--out", sealed, code=2)
    other = tmp_path / "other.json"
    run("select", path, "-r", "error<=0.4", "--out", other)
    arguments = ["verify", other, "--losses", path, "--seal", sealed]
    assert "the seal has the problem" in run(*arguments, code=1)
    data = json.loads(run(*arguments, "--json", code=1))
    assert data["holds"] is False
    sealed = tmp_path / "stricter.json"
    stricter = json.loads(run("seal", path, "-r", "error<=0.3", "--out", sealed, "--json"))
    assert stricter["asked"]["risks"][0]["limit"] == 0.3
    assert stricter["questions"] == 2
    sealed.write_text(sealed.read_text().replace("0.3", "0.4"))
    assert "changed after" in run("verify", out, "--losses", path, "--seal", sealed, code=2)


def test_verify_says_what_it_took_on_trust(losses: Path, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    run("select", losses, *RISK, "--no-ledger", "--out", out)
    text = run("verify", out, "--losses", losses).replace("\n", " ")
    assert "Taken on trust: date and versions" in text
    data = json.loads(run("verify", out, "--losses", losses, "--json"))
    assert data["holds"] is True
    assert len(data["trusted"]) == 1


def test_verify_compares_with_the_ledger_beside_an_archive(losses: Path, tmp_path: Path) -> None:
    out, ledger = tmp_path / "certificate.json", losses.with_name(f"{losses.name}.ledger.json")
    run("select", losses, *RISK, "--out", out)
    text = run("verify", out, "--losses", losses).replace("\n", " ")
    assert "Taken on trust: that nobody wrote the ledger beside the table anew" in text
    kept = ledger.read_text()
    ledger.write_text("[]")
    assert "has no such question" in run("verify", out, "--losses", losses, code=1)
    ledger.write_text(kept.replace('"use": 1', '"use": 2'))
    assert "was changed" in run("verify", out, "--losses", losses, code=2)
    ledger.unlink()
    text = run("verify", out, "--losses", losses).replace("\n", " ")
    assert "Taken on trust: number, date and versions" in text


def test_status_carries_the_whole_problem_and_counts_trials_without_losses(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = small_study(f"sqlite:///{path}")
    study.optimize(lambda trial: (0.1, 0.2), n_trials=1)  # not through riskpilot.objective
    text = run("select", path).replace("\n", " ")
    assert "Left out: 1 finished trial (6) without losses" in text
    assert "Left out: 1 finished trial (6)" in run("status", path).replace("\n", " ")
    data = json.loads(run("status", path, "--json"))
    assert data["left_out"] == [6]
    assert data["asked"] == problem_of(study).to_dict()
    assert data["questions"][0]["asked"] == data["asked"]


def test_status_looks_ahead_until_the_study_s_question_is_answered(tmp_path: Path) -> None:
    study = small_study(f"sqlite:///{tmp_path / 's.db'}")
    assert "Ahead: " in run("status", tmp_path / "s.db")
    run("select", tmp_path / "s.db", "-r", "error<=0.9")  # another question
    assert "Ahead: " in run("status", tmp_path / "s.db")
    assert rp.select(study).config is not None
    assert "Ahead: " not in run("status", tmp_path / "s.db")


def test_plan_shares_labelled_examples_out() -> None:
    text = run("plan", "-r", "error<=0.05", "--labelled", 7500)
    assert "2,500 for validation, 5,000 for calibration" in text
    data = json.loads(run("plan", "-r", "error<=0.05", "--labelled", 7500, "-n", 40, "--json"))
    assert [plan["n_calibration"] for plan in data["plans"]] == [40, 5000]


def test_plan_says_what_can_pass() -> None:
    text = run("plan", "-r", "error<=0.05", "-n", 40, "-n", 5000, "--true-risk", "error=0.04")
    assert "nothing can pass with 40" in text
    assert "0.0458" in text
    data = json.loads(run("plan", "-r", "error<=0.05", "-n", 40, "-n", 5000, "--json"))
    assert [plan["just_passes"] is None for plan in data["plans"]] == [True, False]
    assert data["plans"][0]["fewest"] == 45


def test_a_plan_never_rounds_what_passes_to_the_unsafe_side() -> None:
    """Of 700 losses 59 pass, which is a share of 0.0842857, and of 903 hits 825, or 0.9136213."""
    text = run("plan", "-r", "error<=0.1", "-n", 700, "--delta", 0.1000004)
    assert "at delta = 0.1000004" in text
    assert " 0.084285 " in text
    text = run("plan", "-r", "recall>=0.9", "-n", 903)
    assert " 0.91363 " in text


def test_plan_takes_true_values_in_the_words_of_the_risk() -> None:
    asked = ("plan", "-r", "precision>=0.9", "-n", 1000, "--true-risk")
    assert "A true precision of 0.93 passes" in run(*asked, "precision=0.93").replace("\n", " ")
    (plan,) = json.loads(run(*asked, "precision=0.93", "--json"))["plans"]
    assert plan["true_risk"] == 0.93
    assert 0.9 < plan["just_passes"] < 0.93
    assert "lies in (0.9, 1]" in run(*asked, "precision=0.07", code=2).replace("\n", " ")


def test_plan_takes_each_risk_by_its_own_kind() -> None:
    text = run(
        "plan", "-r", "error<=0.1", "-r", "cost<=3 in [0,10]", "-n", 2000,
        "--deviation", "cost=1.5", "--true-risk", "cost=2.8", "--json",
    )  # fmt: skip
    error, cost = json.loads(text)["plans"]
    assert error["family"] == "binomial"
    assert error["power"] is None
    assert cost["family"] == "betting"
    assert 0.9 < cost["power"] <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error<=0.1", rp.Risk("error", 0.1)),
        (" error rate <= 1e-1 ", rp.Risk("error rate", 0.1)),
        ("error≤0.1", rp.Risk("error", 0.1)),
        ("drop<=0.05 in [-1,1]", rp.Risk("drop", 0.05, low=-1, high=1)),
        ("drop<=-0.05 in[ -1 , 1 ]", rp.Risk("drop", -0.05, low=-1, high=1)),
        ("miss<=0.1 conditional", rp.Risk("miss", 0.1, conditional=True)),
        ("m<=3 in [0,9] conditional", rp.Risk("m", 3, high=9, conditional=True)),
    ],
)
def test_risks_are_read_as_typed(text: str, expected: rp.Risk) -> None:
    assert parse_risk(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "error", "error<=", "<=0.1", "error=0.1", "error<=ten", "error<=0.1 in [0]", "a<=b<=1"],
)
def test_what_is_no_risk_is_refused(text: str) -> None:
    with pytest.raises(ProblemError):
        parse_risk(text)


def test_numbers_are_given_once() -> None:
    with pytest.raises(ProblemError, match="twice"):
        parse_numbers(["a=1", "a=2"], "true risk")


@pytest.mark.parametrize(
    "command", [command.callback.__name__ for command in app.registered_commands]
)
def test_help_shows_examples(command: str) -> None:
    text = run(command, "--help")
    assert "Examples" in text
    assert f"riskpilot {command}" in text


def test_help_shows_no_type_behind_a_flag() -> None:
    help_of = [CliRunner().invoke(app, [*words, "--help"]) for words in ([], ["select"], ["live"])]
    assert all(result.exit_code == 0 for result in help_of)
    assert not any("bool" in result.output.lower() for result in help_of)
    assert "--json" in help_of[1].output


def test_help_is_broken_where_the_terminal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    lines = [line.strip() for line in run("bench", "--help").splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("The folder --out"))
    paragraph = lines[start : lines.index("", start)]
    assert len(paragraph) > 2
    assert min(map(len, paragraph[:-1])) > 60


def test_version_is_shown() -> None:
    assert run("--version").strip() == f"riskpilot {rp.__version__}"


def process(*arguments: object) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return subprocess.run(
        [sys.executable, "-m", "riskpilot", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_a_real_process_exits_as_promised_and_pipes_plain_text(
    losses: Path, tmp_path: Path
) -> None:
    out = tmp_path / "certificate.json"
    certified = process("select", losses, *RISK, "--out", out)
    assert certified.returncode == 0
    assert certified.stderr == ""
    assert not re.search("\x1b", certified.stdout)
    nothing = process("select", losses, "-r", "error<=0.05", "-m", "cost")
    assert nothing.returncode == 3
    bad = process("select", "absent.npz", *RISK)
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("Error: There is no file")
    out.write_text(out.read_text().replace("0.3", "0.2"))
    assert process("verify", out, "--losses", losses).returncode == 1
