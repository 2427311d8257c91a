"""Files that claim, or expand to, more than a machine holds: refused before they are read."""

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import PROBLEM, evaluate
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import digest_of, parse
from riskpilot.common.size_limits import memory_limit
from riskpilot.study import export_losses
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import get
from riskpilot.tables import read_losses


def header(shape, dtype="<f8"):
    """The beginning of an .npy file, without its numbers."""
    file = io.BytesIO()
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)
    return file.getvalue()


def npz(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def expanding(path):
    """A file of half a megabyte that expands to half a gigabyte of zeros."""
    zeros = b"\0" * 10**7
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("validation.error", "calibration.error"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(header((1, 3 * 10**7)))
                for _ in range(24):
                    file.write(zeros)
    return path


def many_rows(path):
    """A Parquet file of a few kilobytes with 20 million rows that are all alike."""
    rows = 2 * 10**6
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["a"])
    table = pa.table({"split": column, "config": column, "error": pa.array(np.zeros(rows))})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(10):
            writer.write_table(table, row_group_size=rows)
    return path


TABLES = {
    "expands": ("t.npz", expanding, "would take"),
    "claims 10 TB": (
        "t.npz",
        lambda path: npz(path, {"validation.error": header((10, 125 * 10**9))}),
        "would take",
    ),
    "claims more than any machine": (
        "t.npz",
        lambda path: npz(path, {"validation.error": header((10**400,))}),
        "would take",
    ),
    "claims more than it has": (
        "t.npz",
        lambda path: npz(path, {"validation.error": header((10, 1000))}),
        "claims 80,000 bytes",
    ),
    "a bare array of 10 TB": (
        "t.npz",
        lambda path: path.write_bytes(header((10, 125 * 10**9))),
        "bare array",
    ),
    "a header of nonsense": (
        "t.npz",
        lambda path: npz(
            path, {"validation.error": b"\x93NUMPY\x01\x00" + b"\xf0\x20" + b"-" * 8432}
        ),
        "no complete",
    ),
    "a file of 10 TB": ("t.csv", lambda path: sparse(path), "would take"),
    "a line without an end": (
        "t.csv",
        lambda path: path.write_bytes(b"a" * 3 * 10**8),
        "would take",
    ),
    "20 million equal rows": ("t.parquet", many_rows, "would take"),
    "a device": ("t.npz", lambda path: path.symlink_to("/dev/zero"), "is a device"),
}


def sparse(path):
    with path.open("wb") as file:
        file.truncate(10**13)


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_no_machine_holds_are_refused_before_they_are_read(case, tmp_path, monkeypatch):
    monkeypatch.setenv("RISKPILOT_MEMORY", "256MB")  # so that the files need not be larger still
    name, make, says = TABLES[case]
    make(tmp_path / name)
    begin = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(rp.TableError, match=says):
        read_losses(tmp_path / name)
    command = ["select", str(tmp_path / name), "-r", "error<=0.1", "-m", "cost"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert result.output.startswith("Error: ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "json", "jsonl"])
def test_a_line_without_an_end_is_refused_where_rows_are_streamed(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    content = b"a" * 5 * 10**6
    if ending == "csv.zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
    with pytest.raises(rp.TableError):
        rp.select_from_frame(PROBLEM, path, config="config", example=None)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_text_that_the_disk_cannot_take_is_refused_before_it_is_read(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    with path.open("wb") as file:
        file.write(b"split,config,example,error,cost\n")
        file.truncate(10**13)
    begin = time.process_time()
    with pytest.raises(rp.TableError, match="has room for"):
        rp.select_from_frame(PROBLEM, path, config="config", example="example")
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_table_that_is_a_device_is_refused(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    path.symlink_to("/dev/zero")
    with pytest.raises(rp.TableError, match="is a device"):
        rp.select_from_frame(PROBLEM, path, config="config", example="example")


def test_the_limit_can_be_raised_and_lowered_by_one_setting(tmp_path, monkeypatch):
    losses = {"error": np.zeros((2, 500)), "cost": np.zeros(2)}
    path = rp_save(tmp_path / "t.npz", losses)
    assert memory_limit() == 2 * 2**30
    monkeypatch.setenv("RISKPILOT_MEMORY", "10KB")
    with pytest.raises(rp.TableError, match=r"at most 10 KiB.*RISKPILOT_MEMORY=1GB"):
        read_losses(path)
    monkeypatch.setenv("RISKPILOT_MEMORY", "1 GB")
    assert read_losses(path).validation["error"].shape == (2, 500)
    monkeypatch.setenv("RISKPILOT_MEMORY", "8TiB")
    assert memory_limit() == 8 * 2**40
    for wrong in ("much", "-1", "0", "1.5GB", "9" * 40):
        monkeypatch.setenv("RISKPILOT_MEMORY", wrong)
        with pytest.raises(rp.ProblemError, match="RISKPILOT_MEMORY is how much memory"):
            read_losses(path)


def rp_save(path, losses):
    from riskpilot.tables import save_losses

    return save_losses(path, validation=losses, calibration=losses)


def deep(levels):
    return "[" * levels + "]" * levels


def signed_with(config):
    """A certificate's text in which something stands where configurations do."""
    return f'{{"schema": "riskpilot-certificate/2", "configs": {config}}}'


@pytest.fixture(scope="module")
def certificates():
    """The fields of a study's certificate, and of one of labels that arrived one by one."""
    problem = rp.Problem([rp.Risk("error", 0.2)], "cost")
    draws = np.random.default_rng(0).random((3, 500)) < 0.1
    study = rp.create_study(problem, seed=0)
    evaluation = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=1)
    calibration = rp.Calibration(study, horizon=1000)
    calibration.add({"error": draws[2:]})
    found = [rp.select(study).certificate, calibration.select().certificate]
    return [json.loads(certificate.to_json()) for certificate in found]


def signed_again(fields, **changes):
    content = {name: value for name, value in {**fields, **changes}.items() if name != "digest"}
    return json.dumps({**content, "digest": digest_of(content)})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trials": [[i * 2**20, i * 2**20 + 999_998] for i in range(3)]}, "at most 1,000,000 tri"),
        ({"trials": [[0, 999_998]]}, "as many as the 1 configurations"),
        ({"trials": [[0, 10**18]]}, "at most 1,000,000 trial numbers"),
        ({"trials": [[3, 5], [6, 9]]}, "ascending runs of trial numbers"),
        ({"trials": [[5, 3]]}, "ascending runs of trial numbers"),
        ({"trials": []}, "ascending runs of trial numbers"),
        ({"looks": [[1, 10**18]]}, "at most 5,000,000 numbers of labels"),
        ({"looks": [[1, 4_000_000]]}, "largest of sequential.labels, which is 500"),
    ],
)
def test_runs_of_numbers_are_held_against_what_they_are_about(certificates, changes, says):
    plain, by_label = certificates
    text = signed_again(plain, **changes)
    if "looks" in changes:
        text = signed_again(by_label, sequential={**by_label["sequential"], **changes})
    tracemalloc.start()
    with pytest.raises(rp.CertificateError, match=says):
        rp.Certificate.from_json(text)
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()


def test_looks_after_more_labels_than_there_are_are_not_read(certificates):
    _, fields = certificates
    many = {"labels": [4_000_000], "looks": [[1, 4_000_000]], "horizon": 5_000_000}
    text = signed_again(fields, sequential={**fields["sequential"], **many})
    certificate = rp.Certificate.from_json(text)
    losses = {"error": np.zeros((1, 500))}
    tracemalloc.start()
    found = rp.verify(
        certificate, validation={**losses, "cost": np.ones(1)}, calibration=losses
    ).differences
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()
    assert "4,000,000 labels were used, but calibration has 500" in found[-1]


TEXTS = {
    "100,000 levels": deep(100_000),
    "300 levels": deep(300),
    "objects of 5,000 levels": '{"a":' * 5000 + "1" + "}" * 5000,
    "an integer of 5,000 digits": "9" * 5000,
    "a float of 5,000 digits": "9" * 5000 + ".5e5000",
    "an integer of 4,000 digits inside": signed_with("9" * 4000),
    "levels inside": signed_with(deep(990)),
    "half a character": signed_with(r'["\ud800"]'),
    "NaN": signed_with("NaN"),
    "nothing": "",
    "zeros": "\0" * 1000,
    "not UTF-8": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("kind", ["certificate", "seal"])
@pytest.mark.parametrize("case", TEXTS)
def test_odd_json_is_refused_in_one_sentence_and_is_bad_input(case, kind, tmp_path):
    text = TEXTS[case]
    path, losses = tmp_path / "c.json", rp_save(tmp_path / "t.npz", {"error": np.zeros((1, 9))})
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(rp.CertificateError) as caught:
        (rp.Certificate if kind == "certificate" else rp.Seal).load(path)
    assert len(str(caught.value)) < 500
    command = ["verify", str(path), "--losses", str(losses)]
    command += ["--seal", str(path)] if kind == "seal" else []
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
@pytest.mark.parametrize("option", ["certificate", "losses", "seal"])
def test_a_device_is_refused_at_once(path, option, tmp_path):
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    places = {
        "seal": rp.seal(study).save(tmp_path / "seal.json"),
        "certificate": rp.select(study).certificate.save(tmp_path / "c.json"),
        "losses": export_losses(study, tmp_path / "t.npz"),
    }
    places[option] = path
    command = ["verify", places["certificate"], "--losses", places["losses"]]
    result = CliRunner().invoke(app, [*map(str, command), "--seal", str(places["seal"])])
    assert result.exit_code == 2, result.output
    assert "Error: " in result.output


def test_a_text_of_ten_terabytes_is_refused_at_once(tmp_path):
    sparse(tmp_path / "c.json")
    with pytest.raises(rp.CertificateError, match=r"would take .*TiB"):
        rp.Certificate.load(tmp_path / "c.json")


def test_a_certificate_may_come_through_a_pipe(tmp_path):
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    certificate = rp.select(study).certificate
    certificate.save(tmp_path / "c.json")
    losses = export_losses(study, tmp_path / "t.npz")
    command = [sys.executable, "-m", "riskpilot", "verify", "/dev/stdin", "--losses", str(losses)]
    whole = (tmp_path / "c.json").read_bytes()
    done = subprocess.run(command, input=whole, capture_output=True)
    assert done.returncode == 0, done.stderr
    endless = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE)
    try:
        bounded = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash", *command]
        environment = {**os.environ, "RISKPILOT_MEMORY": "20MB"}
        done = subprocess.run(bounded, stdin=endless.stdout, capture_output=True, env=environment)
    finally:
        endless.kill()
        endless.wait()
        endless.stdout.close()
    assert done.returncode == 2
    assert b"would take" in done.stderr


def test_losses_of_a_store_are_held_against_the_limit(monkeypatch):
    class Endless:
        def read(self, n):
            return b"\0" * n

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    class Store:
        def open_reader(self, _):
            return Endless()

    entry = {"id": "00000000-0000-0000-0000-000000000000", "sha256": "0" * 64}
    monkeypatch.setenv("RISKPILOT_MEMORY", "50MB")
    with pytest.raises(rp.StudyError, match="Trial 0: its losses would take"):
        get(Store(), entry, "Trial 0: its losses")


def with_head(**changes):
    """Losses as bytes, with another head than they should have."""
    blob = encode({"error": np.zeros((1, 80), dtype=bool)})
    with np.load(io.BytesIO(blob)) as arrays:
        head = json.loads(str(arrays["head"]))
        head["columns"][0].update(changes)
        changed = {**arrays, "head": np.array(json.dumps(head))}
    buffer = io.BytesIO()
    np.savez(buffer, **changed)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 10**13},
        {"length": 81},
        {"length": -1},
        {"length": "80"},
        {"kind": "odd"},
        {"kind": None},
        {"low": "0"},
        {"name": 3},
        {"more": 1},
    ],
)
def test_stored_losses_that_say_more_than_they_have_are_refused(changes):
    assert decode(with_head())["error"].shape == (1, 80)
    with pytest.raises(rp.StudyError, match="cannot be read"):
        decode(with_head(**changes))


def test_stored_losses_that_expand_without_end_are_refused(tmp_path):
    blob = npz(tmp_path / "x", {"head": header((), "<U10"), "v0": header((1, 10**13))})
    with pytest.raises(rp.StudyError, match="would take"):
        decode(blob.read_bytes())


def test_json_of_a_hundred_levels_is_read():
    assert parse(deep(100)) is not None
    with pytest.raises(ValueError, match="nested"):
        parse(deep(102))


def test_a_configuration_that_is_too_deep_or_not_whole_is_refused():
    losses = {"error": np.zeros((1, 100), dtype=bool), "cost": np.zeros(1)}
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    endless: list[object] = []
    endless.append(endless)
    for value in (json.loads(deep(200)), endless, "half \ud800", {"\udc00": 1}):
        with pytest.raises(rp.LossError, match="cannot be kept"):
            rp.select_from_losses(
                problem, validation=losses, calibration=losses, configs=[{"x": value}]
            )
