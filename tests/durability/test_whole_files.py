"""Files that are overwritten: a full disk or a killed process leaves the earlier one whole."""

import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from cases import PROBLEM, evaluate
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import replacing, write_whole
from riskpilot.plots import save_figure
from riskpilot.study import export_losses
from riskpilot.tables import save_losses

ROOM = 512  # bytes that a file may have while the disk is full


@pytest.fixture(scope="module")
def study():
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=5)
    return study


@pytest.fixture(scope="module")
def sealed(study):
    return rp.seal(study, seed=7)


@pytest.fixture(scope="module")
def selection(study):
    return rp.select(study)


@pytest.fixture
def full_disk():
    """Writing fails in the middle, as on a full disk: the system lets no file grow further."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noise():
    return {"error": np.random.default_rng(0).random((4, 2000)), "cost": np.arange(4.0)}


WRITERS = {
    "certificate.json": lambda s: s["selection"].certificate.save,
    "seal.json": lambda s: s["sealed"].save,
    "report.html": lambda s: s["selection"].report,
    "export.npz": lambda s: lambda path: export_losses(s["study"], path),
    "losses.npz": lambda s: lambda path: save_losses(path, validation=noise(), calibration=noise()),
    "figure.html": lambda s: lambda path: save_figure(s["selection"].figure(), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_earlier_file_and_one_sentence(
    name, study, sealed, selection, tmp_path, full_disk
):
    write = WRITERS[name]({"study": study, "sealed": sealed, "selection": selection})
    path = tmp_path / name
    path.write_text("the earlier one")
    with pytest.raises(rp.RiskpilotError, match="has space") as caught:
        write(path)
    assert str(caught.value).count("\n") == 0
    assert path.read_text() == "the earlier one"
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_picture_is_written_whole_or_not_at_all(monkeypatch, tmp_path, full_disk):
    import plotly.graph_objects as go

    from riskpilot.plots import saving

    # What draws pictures is a browser, which needs files of its own; here its drawing is made up.
    monkeypatch.setattr(saving, "draw", lambda figure, options: b"x" * (2 * ROOM))
    (tmp_path / "figure.png").write_text("the earlier one")
    with pytest.raises(rp.RiskpilotError, match="has space"):
        save_figure(go.Figure(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_text() == "the earlier one"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_command_on_a_really_full_disk_exits_with_2(study, selection, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    losses = export_losses(study, tmp_path / "losses.npz")
    command = ["select", str(losses), "-r", "error<=0.3", "-r", "harm<=0.5 conditional"]
    command += ["--minimize", "cost"]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (disk / "report.html").write_text("the earlier one")
        (disk / "certificate.json").write_text("the earlier one")
        (disk / "ballast").write_bytes(b"x" * 56 * 1024)
        for option, name in (("--report", "report.html"), ("--out", "certificate.json")):
            result = CliRunner().invoke(app, [*command, option, str(disk / name)])
            assert result.exit_code == 2, result.output
            assert "No space left on device" in result.output
            assert result.output.count("Error: ") == 1
            assert (disk / name).read_text() == "the earlier one"
        assert sorted(os.listdir(disk)) == ["ballast", "certificate.json", "report.html"]
        (disk / "ballast").unlink()
        result = CliRunner().invoke(app, [*command, "--out", str(disk / "certificate.json")])
        assert result.exit_code == 0, result.output
        assert rp.Certificate.load(disk / "certificate.json").config is not None
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_process_killed_at_any_moment_leaves_a_whole_file(selection, tmp_path):
    path = selection.certificate.save(tmp_path / "certificate.json")
    code = """
        import sys, riskpilot as rp
        certificate = rp.Certificate.load(sys.argv[1])
        print("ready", flush=True)
        while True:
            certificate.save(sys.argv[1])
    """
    for moment in np.random.default_rng(0).uniform(0, 0.05, 4):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), path], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert rp.Certificate.load(path) == selection.certificate


def test_killed_in_the_middle_of_a_write_the_earlier_file_is_still_there(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("the earlier one")
    code = """
        import os, signal, sys
        from riskpilot.common import replacing
        with replacing(sys.argv[1]) as file:
            file.write(b"half of the new")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), path])
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "the earlier one"


def test_links_and_permissions_stay_as_they_are(tmp_path):
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    fresh, plain = write_whole(tmp_path / "fresh.json", "new"), tmp_path / "plain.json"
    plain.write_text("new")
    assert fresh.stat().st_mode == plain.stat().st_mode


def test_what_is_no_ordinary_file_is_written_to_directly():
    write_whole("/dev/null", "anything")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_error_of_whoever_writes_leaves_nothing_behind(tmp_path):
    def fail():
        with replacing(tmp_path / "new.json") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
