"""Malformed and hostile studies: each gets a clear error, and nothing else is damaged."""

import io
import json
import shutil
import sqlite3

import numpy as np
import pytest
from cases import PROBLEM, evaluate
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.study import study_status
from riskpilot.study.kept.loss_bytes import encode
from riskpilot.study.kept.loss_store import FolderStore
from riskpilot.study.kept.records import record_of

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def place(tmp_path):
    study = rp.create_study(PROBLEM, storage=tmp_path / "study.db", study_name="s", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=6)
    return tmp_path


def load(place, name="s"):
    return rp.load_study(storage=place / "study.db", study_name=name)


def artifact(place, split="calibration"):
    """The file of a candidate's losses; the first trial, at x = 0, is always one."""
    entry = record_of(load(place).trials[0]).artifacts[split]
    return place / "study.db.losses" / entry["id"]


def flipped(blob):
    middle = len(blob) // 2
    return blob[:middle] + bytes([blob[middle] ^ 1]) + blob[middle + 1 :]


def pickled():
    buffer = io.BytesIO()
    np.savez(buffer, head=np.array([{"a": 1}], dtype=object))
    return buffer.getvalue()


CORRUPT = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "one bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "a pickle": lambda path: path.write_bytes(pickled()),
    "other losses": lambda path: path.write_bytes(
        encode({"error": np.zeros((1, 300), dtype=bool)})
    ),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("corrupt", CORRUPT.values(), ids=CORRUPT)
def test_losses_that_were_touched_are_named_and_the_rest_stays(place, corrupt):
    saved = place / "saved"
    shutil.copy(artifact(place), saved)
    corrupt(artifact(place))
    with pytest.raises(
        rp.StudyError, match=r"Trial 0: its calibration losses (were changed|are not in)"
    ):
        rp.select(load(place))
    assert rp.ledger(load(place)) == []
    study = load(place)
    study.optimize(rp.objective(study, evaluate), n_trials=1)  # the search does not need them
    shutil.copy(saved, artifact(place))
    assert rp.select(load(place)).certificate.n_configs == 7


def test_losses_changed_after_a_certificate_do_not_verify(place):
    certificate = rp.select(load(place)).certificate.save(place / "c.json")
    arguments = ["verify", str(certificate), "--losses", str(place / "study.db")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    artifact(place).write_bytes(b"other")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "were changed" in result.output


@pytest.mark.parametrize("keep", [0, 0.001, 0.05, 0.5, 0.8])
def test_a_truncated_database_is_refused_in_one_message(place, keep):
    path = place / "study.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))] if keep else b"not a database" * 100)
    for command in (["status"], ["select"]):
        result = CliRunner().invoke(app, [*command, str(path)])
        assert result.exit_code == 2, result.output
        assert "Error: " in result.output
        assert "Traceback" not in result.output
    with pytest.raises(rp.RiskpilotError):
        rp.select(load(place))
    path.write_bytes(whole)
    assert rp.select(load(place)).certificate.n_configs == 6


def test_a_record_that_points_out_of_the_folder_reads_nothing(place):
    secret = place / "secret"
    secret.write_text("do not read")
    for hostile in ("../secret", str(secret), "..\\secret", "a/../../secret", "\0", ""):
        with sqlite3.connect(place / "study.db") as database:
            query = "SELECT trial_user_attribute_id, value_json FROM trial_user_attributes"
            for row, value in database.execute(
                f"{query} WHERE key = 'riskpilot:record'"
            ).fetchall():
                record = json.loads(value)
                record["artifacts"]["calibration"]["id"] = hostile
                database.execute(
                    "UPDATE trial_user_attributes SET value_json = ? "
                    "WHERE trial_user_attribute_id = ?",
                    (json.dumps(record), row),
                )
        database.close()
        with pytest.raises(rp.StudyError, match="changed from outside") as caught:
            rp.select(load(place))
        assert "do not read" not in str(caught.value)
    assert rp.ledger(load(place)) == []


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "", "x", "A" * 36])
def test_a_folder_of_losses_takes_only_names_of_its_own_making(tmp_path, name):
    store = FolderStore(tmp_path / "losses")
    for use in (
        lambda: store.write(name, io.BytesIO(b"1")),
        lambda: store.open_reader(name),
        lambda: store.remove(name),
    ):
        with pytest.raises(rp.StudyError, match="names that riskpilot makes"):
            use()
    assert list(tmp_path.iterdir()) == []


NAMES = [SCRIPT, "../../up", "a/b\\c", "'; DROP TABLE trials; --", "[red]x[/red]", "ü \u05d0"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_only_names(tmp_path, name):
    problem = rp.Problem([rp.Risk(f"{name}", 0.3)], f"free {name}")
    study = rp.create_study(problem, storage=tmp_path / "study.db", study_name=name, seed=0)

    def named(trial):
        x = trial.suggest_float(name, 0, 1)
        draws = np.random.default_rng(trial.number).random((2, 300)) < 0.05 + 0.4 * x
        if trial.number == 2:
            raise RuntimeError(name)
        return rp.Evaluation({name: draws[0], f"free {name}": 1 - x}, {name: draws[1]})

    study.optimize(rp.objective(study, named, on_error="record"), n_trials=7)
    selection = rp.select(rp.load_study(storage=tmp_path / "study.db", study_name=name))
    page = selection.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert SCRIPT not in page
    assert rp.Certificate.from_json(selection.certificate.to_json()) == selection.certificate
    result = CliRunner().invoke(app, ["status", str(tmp_path / "study.db")])
    assert result.exit_code == 0
    assert f"Study {name}" in result.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {n for n in names if not n.endswith("-lock")} == {
        "study.db",
        "study.db.losses",
        "report.html",
    }


def test_nothing_in_the_package_reads_pickles():
    import pathlib

    import riskpilot

    for path in pathlib.Path(riskpilot.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, path
        assert "import pickle" not in text, path
        assert "joblib" not in text or "joblib.load" not in text, path


def without_digest(record):
    del record["artifacts"]["calibration"]["sha256"]


def with_odd_total(record):
    next(iter(record["risks"].values()))["total"] = "much"


@pytest.mark.parametrize("damage", [None, without_digest, with_odd_total])
@pytest.mark.parametrize("ask", [rp.select, rp.seal, study_status, rp.suggest_limits])
def test_a_damaged_trial_is_refused_in_one_sentence(place, damage, ask):
    with sqlite3.connect(place / "study.db") as base:
        if damage is None:
            base.execute("UPDATE trial_params SET distribution_json = '{}'")
        else:
            where = "FROM trial_user_attributes WHERE key = 'riskpilot:record'"
            row, text = base.execute(f"SELECT rowid, value_json {where}").fetchone()
            record = json.loads(text)
            damage(record)
            change = "UPDATE trial_user_attributes SET value_json = ? WHERE rowid = ?"
            base.execute(change, (json.dumps(record), row))
    base.close()
    with pytest.raises(rp.StudyError, match="changed from outside; restore it from a copy"):
        ask(load(place))
