"""What is no ordinary file, or no file of riskpilot's, is refused at once and called what it is."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time

import pytest

import riskpilot as rp
from riskpilot.common import open_ordinary
from riskpilot.study.kept.records import record_of
from riskpilot.tables import read_losses
from tests.durability.cases import PROBLEM, evaluate

ODD = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def place(tmp_path):
    """A study with losses in a folder, as arguments of `load_study`."""
    place = {"storage": tmp_path / "study.db", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    return place


@pytest.mark.parametrize("kind", ODD)
def test_losses_that_are_no_file_are_refused_at_once(place, kind):
    study = rp.load_study(**place)
    certificate = rp.select(study).certificate
    artifact = record_of(study.trials[0]).artifacts["validation"]["id"]
    path = place["storage"].with_name("study.db.losses") / artifact
    path.unlink()
    ODD[kind](path)
    begin = time.monotonic()
    with pytest.raises(rp.StudyError, match=f"is {kind}. The folder was changed"):
        rp.verify(certificate, study=study)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("c.json", rp.Certificate.load),
        ("s.json", rp.Seal.load),
        ("t.npz", read_losses),
        ("t.csv", read_losses),
        *[(f"s{end}", lambda path: rp.load_study(storage=path)) for end in (".db", ".log")],
        *[
            (f"n{end}", lambda path: rp.create_study(PROBLEM, storage=path))
            for end in (".db", ".log")
        ],
    ],
)
def test_what_is_no_file_is_called_what_it_is(tmp_path, kind, name, use):
    ODD[kind](tmp_path / name)
    with pytest.raises(rp.RiskpilotError, match=f"ordinary file, but .* is {kind}"):
        use(tmp_path / name)


def test_a_pipe_that_takes_the_place_of_a_file_holds_nobody(tmp_path, monkeypatch):
    """It is put there after the file was looked at, and before it is opened."""
    path = tmp_path / "losses"
    path.touch()
    look = os.stat

    def exchange(*arguments, **options):
        status = look(*arguments, **options)
        path.unlink()
        os.mkfifo(path)
        return status

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", exchange)
        with pytest.raises(rp.StudyError, match="is a pipe"):
            open_ordinary(path, "A file", rp.StudyError)


def test_a_seal_and_a_certificate_are_told_apart(place, tmp_path):
    study = rp.load_study(**place)
    seal = rp.seal(study).save(tmp_path / "seal.json")
    certificate = rp.select(study).certificate.save(tmp_path / "certificate.json")
    with pytest.raises(rp.CertificateError, match=r"certificate was asked for.*riskpilot-seal"):
        rp.Certificate.load(seal)
    with pytest.raises(rp.CertificateError, match=r"seal was asked for.*riskpilot-certificate"):
        rp.Seal.load(certificate)
    command = [sys.executable, "-m", "riskpilot", "verify", str(seal), "--losses", "study.db"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "version it names" not in done.stderr


@pytest.mark.parametrize("table", ["trial_params", "trial_values"])
def test_a_text_in_the_place_of_a_number_is_the_fault_of_the_storage(place, table):
    certificate = rp.select(rp.load_study(**place)).certificate
    column = "param_value" if table == "trial_params" else "value"
    with contextlib.closing(sqlite3.connect(place["storage"])) as file, file:
        file.execute(f"UPDATE {table} SET {column} = 'abc' WHERE trial_id = 1")
    with pytest.raises(rp.StudyError, match=r"trial 0 cannot be read.*no number.*from outside"):
        rp.verify(certificate, study=rp.load_study(**place))


@pytest.mark.parametrize(
    "line",
    [
        b"7",
        b"{}",
        b"[" * 100_000,
        b'{"op_code": 99, "worker_id": "a"}',
        b'{"op_code": 4, "worker_id": "a"}',
        b'{"op_code": 0, "worker_id": "a", "study_name": "x", "directions": [7]}',
    ],
)
def test_an_odd_line_of_a_journal_is_the_fault_of_the_journal(tmp_path, line):
    place = {"storage": tmp_path / "study.log", "study_name": "s"}
    study = rp.create_study(PROBLEM, seed=0, **place)
    with place["storage"].open("ab") as file:
        file.write(line + b"\n")
    for use in (lambda: rp.load_study(**place), lambda: rp.ledger(study), lambda: rp.ledger(study)):
        with pytest.raises(rp.StudyError, match=r"a change of a study .* from outside"):
            use()


def test_a_file_that_is_no_database_gets_no_advice_about_drivers(tmp_path):
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 500)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as file, file:
        file.execute("CREATE TABLE studies (a)")
    for name in ("garbage.db", "other.db"):
        with pytest.raises(rp.StudyError, match="restore it from a copy") as caught:
            rp.load_study(storage=tmp_path / name)
        assert "driver" not in str(caught.value)
    with pytest.raises(rp.StudyError, match="folder exists"):
        rp.create_study(PROBLEM, storage=tmp_path / "absent" / "study.db")
    with pytest.raises(rp.StudyError, match="install the driver"):
        rp.create_study(PROBLEM, storage="nosuchdb://host/database")
