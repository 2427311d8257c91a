"""JSON for programs: every output names its form, and has exactly the fields of its schema."""

import json
import re
from pathlib import Path

import numpy as np
import optuna
import pytest
import typer
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.tables import save_losses

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
FORMS = {path.stem: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
REGISTRY = Registry().with_resources(
    (f"{name}.json", Resource.from_contents(form)) for name, form in FORMS.items()
)
FORM_OF = {"recertify": "select", "watch": "watched"}  # where it is not the command's name
RISKS = [
    rp.Risk("error", 0.5),
    rp.Risk("recall", at_least=0.3, statistic=rp.WorstGroup()),
]


def check(output: str) -> dict:
    """Check that an output is valid under the schema that it names, and return it."""
    data = json.loads(output)
    name = data["schema"].removeprefix("riskpilot-").replace("/", "-")
    Draft202012Validator(FORMS[name], registry=REGISTRY).validate(data)
    return data


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Two configurations, the cheaper one worse."""
    rng = np.random.default_rng(0)
    error = np.array([[0.1], [0.5]])
    return save_losses(
        tmp_path / "losses.npz",
        validation={"error": rng.random((2, 500)) < error, "cost": np.array([2.0, 1.0])},
        calibration={"error": rng.random((2, 600)) < error},
    )


@pytest.fixture
def study(tmp_path: Path) -> str:
    """A study with finished, failed and running trials and a risk that is about groups."""
    address = f"sqlite:///{tmp_path / 'study.db'}"
    made = rp.create_study(rp.Problem(RISKS, "cost"), storage=address, seed=0)
    rng = np.random.default_rng(1)
    split = {"groups": np.arange(400) % 2}

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            raise RuntimeError("out of memory")
        losses = [{name: rng.random(400) < x / 2 for name in ("error", "recall")} for _ in "vc"]
        return rp.Evaluation(
            {**losses[0], **split, "cost": 1 - x},
            {**losses[1], **split},
        )

    made.optimize(rp.objective(made, evaluate), n_trials=5, catch=RuntimeError)
    with pytest.warns(UserWarning, match="Heartbeat"):  # Optuna's, where no worker beats
        made.ask()
    return address


@pytest.mark.parametrize("name", FORMS)
def test_every_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(FORMS[name])
    assert FORMS[name]["$id"] == f"{name}.json"


def test_every_command_that_prints_json_has_a_schema() -> None:
    commands = typer.main.get_command(app).commands
    printing = {
        name
        for name, command in commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    known = {re.sub(r"-\d+$", "", name) for name in FORMS}
    named = {FORM_OF.get(name, name) for name in printing}
    assert known == {*named, "certificate", "shared"}


def test_outputs_about_a_table_are_as_their_schemas_say(losses: Path, tmp_path: Path) -> None:
    out = tmp_path / "certificate.json"
    question = ["select", losses, "-m", "cost", "--json", "--out", out]
    assert check(run(*question, "-r", "error<=0.05", code=3))["config"] is None
    assert check(run(*question, "-r", "error<=0.3"))["certified"]
    assert check(out.read_text("utf-8"))["chosen"] == 0
    assert check(run("verify", out, "--losses", losses, "--json"))["holds"]


def test_outputs_about_a_study_are_as_their_schemas_say(study: str, tmp_path: Path) -> None:
    seal, out = tmp_path / "seal.json", tmp_path / "certificate.json"
    before = check(run("status", study, "--json"))
    assert before["failures"][0]["error"].endswith("out of memory")
    assert len(before["running"]) == 1
    assert check(run("seal", study, "--out", seal, "--json")) == check(seal.read_text("utf-8"))
    certificate = check(run("select", study, "--out", out, "--json"))["certificate"]
    assert certificate == check(out.read_text("utf-8"))
    assert certificate["groups"]
    after = check(run("status", study, "--json"))
    assert after["questions"][0]["certificate"] == certificate["digest"]
    assert check(run("verify", out, "--losses", study, "--seal", seal, "--json"))["holds"]


def test_what_races_saved_is_as_its_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "race.log"
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), storage=path, seed=0)
    luck = np.random.default_rng(0).random((2, 300))

    def evaluate(trial: optuna.Trial):
        x = trial.suggest_float("x", 0, 1)
        for rows in np.split(np.arange(300), 3):
            yield {"error": luck[0, rows] < 0.05 + x / 2, "cost": 1 - x}
        return {"error": luck[1] < 0.05 + x / 2}

    for x in (0.0, 1.0):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    assert check(run("status", path, "--json"))["racing"] == {
        "stopped": 1,
        "saved": 1 / 3,
        "ended": 0,
    }
    assert "Racing: 33% of the examples were not evaluated" in run("status", path)


def test_plans_are_as_their_schema_says() -> None:
    enough = ["-r", "error<=0.1", "-r", "precision>=0.8", "-n", "500", "--true-risk", "error=0.08"]
    assert len(check(run("plan", *enough, "--json"))["plans"]) == 2
    too_few = check(run("plan", "-r", "error<=0.1", "-n", "5", "--json"))
    assert too_few["plans"][0]["just_passes"] is None
    believed = ["-r", "error<=0.1", "-n", "300", "--true-risk", "error=0.05", "--json"]
    assert "horizon" in check(run("plan", *believed, "--sequential"))["plans"][0]
    judged = check(run("plan", *believed, "--judge", "error=0.8", "--unlabelled", "3000"))
    assert judged["judges"][0]["worth"] > 300


def test_a_field_that_no_schema_knows_is_noticed(losses: Path) -> None:
    data = json.loads(run("select", losses, "-r", "error<=0.3", "-m", "cost", "--json"))
    for changed in ({**data, "mood": "good"}, {k: v for k, v in data.items() if k != "config"}):
        with pytest.raises(ValidationError):
            check(json.dumps(changed))


def test_answers_of_a_gate_are_as_their_schema_says(tmp_path: Path) -> None:
    logs = Path(__file__).parents[1] / "tables" / "logs" / "fixtures" / "inspect_ai"
    small, large = logs / "terse-small.eval", logs / "terse-large.eval"
    out = tmp_path / "gate.json"
    question = ["gate", large, "-r", "error<=0.3", "--json"]
    assert check(run(*question))["reference"] is None
    against = ["--reference", small, "-r", "accuracy_drop<=0.03", "--out", out]
    assert check(run(*question, *against)) == check(out.read_text("utf-8"))
    counted = check(run(*question, "--ledger", tmp_path / "ledger.sqlite"))
    assert counted["question"] == 1


def test_answers_of_a_watch_are_as_their_schema_says(losses: Path, tmp_path: Path) -> None:
    out, labels = tmp_path / "certificate.json", tmp_path / "labels.csv"
    run("select", losses, "-r", "error<=0.3", "-m", "cost", "--out", out)
    labels.write_text("error\n" + "0\n" * 50)
    watched = ["watch", out, "--losses", labels, "--json"]
    assert not check(run(*watched))["alarm"]
    labels.write_text("error\n" + "1\n" * 300)
    assert len(check(run(*watched, code=1))["alarms"]) == 1


def test_labels_one_after_another_are_as_their_schema_says(tmp_path: Path) -> None:
    address, labels = f"sqlite:///{tmp_path / 'study.db'}", tmp_path / "labels.csv"
    made = rp.create_study(
        rp.Problem([rp.Risk("error", 0.3)], "cost"), storage=address, seed=0, n_calibration=600
    )

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": np.arange(400) % 20 == 0, "cost": x})

    made.optimize(rp.objective(made, evaluate), n_trials=2)
    asked = ["calibrate", address, "--horizon", "600", "--json"]
    needed = check(run(*asked, code=4))["needed"]
    rows = [f"e{i},{trial},{int(i % 20 == 1)}" for i in range(200) for trial in needed]
    labels.write_text("\n".join(["example,trial,error", *rows]) + "\n")
    answer = check(run(*asked, "--labels", labels))
    assert answer["certificate"]["sequential"]["horizon"] == 600
