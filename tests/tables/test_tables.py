"""Tables of losses on disk: what is written comes back, and what cannot be read says why."""

import csv
import io
import json
import pickle
import random
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskpilot as rp
from riskpilot.common import without_password
from riskpilot.errors import LeakageError, StudyError, TableError
from riskpilot.study.as_tables import (
    export_losses,
    hide_password,
    is_storage,
    open_study,
    study_losses,
)
from riskpilot.study.questions.question_ledger import trials_of
from riskpilot.tables import LossTable, read_losses, save_losses

CONFIGS = [{"size": 1}, {"size": 2}, {"size": 10}]


def long_rows(with_ids: bool = True) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for split, count in (("validation", 12), ("calibration", 15)):
        for config in CONFIGS:
            for i in range(count):
                row: dict[str, object] = {"split": split, "config": json.dumps(config)}
                if with_ids:
                    row["example"] = f"{split[0]}{i}"
                row["error"] = int(rng.random() < 0.3)
                row["cost"] = float(config["size"]) if split == "validation" else None
                rows.append(row)
    return rows


def write_csv(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path: Path, rows: list[dict[str, object]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


WRITERS = {"csv": write_csv, "parquet": write_parquet}


@pytest.fixture(params=list(WRITERS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    def write(rows: list[dict[str, object]], name: str = "losses") -> Path:
        return WRITERS[request.param](tmp_path / f"{name}.{request.param}", rows)

    return write


def test_npz_comes_back_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    validation = {"error": rng.random((3, 8)) < 0.5, "cost": np.arange(3.0)}
    calibration = {"error": rng.random((3, 9)) < 0.5}
    path = save_losses(
        tmp_path / "losses.npz", validation=validation, calibration=calibration, configs=CONFIGS
    )
    table = read_losses(path)
    assert table.configs == tuple(CONFIGS)
    assert table.validation.keys() == validation.keys()
    np.testing.assert_array_equal(table.validation["error"], validation["error"])
    np.testing.assert_array_equal(table.calibration["error"], calibration["error"])


def test_long_tables_become_one_row_per_configuration(written: Callable[..., Path]) -> None:
    rows = long_rows()
    table = read_losses(written(rows))
    assert table.configs == tuple(CONFIGS)
    assert table.validation["error"].shape == (3, 12)
    assert table.calibration["error"].shape == (3, 15)
    expected = [row["error"] for row in rows if row["split"] == "calibration"]
    # Ids sort as text here: c0, c1, c10, c11, ...
    order = sorted(range(15), key=lambda i: f"c{i}")
    np.testing.assert_array_equal(
        table.calibration["error"], np.reshape(expected, (3, 15))[:, order]
    )


def test_the_order_of_rows_changes_nothing_where_examples_have_ids(
    written: Callable[..., Path],
) -> None:
    rows = long_rows()
    first = read_losses(written(rows))
    random.Random(0).shuffle(rows)
    second = read_losses(written(rows, "shuffled"))
    assert first.configs == second.configs
    for split in ("validation", "calibration"):
        one, other = getattr(first, split), getattr(second, split)
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_without_ids_examples_keep_the_order_of_the_file(written: Callable[..., Path]) -> None:
    rows = long_rows(with_ids=False)
    table = read_losses(written(rows))
    expected = [row["error"] for row in rows if row["split"] == "validation"]
    np.testing.assert_array_equal(table.validation["error"], np.reshape(expected, (3, 12)))
    assert table.validation_ids is None


def test_a_column_that_is_empty_on_a_split_is_not_there(written: Callable[..., Path]) -> None:
    table = read_losses(written(long_rows()))
    assert set(table.validation) == {"error", "cost"}
    assert set(table.calibration) == {"error"}


def test_an_empty_loss_is_nan(written: Callable[..., Path]) -> None:
    rows = long_rows(with_ids=False)
    rows[1]["error"] = None
    table = read_losses(written(rows))
    assert np.isnan(table.validation["error"][0, 1])
    assert np.isnan(table.validation["error"]).sum() == 1


def test_csv_and_parquet_and_npz_give_one_certificate(tmp_path: Path) -> None:
    problem = rp.Problem([rp.Risk("error", 0.8)], "cost")
    rows = long_rows()
    digests = set()
    tables = [write(tmp_path / f"a.{name}", rows) for name, write in WRITERS.items()]
    first = read_losses(tables[0])
    tables.append(
        save_losses(
            tmp_path / "a.npz",
            validation=first.validation,
            calibration=first.calibration,
            configs=first.configs,
        )
    )
    for path in tables:
        table = read_losses(path).only(["error"], "cost")
        selection = rp.select_from_losses(
            problem,
            validation=table.validation,
            calibration=table.calibration,
            configs=table.configs,
        )
        digests.add((selection.certificate.plan_digest, selection.certificate.calibration_digest))
    assert len(digests) == 1


def test_names_beside_losses_are_read_as_they_are_written(written: Callable[..., Path]) -> None:
    names = [
        "1",
        "01",
        "1.0",
        "true",
        " a",
        "a",
        str(2**53),
        str(2**53 + 1),
        "NA",
        "é",
        "x | y",
        "-",
    ]
    rows = [row for i, row in enumerate(long_rows(with_ids=False)) if i < 36 or (i - 36) % 15 < 12]
    rows = [row | {"who": names[i % 12]} for i, row in enumerate(rows)]  # 12 of each split
    table = read_losses(written(rows), ["who"])
    assert table.validation["who"].tolist() == names
    assert table.calibration["who"].tolist() == names


def test_names_that_differ_between_configurations_are_refused(written: Callable[..., Path]) -> None:
    rows = [row | {"who": str(i % 5)} for i, row in enumerate(long_rows(with_ids=False))]
    with pytest.raises(TableError, match="'who' must be the same for every configuration"):
        read_losses(written(rows), ["who"])


def test_names_that_are_missing_for_some_are_refused(written: Callable[..., Path]) -> None:
    rows = [row | {"who": "a"} for row in long_rows(with_ids=False)]
    for row in rows[::12]:
        row["who"] = None
    with pytest.raises(TableError, match=r"missing|same for every"):
        read_losses(written(rows), ["who"])


def test_names_that_a_split_lacks_are_not_there(written: Callable[..., Path]) -> None:
    rows = [
        row | {"who": "a" if row["split"] == "validation" else None}
        for row in long_rows(with_ids=False)
    ]
    table = read_losses(written(rows), ["who"])
    assert "who" in table.validation
    assert "who" not in table.calibration


def test_ids_are_told_apart_as_they_are_written(written: Callable[..., Path]) -> None:
    ids = {"validation": ["1", "01", "1.5", " 1"], "calibration": [str(2**53), str(2**53 + 1)]}
    rows: list[dict[str, object]] = [
        {"split": split, "config": config, "example": example, "error": i % 2, "cost": 1.0}
        for split, examples in ids.items()
        for config in ("a", "b")
        for i, example in enumerate(examples)
    ]
    table = read_losses(written(rows))
    assert table.validation_ids is not None
    assert sorted(table.validation_ids.tolist()) == sorted(ids["validation"])
    random.Random(0).shuffle(rows)
    again = read_losses(written(rows, "shuffled"))
    np.testing.assert_array_equal(table.validation["error"], again.validation["error"])


def test_words_for_booleans_and_for_nothing_are_read(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text(
        "split,config,error\nvalidation,a,True\nvalidation,a,\ncalibration,a,FALSE\n"
        "calibration,a,NA\n"
    )
    table = read_losses(path)
    np.testing.assert_array_equal(table.validation["error"], [[1.0, np.nan]])
    np.testing.assert_array_equal(table.calibration["error"], [[0.0, np.nan]])
    assert table.configs == ({"config": "a"},)


def test_a_hundred_thousand_rows_are_read_in_three_seconds(tmp_path: Path) -> None:
    n_configs, n_examples = 10, 5_000  # of each split
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("split,config,example,error,cost\n")
        for split in ("validation", "calibration"):
            for config in range(n_configs):
                label = json.dumps({"size": config, "kind": "tree"}).replace('"', '""')
                file.writelines(
                    f'{split},"{label}",{split[0]}{i},{i % 2},{config}.5\n'
                    for i in range(n_examples)
                )
    start = time.process_time()
    table = read_losses(path)
    assert table.calibration["error"].shape == (n_configs, n_examples)
    assert time.process_time() - start < 3.0


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


LOSSES = np.zeros((2, 3))
HEAD = "split,config,error\n"
GOOD = HEAD + "validation,a,0\ncalibration,a,0\n"
TRICKS = npz(**{"validation.error": LOSSES, "calibration.error": np.array([{}], dtype=object)})
WHOLE = npz(**{"validation.error": np.random.rand(50, 50), "calibration.error": LOSSES})  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("losses.txt", "x", "is a .csv, .parquet, .json or .jsonl file"),
        ("losses", "x", "is a .csv, .parquet, .json or .jsonl file"),
        ("losses.pkl", pickle.dumps({}), "is a .csv, .parquet, .json or .jsonl file"),
        ("absent.csv", None, "There is no file"),
        ("absent.npz", None, "There is no file"),
        ("objects.npz", TRICKS, "Python objects"),
        ("pickle.npz", pickle.dumps([1, 2]), "no complete .npz"),
        ("text.npz", b"hello", "no complete .npz"),
        ("empty.npz", b"", "no complete .npz"),
        ("cut.npz", WHOLE[:200], "no complete .npz"),
        ("cut.npz", WHOLE[:-30], "no complete .npz"),
        ("names.npz", npz(error=LOSSES), "named by split and quantity"),
        ("half.npz", npz(**{"validation.error": LOSSES}), "no calibration losses"),
        ("other.npz", npz(**{"test.error": LOSSES}), "named by split and quantity"),
        ("empty.csv", "", "'split' is missing"),
        ("head.csv", HEAD, "no rows"),
        ("semicolons.csv", "split;config;error\nvalidation;a;0\n", "'split' is missing"),
        ("columns.csv", "config,error\na,0\n", "'split' is missing"),
        ("columns.csv", "split,error\nvalidation,0\n", "'config' is missing"),
        ("nothing.csv", "split,config\nvalidation,a\n", "no column of losses"),
        ("twice.csv", "split,config,error,error\nvalidation,a,0,0\n", "two columns"),
        ("train.csv", GOOD + "train,a,0\n", "'train'"),
        ("one.csv", HEAD + "validation,a,0\n", "no calibration rows"),
        ("config.csv", GOOD + "validation,,0\n", "column config is empty"),
        ("word.csv", GOOD + "validation,a,zero\n", "line 4 has 'zero'"),
        (
            "twins.csv",
            HEAD + "validation,0.5,0\nvalidation,5e-1,1\ncalibration,0.5,0\n",
            "'0.5' and '5e-1' mean the same",
        ),
        (
            "spaces.csv",
            HEAD + "validation,a,0\nvalidation,a ,0\ncalibration,a,0\n",
            "the same number of",
        ),
        (
            "groups.csv",
            "split,config,error,g\nvalidation,a,0,x\nvalidation,b,0,y\ncalibration,a,0,x\n"
            "calibration,b,0,x\n",
            "losses of 'g' must be numbers",
        ),
        ("ragged.csv", GOOD + "validation,b,0\nvalidation,b,1\n", "the same number of"),
        ("absent.csv", GOOD + "validation,b,0\n", "the same number of"),
        ("short.csv", GOOD + "validation,a\n", "every row needs 3 fields"),
        ("all-short.csv", HEAD + "validation,a\n", "every row needs 3 fields"),
        ("latin.csv", "split,config,error\nvalidation,\xe9,0\n".encode("latin-1"), "UTF-8"),
        (
            "same-id.csv",
            "split,config,example,error\nvalidation,a,1,0\ncalibration,a,1,0\n",
            "must not share examples",
        ),
        (
            "two.csv",
            "split,config,example,error\nvalidation,a,1,0\nvalidation,a,1,0\ncalibration,a,2,0\n",
            "two for example '1'",
        ),
        (
            "differ.csv",
            "split,config,example,error\nvalidation,a,1,0\nvalidation,b,2,0\n"
            "calibration,a,3,0\ncalibration,b,3,0\n",
            "the same validation examples",
        ),
        (
            "gap.csv",
            "split,config,example,error\nvalidation,a,,0\ncalibration,a,2,0\n",
            "no example id",
        ),
        ("text.parquet", b"hello", "no complete Parquet"),
        ("empty.parquet", b"", "no complete Parquet"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: str | bytes | None, says: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises((TableError, LeakageError)) as caught:
        read_losses(path)
    message = str(caught.value)
    assert says in message
    assert message.count(". ") >= 1, "a message has a way out"


def test_a_bare_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "losses.npz"
    with path.open("wb") as file:
        np.save(file, LOSSES)
    with pytest.raises(TableError, match="one bare array"):
        read_losses(path)


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "losses.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("validation.error", "not an array")
    with pytest.raises(TableError, match="no array"):
        read_losses(path)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("error", ["a", "b"], "must be numbers or booleans"),
        ("config", [{"a": 1}, {"a": 1}], "must hold text or numbers"),
    ],
)
def test_parquet_columns_of_another_type_are_refused(
    tmp_path: Path, column: str, values: list[object], says: str
) -> None:
    columns = {"split": ["validation", "calibration"], "config": ["a", "a"], "error": [0.0, 1.0]}
    path = tmp_path / "losses.parquet"
    pq.write_table(pa.table({**columns, column: values}), path)
    with pytest.raises(TableError, match=says):
        read_losses(path)


def test_a_stored_dictionary_may_name_configurations_that_no_row_has(tmp_path: Path) -> None:
    codes = pa.array([0, 0], type=pa.int32())
    columns = {
        "split": ["validation", "calibration"],
        "config": pa.DictionaryArray.from_arrays(codes, pa.array(["a", "unused"])),
        "error": [True, False],
    }
    path = tmp_path / "losses.parquet"
    pq.write_table(pa.table(columns), path)
    assert read_losses(path).configs == ({"config": "a"},)


def test_parquet_is_read_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "losses.parquet", long_rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read_losses(path).configs == tuple(CONFIGS)


def test_losses_are_written_as_npz_without_objects(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"Call it 'losses\.npz'"):
        save_losses(tmp_path / "losses.csv", validation={}, calibration={})
    for nothing in ("", ".", "/"):
        with pytest.raises(rp.TableError, match=r"Call it 'losses\.npz'"):
            save_losses(nothing, validation={}, calibration={})
    with pytest.raises(TableError, match="Python objects"):
        save_losses(
            tmp_path / "losses.npz",
            validation={"error": np.array([None])},
            calibration={},
        )


def test_a_quantity_that_the_table_lacks_is_named() -> None:
    table = read_losses_of_two()
    with pytest.raises(TableError, match="no validation losses of 'time'; it has cost, error"):
        table.only(["error"], "time")
    with pytest.raises(TableError, match="no calibration losses of 'cost'"):
        table.only(["cost"], "error")


def read_losses_of_two() -> LossTable:
    return LossTable({"error": LOSSES, "cost": LOSSES[:, 0]}, {"error": LOSSES})


def make_study(storage: str | None, trials: int = 6, name: str = "s") -> optuna.Study:
    problem = rp.Problem([rp.Risk("error", 0.5)], "cost")
    study = rp.create_study(problem, storage=storage, seed=0, study_name=name)
    rng = np.random.default_rng(1)

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        x = trial.suggest_float("x", 0, 1)
        losses = [{"error": rng.random(n) < x, "cost": rng.random(n) + 1 - x} for n in (60, 80)]
        return rp.Evaluation(*losses)

    study.optimize(rp.objective(study, evaluate), n_trials=trials)
    return study


def test_a_certificate_of_a_study_can_be_verified_from_its_exported_losses(tmp_path: Path) -> None:
    study = make_study(None)
    with pytest.raises(StudyError, match="sealed"):
        export_losses(study, tmp_path / "losses.npz")
    certificate = rp.select(study).certificate
    table = read_losses(export_losses(study, tmp_path / "losses.npz"))
    result = rp.verify(certificate, validation=table.validation, calibration=table.calibration)
    assert result.ok, str(result)
    assert table.configs == tuple(trial.params for trial in study.trials)


def test_a_study_that_went_on_still_verifies_its_certificate(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'study.db'}"
    study = make_study(address)
    certificate = rp.select(study).certificate
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)
    for place in (address, str(tmp_path / "study.db")):
        opened = open_study(place)
        table = study_losses(opened, trials_of(rp.ledger(opened)[0]))
        assert rp.verify(certificate, validation=table.validation, calibration=table.calibration).ok


def test_a_storage_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'study.db'}"
    make_study(address, 1, "one")
    make_study(address, 1, "two")
    with pytest.raises(StudyError, match="it holds 'one', 'two'"):
        open_study(address)
    with pytest.raises(StudyError, match="the study 'three'"):
        open_study(address, "three")
    with pytest.raises(StudyError, match="does not exist"):
        open_study(f"sqlite:///{tmp_path / 'absent.db'}")
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cret@localhost:1/db",
        "mysql://ann:s3cret@h/x",
        "foo://ann:s3cret@h/x",
        "postgresql://ann:s3cret@[::1/db",
        "postgresql://ann:s3@s3cret@h/x",
        "postgresql://ann@h/x?password=s3cret",
    ],
)
def test_passwords_are_never_shown(address: str) -> None:
    assert is_storage(address)
    assert "s3cret" not in hide_password(address)
    assert "s3cret" not in without_password(f"cannot connect to {address}", address)
    with pytest.raises(StudyError) as caught:
        open_study(address)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__
