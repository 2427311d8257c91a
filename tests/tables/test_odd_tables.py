"""Tables that a reader could take for others: types, folders and names that look like something."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskpilot as rp
from riskpilot.errors import LeakageError, TableError
from riskpilot.selection import from_frame

PROBLEM = rp.Problem([rp.Risk("error", 0.15)], minimize="cost")
COLUMNS: dict[str, Any] = {"config": ["model"], "example": "q"}
N = 400


def losses(model: Any, error: Any, cost: float = 1.0, ids: Any = None) -> pd.DataFrame:
    """The rows of one model, every other one for validation."""
    ids = np.arange(N) if ids is None else ids
    split = np.where(np.arange(N) % 2, "validation", "calibration")
    return pd.DataFrame({"model": model, "q": ids, "split": split, "error": error, "cost": cost})


SAFE = losses("safe", (np.arange(N) % 40 == 0).astype(int), cost=2.0)
BAD = losses("bad", 0.45)
EVERY = pd.concat([SAFE, BAD], ignore_index=True)


def select(table: Any, **more: Any) -> rp.Selection:
    return rp.select_from_frame(PROBLEM, table, **COLUMNS, ledger=None, **more)


def test_files_of_a_glob_have_one_type_that_suits_all(tmp_path: Path) -> None:
    SAFE.to_parquet(tmp_path / "1.parquet")
    BAD.to_parquet(tmp_path / "2.parquet")
    read, framed = select(str(tmp_path / "*.parquet")), select(EVERY)
    assert read.config == framed.config == {"model": "safe"}
    assert read.certificate.calibration_digest == framed.certificate.calibration_digest


def test_files_of_a_glob_have_the_same_columns(tmp_path: Path) -> None:
    SAFE.to_parquet(tmp_path / "1.parquet")
    BAD.rename(columns={"error": "Error"}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(TableError, match=r"need the same columns, but .* has 'Error'"):
        select(str(tmp_path / "*.parquet"))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("folder", ["error=0", "error=false", "model=other", "cost=0"])
def test_the_name_of_a_folder_is_no_column(tmp_path: Path, folder: str, ending: str) -> None:
    path = tmp_path / folder / f"losses.{ending}"
    path.parent.mkdir()
    if ending == "parquet":
        EVERY.to_parquet(path)
    elif ending == "csv":
        EVERY.to_csv(path, index=False)
    else:
        EVERY.to_json(path, orient="records", lines=True)
    read = select(path)
    assert read.config == {"model": "safe"}
    assert read.certificate.calibration_digest == select(EVERY).certificate.calibration_digest


def test_zero_and_minus_zero_are_one_configuration() -> None:
    wrong = np.random.default_rng(0).random(N) < 0.5
    with_signs = losses(np.where(wrong, -0.0, 0.0), wrong.astype(int))
    assert select(with_signs).config is None
    assert select(with_signs).certificate.n_validation == N // 2


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_zero_and_minus_zero_are_one_example(tmp_path: Path, ending: str) -> None:
    ids = np.arange(N) + 0.0
    ids[1] = -0.0  # of validation; 0.0 is of calibration
    table = losses("safe", 0, ids=ids)
    path = tmp_path / f"losses.{ending}"
    table.to_parquet(path) if ending == "parquet" else table.to_csv(path, index=False)
    with pytest.raises(LeakageError, match="must not share examples"):
        select(path)


def test_an_id_that_is_no_number_is_none(tmp_path: Path) -> None:
    ids = np.arange(N) + 0.0
    ids[1] = np.nan
    columns = losses("safe", 0).to_dict("list")
    with pytest.raises(TableError, match="id"):
        select(pa.table({**columns, "q": pa.array(ids, from_pandas=False)}))


def test_all_objects_of_a_column_tell_its_type() -> None:
    # The models take turns, so that the first thousand rows hold nothing but whole numbers.
    first = pd.concat([losses(f"m{i}", 0, cost=3.0) for i in range(6)], ignore_index=True)
    odd = first["model"].eq("m5") & (first.index % 2 == 1)
    error = first["error"].astype(object).where(~odd, 0.45)
    objects = first.assign(error=error, cost=first["cost"].where(first["model"] != "m5", 1.0))
    floats = objects.assign(error=objects["error"].astype(float))
    assert select(objects).config == select(floats).config
    assert (
        select(objects).certificate.calibration_digest
        == select(floats).certificate.calibration_digest
    )


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path, monkeypatch) -> None:
    path, other = tmp_path / "losses.parquet", tmp_path / "other"
    pq.write_table(pa.Table.from_pandas(EVERY), path)
    pq.write_table(pa.Table.from_pandas(EVERY.assign(error=0)), other)
    freeze = from_frame.freeze_plan

    def replaced(*given: Any, **named: Any) -> Any:
        os.replace(other, path)
        return freeze(*given, **named)

    monkeypatch.setattr(from_frame, "freeze_plan", replaced)
    with pytest.raises(TableError, match="was changed while it was read"):
        select(path)


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (("12345e6", "7f3a2b1"), ["12345e6", "7f3a2b1"]),
        (("007", "7"), ["007", "7"]),
        (("1.0", "2.1-rc"), ["1.0", "2.1-rc"]),
        (("0.5", "2"), [0.5, 2]),
        (("1e-05", "2.0"), [1e-05, 2.0]),
    ],
)
def test_texts_of_a_column_are_all_numbers_or_all_names(
    tmp_path: Path, names: tuple[str, ...], read: list[Any]
) -> None:
    path = tmp_path / "losses.csv"
    pd.concat([losses(name, 0) for name in names]).to_csv(path, index=False)
    found = [config["model"] for config in select(path).certificate.configs]
    assert sorted(found, key=str) == sorted(read, key=str)


def test_a_name_that_begins_with_a_tilde_is_a_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    EVERY.to_csv("~losses.csv", index=False)
    assert select("~losses.csv").config == {"model": "safe"}
