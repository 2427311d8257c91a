"""Outputs: no command writes over what it reads or what cannot be made again; pipes that close."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import kept_in
from riskpilot.tables import read_losses, save_losses
from riskpilot.watch import write_metrics

RISK = ["--risk", "error<=0.3", "--minimize", "cost"]


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study, a table, an archive, a certificate, labels and a run."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    address = f"sqlite:///{folder / 'study.db'}"
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.3)], "cost"), storage=address, seed=0)
    losses = [
        rp.Evaluation({"error": rng.random(400) < 0.1, "cost": 1.0}, {"error": np.zeros(400)})
    ]
    study.optimize(rp.objective(study, lambda trial: losses[0]), n_trials=1)
    archive = save_losses(
        folder / "l.npz",
        validation={"error": rng.random((1, 500)) < 0.1, "cost": np.ones(1)},
        calibration={"error": rng.random((1, 500)) < 0.1},
    )
    run("select", archive, *RISK, "--out", folder / "c.json")
    table = {"config": "a", "split": np.repeat(["validation", "calibration"], 300), "cost": 1.0}
    pd.DataFrame({**table, "error": 0}).to_csv(folder / "t.csv", index=False)
    run("select", folder / "t.csv", *RISK)  # the ledger is beside it now
    pd.DataFrame({"error": [0, 1, 0]}).to_csv(folder / "labels.csv", index=False)
    (folder / "link.html").symlink_to(folder / "study.db")
    (folder / "study.db-wal").write_bytes(b"")
    return folder


REFUSED = {
    "report on its database": "report study.db --out study.db",
    "by its address": "report sqlite:///study.db --out study.db",
    "by its address in codes": "report sqlite:///study%2Edb --out study.db.losses/report.html",
    "through a link": "report study.db --out link.html",
    "beside the database": "report study.db --out study.db-wal",
    "among the losses": "report study.db --out study.db.losses/report.html",
    "in a named folder": "report study.db --artifacts kept --out kept/report.html",
    "another database": "select l.npz RISK --out study.db",
    "the table": "select t.csv RISK --report t.csv",
    "its ledger": "select t.csv RISK --report t.csv.ledger.json",
    "another ledger": "select l.npz RISK --out t.csv.ledger.json",
    "found by a glob": "select t*.csv RISK --out ./t.csv",
    "the archive": "select l.npz RISK --out l.npz",
    "twice the same": "select l.npz RISK --out a.json --report ./a.json",
    "the certificate": "watch c.json --report c.json",
    "labels": "watch c.json --losses l*.csv --metrics labels.csv",
    "the state": "watch c.json --losses labels.csv --state w.json --report w.json",
    "seal on the study": "seal study.db --out study.db",
    "recertify": "recertify study.db --losses labels.csv --out labels.csv",
    "calibrate": "calibrate study.db --horizon 9 --labels labels.csv --out labels.csv",
    "gate": "gate t.csv --risk error<=0.3 --junit t.csv",
    "the gate's ledger": "gate t.csv --risk error<=0.3 --ledger g.db --out g.db",
    "plan": "plan --risk error<=0.3 -n 100 --true-risk error=0.1 --sequential --figure study.db",
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_command_writes_over_what_it_reads(
    case: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    before = {file: file.read_bytes() for file in made.rglob("*") if file.is_file()}
    words = [
        part for word in REFUSED[case].split() for part in (RISK if word == "RISK" else [word])
    ]
    said = run(*words, code=2)
    assert "Name another file." in said or "Name two files." in said
    assert {file: file.read_bytes() for file in made.rglob("*") if file.is_file()} == before


def test_ordinary_outputs_and_devices_are_written_again(made: Path, tmp_path: Path) -> None:
    outputs = ("--out", tmp_path / "c.json", "--report", tmp_path / "r.html")
    for _ in range(2):
        run("select", made / "l.npz", *RISK, *outputs)
    run("select", made / "l.npz", *RISK, "--out", "/dev/null", "--report", "/dev/null")


def test_a_seal_is_never_written_over(made: Path, tmp_path: Path) -> None:
    for name in ("study.db", "study.db.losses"):
        copy = shutil.copytree if (made / name).is_dir() else shutil.copy
        copy(made / name, tmp_path / name)
    study, out = tmp_path / "study.db", tmp_path / "seal.json"
    run("seal", study, "--out", out)
    first = out.read_text()
    assert rp.Seal.load(out).digest in run("seal", study, "--out", out)  # says the same
    run("select", study)
    said = run("seal", study, "--risk", "error<=0.25", "--out", out, code=2)
    assert "never written over" in said
    assert "--out another.json" in said
    assert "is a seal" in run("select", study, "--out", out, code=2)
    assert out.read_text() == first
    out.write_text(first.replace("0.3", "0.4"))  # one that was edited is kept, too
    assert "never written over" in run("seal", study, "-r", "error<=0.2", "--out", out, code=2)
    run("seal", study, "--risk", "error<=0.25", "--out", tmp_path / "another.json")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
@pytest.mark.parametrize(
    "arguments", [["verify", "c.json", "--losses", "l.npz"], ["--help"], ["verify", "--help"]]
)
def test_output_that_nobody_reads_has_an_exit_code_of_its_own(
    arguments: list[str], made: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "riskpilot", *arguments],
            cwd=made,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


# --- what other studies and Python keep -----------------------------------------------------------


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    """A folder with what cannot be made again: of other studies, of tables and of watches."""
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    other = rp.create_study(problem, storage=str(tmp_path / "other.log"), seed=0)
    rng = np.random.default_rng(1)
    losses = rp.Evaluation({"error": rng.random(400) < 0.1, "cost": 1.0}, {"error": np.zeros(400)})
    other.optimize(rp.objective(other, lambda trial: losses), n_trials=1)
    frozen = rp.freeze(problem, validation={"error": rng.random((1, 99)) < 0.1, "cost": [1.0]})
    rp.Calibration(frozen, horizon=99).save(tmp_path / "labels.npz")
    rp.seal(other).save(tmp_path / "seal.json")
    rp.Watch(rp.Certificate.load(made / "c.json")).save(tmp_path / "watch.json")
    shutil.copy(made / "study.db", tmp_path / "study.db")
    shutil.copy(made / "t.csv.ledger.json", tmp_path / "asked.json")  # told by its content
    for name in ("seal.json", "watch.json", "asked.json"):  # as a formatter leaves them
        content = json.loads((tmp_path / name).read_text())
        (tmp_path / f"sorted-{name}").write_text(json.dumps(content, sort_keys=True, indent=4))
        (tmp_path / f"torn-{name}").write_text((tmp_path / f"sorted-{name}").read_text()[:-5])
    first, rest = (tmp_path / "other.log").read_text().split("\n", 1)
    turned = json.dumps(dict(reversed(json.loads(first).items())))
    (tmp_path / "turned.log").write_text(f"{turned}\n{rest}")
    return tmp_path


KEPT = {
    "seal.json": "a seal",
    "watch.json": "the state of a watch",
    "study.db": "a database",
    "other.log": "the journal of a study",
    "other.log.losses/new.html": "in the folder of a study's losses",
    "other.log.ledger-lock": "the lock of another file",
    "asked.json": "the ledger of a table",
    "labels.npz": "a saved calibration",
    "sorted-seal.json": "a seal",
    "sorted-watch.json": "the state of a watch",
    "sorted-asked.json": "the ledger of a table",
    "torn-seal.json": "a seal",
    "torn-watch.json": "the state of a watch",
    "torn-asked.json": "the ledger of a table",
    "turned.log": "the journal of a study",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_be_made_again_is_replaced_by_no_command_and_no_function(
    name: str, made: Path, kept: Path
) -> None:
    (kept / "other.log.ledger-lock").touch()
    before = {file: file.read_bytes() for file in kept.rglob("*") if file.is_file()}
    place = kept / name
    for option in ("--out", "--report"):
        assert KEPT[name] in run("select", made / "l.npz", *RISK, option, place, code=2)
    archive = read_losses(made / "l.npz")
    given = {"validation": archive.validation, "calibration": archive.calibration}
    selection = rp.select_from_losses(rp.Problem([rp.Risk("error", 0.3)], "cost"), **given)
    watch = rp.Watch(selection.certificate)
    saves = [selection.report, selection.certificate.save, watch.report]
    saves += [partial(write_metrics, watch), partial(save_losses, **given)]
    for save in saves:
        with pytest.raises(
            rp.RiskpilotError, match=r"would be lost|never written over|an \.npz file"
        ):
            save(place)
    assert {file: file.read_bytes() for file in kept.rglob("*") if file.is_file()} == before


def test_a_calibration_and_a_watch_are_saved_over_themselves(kept: Path) -> None:
    rp.Calibration.load(kept / "labels.npz").save(kept / "labels.npz")
    rp.Watch.load(kept / "watch.json").save(kept / "watch.json")


@pytest.mark.parametrize("name", ["c.json", "l.npz"])
def test_no_page_takes_the_place_of_a_certificate_or_of_losses(
    name: str, made: Path, tmp_path: Path
) -> None:
    place = Path(shutil.copy(made / name, tmp_path))
    before = place.read_bytes()
    what = {"c.json": "is a certificate", "l.npz": "is a table of losses"}[name]
    assert what in run("select", made / "t.csv", *RISK, "--report", place, code=2)
    assert what in run("seal", made / "study.db", "--out", place, code=2)
    watch = rp.Watch(made / "c.json")
    for save in (watch.report, partial(write_metrics, watch), watch.save):
        with pytest.raises(rp.RiskpilotError):
            save(place)
    assert place.read_bytes() == before


def test_certificates_and_losses_are_renewed_by_their_like(made: Path, tmp_path: Path) -> None:
    certificate, archive = tmp_path / "c.json", tmp_path / "l.npz"
    shutil.copy(made / "c.json", certificate)
    shutil.copy(made / "l.npz", archive)
    run("select", made / "t.csv", *RISK, "--out", certificate)
    assert certificate.read_text() != (made / "c.json").read_text()
    rp.Certificate.load(made / "c.json").save(certificate)
    assert "is a table of losses" in run("select", made / "t.csv", *RISK, "--out", archive, code=2)
    with pytest.raises(rp.RiskpilotError, match="would be lost"):
        rp.Certificate.load(made / "c.json").save(archive)
    read = read_losses(archive)
    save_losses(archive, validation=read.validation, calibration=read.calibration)


def test_the_same_seal_in_another_form_is_the_same_seal(made: Path, kept: Path) -> None:
    rp.Seal.load(kept / "sorted-seal.json").save(kept / "sorted-seal.json")
    with pytest.raises(rp.CertificateError, match="never written over"):
        rp.Certificate.load(made / "c.json").save(kept / "sorted-seal.json")


def test_large_files_of_others_are_told_without_being_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large.json"
    large.write_text(json.dumps([{"use": 1, "answer": i} for i in range(1000)]))
    monkeypatch.setattr(json, "loads", None)
    assert kept_in(large) is None
    monkeypatch.setenv("RISKPILOT_MEMORY", "100")  # it is not even read
    assert kept_in(large) is None


NAMELESS = {
    "watch": "watch c.json --losses PATH",
    "gate": "gate PATH --risk error<=0.3",
    "select": "select PATH RISK",
    "calibrate": "calibrate PATH --horizon 9",
    "report": "report PATH --out r.html",
    "recertify": "recertify PATH --losses labels.csv",
    "seal": "seal PATH --out s.json",
}


@pytest.mark.parametrize("path", ["", ".", "/"])
@pytest.mark.parametrize("command", NAMELESS)
def test_a_path_without_a_name_cannot_be_used(
    command: str, path: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    words = {"PATH": [path], "RISK": RISK}
    said = run(*(w for word in NAMELESS[command].split() for w in words.get(word, [word])), code=2)
    assert "Give the path of a file" in said
