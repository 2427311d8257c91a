"""What every artifact store must do for losses, run on each of them."""

import io
import itertools

import numpy as np
import optuna
import pytest
from optuna.artifacts import FileSystemArtifactStore

import riskpilot as rp
from riskpilot.study.kept.loss_bytes import decode, encode
from riskpilot.study.kept.loss_store import FolderStore, MemoryArtifactStore
from riskpilot.study.kept.records import Record, record_of
from riskpilot.study.kept.trial_losses import joined, read_calibration, read_validation

PROBLEM = rp.Problem(
    [rp.Risk("error", 0.3), rp.Risk("miss", 0.3, conditional=True), rp.Risk("gap", 0.5, low=-1)],
    "cost",
)


STORES = {
    "memory": lambda folder: MemoryArtifactStore(),
    "folder": lambda folder: FolderStore(folder / "losses"),
    "optuna": FileSystemArtifactStore,
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return STORES[request.param](tmp_path)


KINDS = {
    "booleans": lambda rng, m: rng.random(m) < 0.1,
    "integers": lambda rng, m: rng.integers(0, 2, m),
    "bytes": lambda rng, m: rng.integers(0, 2, m).astype(np.uint8),
    "floats": lambda rng, m: rng.random(m),
    "single precision": lambda rng, m: rng.random(m).astype(np.float32),
    "half precision": lambda rng, m: (rng.random(m) < 0.1).astype(np.float16),
}


def record(store, validation, calibration):
    study = rp.create_study(PROBLEM, artifact_store=store, seed=0)
    objective = rp.objective(study, lambda trial: rp.Evaluation(validation, calibration))
    study.optimize(objective, n_trials=1)
    return study, study.trials[0]


def evaluation(rng, kind, m):
    miss = rng.random(m)
    miss[rng.random(m) < 0.5] = np.nan
    return {
        "error": KINDS[kind](rng, m),
        "miss": miss,
        "gap": rng.choice([-1.0, 0.0, 1.0], m),
        "cost": rng.random(m),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 7, 8, 9, 1000])
def test_losses_come_back_as_they_went_in(store, kind, m):
    rng = np.random.default_rng(m)
    validation, calibration = evaluation(rng, kind, m + 1), evaluation(rng, kind, m)
    study, trial = record(store, validation, calibration)
    for read, given in ((read_validation, validation), (read_calibration, calibration)):
        table = read(study, PROBLEM, trial)
        assert table.keys() == given.keys()
        for name, values in given.items():
            np.testing.assert_array_equal(table[name][0], values)


RANGES = {"unit": (0.0, 1.0), "odd ends": (-0.1, 0.3), "tiny": (0.1, 0.1 + 1e-7), "wide": (0, 1e39)}


@pytest.mark.parametrize("ends", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("conditional", [False, True])
def test_stored_losses_are_the_given_ones(ends, conditional):
    low, high = ends
    rng = np.random.default_rng(0)
    values = np.clip(low + (high - low) * rng.random((1, 3000)), low, high)
    values[0, ::10], values[0, 1::10] = low, high
    if conditional:
        values[0, 2::10] = np.nan
    found = decode(encode({"loss": values}, {"loss": ends}))["loss"]
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("ends", [(0.0, 0.3), (-0.1, 0.7)])
def test_losses_of_less_precision_come_back_at_the_ends_or_as_they_were(dtype, ends):
    rng = np.random.default_rng(0)
    at_ends = rng.choice(ends, (1, 300))
    blob = encode({"loss": at_ends.astype(dtype)}, {"loss": ends})
    np.testing.assert_array_equal(decode(blob)["loss"], at_ends)  # the ends themselves
    graded = (0.25 * rng.random((1, 300))).astype(dtype)
    found = decode(encode({"loss": graded}, {"loss": ends}))["loss"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, graded)


def test_losses_whose_range_their_type_cannot_show_stay_as_they_are():
    values = np.array([[0.1, 0.1]], np.float32)
    found = decode(encode({"loss": values}, {"loss": (0.1, 0.1 + 1e-9)}))["loss"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values)


def test_names_of_groups_come_back():
    table = {"groups": np.array([["1", "01", "a | b", "é"]])}
    np.testing.assert_array_equal(decode(encode(table))["groups"], table["groups"])


def written(head, **arrays):
    buffer = io.BytesIO()
    np.savez(buffer, head=np.array(head), **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("blob", "says"),
    [
        (written('{"version": 2, "columns": []}'), "format 2"),
        (written('{"version": 99, "columns": []}'), "format 99"),
        (written('{"columns": []}'), "format None"),
        (written("[]"), "cannot be read"),
        (written("{oh"), "cannot be read"),
        (written('{"version": 3}'), "cannot be read"),
        (written('{"version": 3, "columns": [{"name": "x", "kind": "as is"}]}'), "cannot be read"),
        (b"", "cannot be read"),
        (b"PK\x03\x04", "cannot be read"),
        (b"words", "cannot be read"),
    ],
)
def test_losses_in_another_form_are_refused_in_one_sentence(blob, says):
    with pytest.raises(rp.StudyError, match=says):
        decode(blob)


def test_a_record_in_another_form_is_refused_in_one_sentence():
    _, trial = record(
        MemoryArtifactStore(), evaluation(np.random.default_rng(0), "floats", 9), None
    )
    data = record_of(trial).to_json()
    assert Record.from_json(data) == record_of(trial)
    for changed, says in (
        ({**data, "version": 1}, "format 1"),
        ({name: value for name, value in data.items() if name != "version"}, "format None"),
        ([], "format None"),
        ({**data, "more": 1}, "must be whole"),
        ({name: value for name, value in data.items() if name != "risks"}, "must be whole"),
        ({**data, "risks": {"error": {}}}, "must be whole"),
        ({**data, "risks": []}, "must be whole"),
    ):
        with pytest.raises(rp.StudyError, match=says):
            Record.from_json(changed)


@pytest.mark.parametrize("ends", RANGES.values(), ids=RANGES)
def test_losses_at_the_ends_of_their_range_come_back_exactly_in_bits(ends):
    rng = np.random.default_rng(1)
    values = rng.choice(ends, (1, 80_000))
    blob = encode({"loss": values}, {"loss": ends})
    assert len(blob) < 12_000
    np.testing.assert_array_equal(decode(blob)["loss"], values)
    values[0, ::2] = np.nan
    blob = encode({"loss": values}, {"loss": ends})
    assert len(blob) < 24_000
    np.testing.assert_array_equal(decode(blob)["loss"], values)


def test_a_free_objective_that_is_one_number_comes_back(store):
    rng = np.random.default_rng(0)
    validation = {**evaluation(rng, "floats", 5), "cost": -2.5}
    study, trial = record(store, validation, None)
    assert read_validation(study, PROBLEM, trial)["cost"].tolist() == [-2.5]
    assert record_of(trial).free == -2.5


def test_changed_losses_are_found(store):
    rng = np.random.default_rng(1)
    study, trial = record(store, evaluation(rng, "floats", 50), evaluation(rng, "floats", 50))
    entry = record_of(trial).artifacts["calibration"]
    with store.open_reader(entry["id"]) as reader:
        blob = bytearray(reader.read())
    blob[len(blob) // 2] ^= 1  # one bit
    store.remove(entry["id"])
    store.write(entry["id"], io.BytesIO(bytes(blob)))
    with pytest.raises(rp.StudyError, match="calibration losses were changed"):
        read_calibration(study, PROBLEM, trial)
    assert read_validation(study, PROBLEM, trial).keys() == {"error", "miss", "gap", "cost"}


def test_exchanged_losses_are_found(store):
    rng = np.random.default_rng(2)
    study, trial = record(store, evaluation(rng, "floats", 50), evaluation(rng, "floats", 50))
    ids = {split: entry["id"] for split, entry in record_of(trial).artifacts.items()}
    with store.open_reader(ids["validation"]) as reader:
        blob = reader.read()
    store.remove(ids["calibration"])
    store.write(ids["calibration"], io.BytesIO(blob))
    with pytest.raises(rp.StudyError, match="calibration losses were changed"):
        rp.select(study)


def test_missing_losses_are_named(store):
    rng = np.random.default_rng(3)
    study, trial = record(store, evaluation(rng, "floats", 50), evaluation(rng, "floats", 50))
    store.remove(record_of(trial).artifacts["calibration"]["id"])
    with pytest.raises(rp.StudyError, match="Trial 0: its calibration losses are not in"):
        rp.select(study)


def test_a_trial_without_calibration_losses_is_named(store):
    rng = np.random.default_rng(4)
    study, trial = record(store, evaluation(rng, "floats", 50), None)
    with pytest.raises(rp.StudyError, match="Trial 0 has no calibration losses"):
        read_calibration(study, PROBLEM, trial)


def test_a_store_that_loses_bytes_is_found_at_once(store):
    class Leaky:
        def open_reader(self, artifact_id):
            return store.open_reader(artifact_id)

        def write(self, artifact_id, content):
            store.write(artifact_id, io.BytesIO(content.read()[:-1]))

    rng = np.random.default_rng(5)
    with pytest.raises(rp.StudyError, match="did not give back"):
        record(Leaky(), evaluation(rng, "floats", 50), None)


def test_zero_one_losses_take_a_bit_each():
    rng = np.random.default_rng(6)
    table = {"error": rng.random((1, 80_000)) < 0.5}
    assert len(encode(table)) < 12_000
    np.testing.assert_array_equal(decode(encode(table))["error"], table["error"])


def test_no_pickle_is_read():
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        decode(buffer.getvalue())


def test_what_a_trial_carries_openly_tells_nothing_of_calibration_losses(store):
    rng = np.random.default_rng(7)
    validation = evaluation(rng, "booleans", 60)
    safe = {"error": np.zeros(60), "miss": np.zeros(60), "gap": -np.ones(60)}
    bad = {"error": np.ones(60), "miss": np.ones(60), "gap": np.ones(60)}
    open_parts = []
    for calibration in (safe, bad):
        _, trial = record(store, validation, calibration)
        data = record_of(trial).to_json()
        data.pop("artifacts")
        data.pop("digest")  # of all the rest
        open_parts.append((data, trial.values, trial.params))
    assert open_parts[0] == open_parts[1]
    assert isinstance(trial, optuna.trial.FrozenTrial)


@pytest.mark.parametrize(
    "kinds", list(itertools.permutations([np.float16, np.float32, np.float64]))
)
def test_rows_of_several_precisions_keep_what_lies_at_an_end_or_on_a_limit(kinds):
    values = np.array([0.1, 0.3, 0.7])
    risk = rp.Risk("x", 0.3, low=0.1, high=0.7, statistic=rp.Quantile())
    rows = [{"x": values[None].astype(kind)} for kind in kinds]
    found = joined(rp.Problem([risk], "cost"), iter(rows), 3)["x"]
    np.testing.assert_array_equal(found, np.tile(values, (3, 1)))
