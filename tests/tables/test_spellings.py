"""One thing under two spellings, and two things under spellings that look alike."""

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.errors import LossError, TableError
from riskpilot.selection import ledger_beside
from riskpilot.tables import Wanted, column_names, read_label_file, read_losses, read_pair

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], minimize="cost")
COLUMNS: dict[str, Any] = {"config": "config", "example": "example"}


def rows(names: tuple[str, ...] = ("a", "b"), example: str = "e", n: int = 120) -> str:
    """A query for 0/1 losses of configurations with these names; ``example``: how ids are made."""
    listed = ", ".join(f"({i}, '{name}')" for i, name in enumerate(names))
    return (
        f"SELECT name AS config, if(e % 2 = 0, 'validation', 'calibration') AS split, "
        f"{example} AS example, (hash(e, i) % 10 = 0)::TINYINT AS error, 1.0 + i AS cost "
        f"FROM range({n}) examples(e), (VALUES {listed}) configs(i, name) ORDER BY i, e"
    )


def write(path: Path, query: str) -> Path:
    kind = path.suffix.strip(".l")
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT {kind})")
    return path


# --- ids and configurations ----------------------------------------------------------------------


def test_an_id_is_the_same_whether_a_column_holds_whole_numbers_or_floats(tmp_path: Path) -> None:
    found = []
    for kind in ("INTEGER", "DOUBLE"):
        path = write(tmp_path / f"{kind}.parquet", rows(example=f"e::{kind}"))
        found.append(read_losses(path, example="example"))
    one, other = found
    assert one.validation_ids is not None
    assert other.validation_ids is not None
    assert one.validation_ids.tolist() == other.validation_ids.tolist()
    np.testing.assert_array_equal(one.validation["error"], other.validation["error"])


# A table writes 7 as 7.0 as soon as its column has an empty cell: if these were two examples, one
# could be in both splits, and a certificate would speak of what the choice was made by.
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("second", ["printf('%d.0', e)", "e::DOUBLE"])
def test_an_example_that_another_row_writes_as_a_float_is_not_in_both_splits(
    tmp_path: Path, ending: str, files: int, second: str
) -> None:
    parts = []
    for split, example in (("validation", "e"), ("calibration", second)):
        parted = "if(e % 2 = 0, 'validation', 'calibration')"
        query = rows(example=f"({example})::VARCHAR").replace(parted, f"'{split}'")
        parts.append(f"({query})")
    queries = [" UNION ALL ".join(parts)] if files == 1 else parts
    for i, query in enumerate(queries):
        write(tmp_path / f"part_{i}.{ending}", query)
    with pytest.raises(rp.LeakageError, match="but 120 ids occur in both"):
        rp.select_from_frame(PROBLEM, tmp_path / f"part_*.{ending}", **COLUMNS, ledger=None)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_configurations_meet_by_their_examples_and_two_rows_of_one_are_refused(
    tmp_path: Path, ending: str
) -> None:
    mixed = "if(i = 0, e::VARCHAR, printf('%d.0', e))"
    path = write(tmp_path / f"mixed.{ending}", rows(example=mixed))
    found = read_losses(path, example="example")
    assert found.validation_ids is not None
    assert found.validation_ids.tolist() == [str(e) for e in range(0, 120, 2)]
    halved = "if(e % 4 < 2, (e % 2 + e // 4 * 2)::VARCHAR, printf('%d.0', e % 2 + e // 4 * 2))"
    path = write(tmp_path / f"twice.{ending}", rows(example=halved))
    with pytest.raises(TableError, match="has two for example '0'"):
        read_losses(path, example="example")


@pytest.mark.parametrize("other", [np.arange(9.0), [f"{i}.0" for i in range(9)]])
def test_ids_of_whole_numbers_are_one_in_every_spelling(other: Any) -> None:
    losses = {"error": np.zeros((1, 9))}
    given = {"validation": {**losses, "cost": [1.0]}, "calibration": {"error": np.ones((1, 9))}}
    for own in (range(9), [str(i) for i in range(9)]):
        with pytest.raises(rp.LeakageError, match="but 9 ids occur in both"):
            rp.select_from_losses(PROBLEM, **given, validation_ids=own, calibration_ids=other)
    with pytest.raises(LossError, match="'7' occurs 2 times"):
        rp.select_from_losses(PROBLEM, **given, validation_ids=[*"12345678", "7.0"])


def test_two_runs_are_joined_by_ids_that_one_of_them_writes_as_floats(tmp_path: Path) -> None:
    query = "SELECT e AS example, e % 2 AS error FROM range(5) examples(e)"
    new = write(tmp_path / "new.parquet", query)
    reference = write(tmp_path / "old.csv", query.replace("e AS", "printf('%d.0', e) AS"))
    one, other = read_pair(new, reference, ["error"])
    assert other is not None
    assert one.ids == other.ids == ("0", "1", "2", "3", "4")


def test_trials_of_labels_may_be_written_as_floats(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("trial,example,error\n3.0,7.0,1\n4.0,7.0,0\n3.0,8.0,0\n4.0,8.0,0\n")
    wanted = Wanted(losses=("error",))
    labels = read_label_file(
        str(path), [3, 4], wanted, n_trials=5, trial="trial", example="example"
    )
    assert labels.examples == ("7", "8")
    assert labels.losses["error"].tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("column", ["config", "version"])
def test_a_version_with_a_zero_at_its_end_stays_as_it_is_written(
    tmp_path: Path, ending: str, column: str
) -> None:
    query = rows(("1.10", "1.1", "1.9")).replace("AS config", f"AS {column}")
    path = write(tmp_path / f"t.{ending}", query)
    table = read_losses(path, config=column, example="example")
    assert [config[column] for config in table.configs] == ["1.1", "1.10", "1.9"]
    numbers = write(tmp_path / f"n.{ending}", rows(("1.0", "0.25", "2")))
    assert [config["config"] for config in read_losses(numbers).configs] == [0.25, 1.0, 2]


def test_an_empty_list_of_ids_is_refused_in_words() -> None:
    with pytest.raises(LossError, match=r"validation_ids holds one id for each example.*\[\]"):
        rp.select_from_losses(
            PROBLEM,
            validation={"error": np.zeros((1, 5)), "cost": [1.0]},
            calibration={"error": np.zeros((1, 5))},
            validation_ids=[],
        )


# --- files ---------------------------------------------------------------------------------------


def test_a_file_has_one_ledger_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("t.csv"), rows())
    Path("links").mkdir()
    os.symlink(tmp_path / "t.csv", "links/other.csv")
    spellings = ["t.csv", "./t.csv", str(tmp_path / "t.csv"), "links/../t.csv", "links/other.csv"]
    for number, spelling in enumerate([*spellings, "t.cs?", "?.csv"], 1):
        problem = rp.Problem([rp.Risk("error", 0.3 + number / 100)], minimize="cost")
        selection = rp.select_from_frame(problem, spelling, **COLUMNS)
        assert selection.certificate.use["number"] == number, spelling
    assert sorted(path.name for path in tmp_path.rglob("*.ledger.json")) == ["t.csv.ledger.json"]
    assert ledger_beside("nothing/?.csv") == Path("nothing/_.csv.ledger.json")


def test_the_command_takes_a_glob_with_a_question_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("t.csv"), rows())
    for _ in range(2):  # the second time there is a ledger, too
        result = CliRunner().invoke(app, ["select", "t*", "-r", "error<=0.3", "--minimize", "cost"])
        assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["select", "t.cs?", "-r", "error<=0.3", "--minimize", "cost"])
    assert result.exit_code == 0, result.output


def test_a_glob_of_files_of_two_kinds_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", rows())
    write(tmp_path / "t.parquet", rows())
    with pytest.raises(TableError, match=r"\.csv, \.parquet, \.json or \.jsonl file"):
        rp.select_from_frame(PROBLEM, tmp_path / "t.*", **COLUMNS)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_many_small_files_are_one_table_and_take_little_memory(tmp_path: Path, ending: str) -> None:
    for number in range(40):  # DuckDB would hold 32 MiB of each file to see which columns it has
        write(tmp_path / f"{number:02}.{ending}", rows((f"model {number}",), n=40))
    table = read_losses(tmp_path / f"*.{ending}")
    assert len(table.configs) == 40
    assert table.validation["error"].shape == (40, 20)


def test_names_of_columns_that_differ_in_capital_letters_alone_are_refused(tmp_path: Path) -> None:
    query = rows().replace("AS error", "AS error, 0 AS other")
    path = write(tmp_path / "t.csv", query)
    path.write_text(path.read_text().replace("other", "Error"))
    with pytest.raises(TableError, match=r"two columns 'error' and 'Error'\. Give every column"):
        rp.select_from_frame(PROBLEM, path, **COLUMNS)
    relation = duckdb.sql(query.replace("other", '"Error"'))
    with pytest.raises(TableError, match="two columns 'error' and 'Error'"):
        rp.select_from_frame(PROBLEM, relation, **COLUMNS)


@pytest.mark.parametrize("table", [b"t.csv", bytearray(b"t.csv"), memoryview(b"t"), [], {}, None])
def test_what_is_no_table_ends_in_an_error_of_our_own(table: object) -> None:
    with pytest.raises(TableError, match="A table is a pandas, Polars or Arrow table"):
        rp.select_from_frame(PROBLEM, table, **COLUMNS)


def test_a_file_without_ids_that_grew_is_another_question_to_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    uses = []
    for n in (120, 120, 160):
        write(path, rows(n=n).replace("e AS example, ", ""))
        selection = rp.select_from_frame(PROBLEM, path, config="config", example=None)
        uses.append((selection.certificate.use["number"], selection.certificate.n_calibration))
    assert uses == [(1, 60), (1, 60), (2, 80)]


# --- losses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["100::TINYINT", "0.5::DOUBLE", "0.5::FLOAT", "-1::TINYINT"])
def test_a_loss_that_is_not_zero_or_one_is_never_taken_for_one(tmp_path: Path, value: str) -> None:
    kind = value.split("::")[1]
    odd = f"if(e = 4 AND i = 1, {value}, (hash(e, i) % 10 = 0)::{kind})"
    path = write(tmp_path / "t.parquet", rows().replace("(hash(e, i) % 10 = 0)::TINYINT", odd))
    error = read_losses(path).validation["error"]
    assert error.shape == (2, 60)
    assert error[1, 2] == float(value.split("::")[0])


# --- names of files and columns ------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("name", ["a[1]", "a?", "a*"])
def test_a_file_whose_name_looks_like_a_glob_is_read_itself(
    tmp_path: Path, name: str, ending: str
) -> None:
    write(tmp_path / f"a1.{ending}", rows(("other",)))
    path = write(tmp_path / f"mine.{ending}", rows(("mine",))).rename(tmp_path / f"{name}.{ending}")
    assert read_losses(path).configs == ({"config": "mine"},)
    assert len(read_losses(tmp_path / f"a*.{ending}").configs or ()) == (1 if name == "a*" else 2)
    rp.select_from_frame(PROBLEM, path, **COLUMNS)
    assert [file.name for file in tmp_path.glob("*.ledger.json")] == [f"{path.name}.ledger.json"]


def test_the_address_of_a_local_file_is_its_path(tmp_path: Path) -> None:
    path = write(tmp_path / "my losses.csv", rows())
    addresses = [f"file://{tmp_path}/my%20losses.csv", f"file://localhost{tmp_path}/my*.csv", path]
    uses = []
    for number, address in enumerate(addresses):
        problem = rp.Problem([rp.Risk("error", 0.3 + number / 100)], minimize="cost")
        selection = rp.select_from_frame(problem, address, **COLUMNS)
        uses.append(selection.certificate.use["number"])
    assert uses == [1, 2, 3]
    options = ["-r", "error<=0.3", "--minimize", "cost", "--json"]
    result = CliRunner().invoke(app, ["select", addresses[0], *options])  # type: ignore[list-item]
    assert json.loads(result.stdout)["certificate"]["use"]["number"] == 1
    assert len(read_losses(addresses[0]).configs or ()) == 2


def test_a_copy_and_a_hard_link_have_ledgers_of_their_own_and_may_share_one(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", rows())
    link, shared = tmp_path / "link.csv", tmp_path / "shared.ledger.json"
    os.link(path, link)
    beside, together = [], []
    for number, table in enumerate((path, link)):
        problem = rp.Problem([rp.Risk("error", 0.3 + number / 100)], minimize="cost")
        for found, more in ((beside, {}), (together, {"ledger": shared})):
            selection = rp.select_from_frame(problem, table, **COLUMNS, **more)  # type: ignore[arg-type]
            found.append(selection.certificate.use["number"])
    assert (beside, together) == ([1, 1], [1, 2])


def test_a_split_that_was_drawn_is_not_drawn_again_from_other_examples(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, rows(n=120))
    share: dict[str, Any] = {**COLUMNS, "split": 0.5}
    first = rp.select_from_frame(PROBLEM, path, **share)
    again = rp.select_from_frame(PROBLEM, path, **share)
    assert again.certificate.digest == first.certificate.digest
    for n in (160, 100):
        write(path, rows(n=n))
        with pytest.raises(TableError, match=r"stays in the split that it was drawn for.*seed="):
            rp.select_from_frame(PROBLEM, path, **share)
    anew = rp.select_from_frame(PROBLEM, path, **share, seed=3)
    assert anew.certificate.use["number"] == 2
    write(path, rows(n=160))
    with pytest.raises(TableError, match="stays in the split"):
        rp.select_from_frame(PROBLEM, path, **share, seed=3)


def test_columns_of_frames_and_parquet_that_differ_in_capital_letters_are_refused(
    tmp_path: Path,
) -> None:
    columns = {"config": ["a"], "example": [1], "error": [0], "Error": [1], "error_2": [1]}
    table = pa.table(columns)
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    for given in (table, pd.DataFrame(columns), pl.DataFrame(columns), path):
        with pytest.raises(TableError, match=r"two columns 'error' and 'Error'\. Give every"):
            rp.select_from_frame(PROBLEM, given, **COLUMNS)
    del columns["Error"]
    pq.write_table(pa.table(columns), path)
    assert column_names(path) == list(columns)
