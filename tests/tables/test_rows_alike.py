"""Whether every configuration has the same examples, seen by fingerprints of its rows."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import riskpilot as rp
from riskpilot.errors import TableError
from riskpilot.tables import named_columns, open_table, wanted_columns

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], minimize="cost")
COLUMNS: dict[str, Any] = {"config": "config", "example": "example"}
N = 40


def rows(ids: type = str, n_configs: int = 3) -> dict[str, list[Any]]:
    """Losses of some configurations on the same examples, half of them for validation."""
    rng = np.random.default_rng(0)
    places = [(config, i) for config in range(n_configs) for i in range(N)]
    return {
        "config": [f"c{config}" for config, _ in places],
        "example": [ids(i) for _, i in places],
        "split": ["validation" if i % 2 else "calibration" for _, i in places],
        "error": [int(rng.random() < 0.1 + config / 3) for config, _ in places],
        "cost": [float(config) for config, _ in places],
    }


def change(columns: dict[str, list[Any]], name: str, **values: Any) -> dict[str, list[Any]]:
    """Write other values into some rows, given as row_41=value."""
    changed = {key: list(column) for key, column in columns.items()}
    for row, value in values.items():
        changed[name][int(row.removeprefix("row_"))] = value
    return changed


def digests(selection: rp.Selection) -> tuple[str, str]:
    """Of the validation losses, by the plan, and of the calibration losses."""
    return selection.certificate.plan_digest, selection.certificate.calibration_digest


def select(columns: dict[str, list[Any]]) -> rp.Selection:
    return rp.select_from_frame(PROBLEM, pa.table(columns), **COLUMNS)


@pytest.mark.parametrize("ids", [str, int, float])
def test_two_examples_that_changed_splits_in_one_configuration_are_seen(ids: type) -> None:
    swapped = change(rows(ids), "split", row_42="validation", row_43="calibration")
    with pytest.raises(TableError, match="the same validation examples"):
        select(swapped)


@pytest.mark.parametrize("ids", [str, int, float])
def test_examples_that_stand_in_for_others_are_seen(ids: type) -> None:
    twice = change(rows(ids), "example", row_41=ids(3))
    with pytest.raises(TableError, match="two for example '3'"):
        select(twice)
    # Each of two examples is there twice, so that their hashes cancel out.
    pairs = change(rows(ids), "example", row_41=ids(3), row_45=ids(7), row_47=ids(7))
    with pytest.raises(TableError, match="two for example '3'"):
        select(pairs)
    other = change(rows(ids), "example", row_41=ids(99))
    with pytest.raises(TableError, match="differ, as at example '99'"):
        select(other)


def test_groups_that_changed_places_in_one_configuration_are_seen() -> None:
    risk = rp.Risk("error", 0.9, statistic=rp.WorstGroup())
    problem = rp.Problem([risk], minimize="cost")
    columns = rows() | {"groups": ["f" if i % 4 < 2 else "m" for _ in range(3) for i in range(N)]}
    rp.select_from_frame(problem, pa.table(columns), **COLUMNS)
    swapped = change(columns, "groups", row_41="m", row_43="f")
    with pytest.raises(TableError, match="'groups' must be the same for every configuration"):
        rp.select_from_frame(problem, pa.table(swapped), **COLUMNS)


def test_only_configurations_that_are_tested_need_calibration_rows() -> None:
    columns = rows()
    whole = select(columns)
    tested = {row["row"] for row in whole.certificate.candidates}
    assert tested == {0}
    kept = [i for i in range(3 * N) if i < N or columns["split"][i] == "validation"]
    ragged = {name: [column[i] for i in kept] for name, column in columns.items()}
    assert digests(select(ragged)) == digests(whole)


@pytest.mark.parametrize("split", ["split", 0.5])
def test_one_spelling_or_two_lead_to_the_same_losses(split: str | float) -> None:
    columns = rows()
    plain, spelled = (
        {**columns, "example": [write(i) for i in columns["example"]]}
        for write in (str, lambda i: f"{i}.0")
    )
    mixed = {**plain, "example": plain["example"][:N] + spelled["example"][N:]}
    mixed["split"] = [
        label.title() if i % 3 else f" {label}" for i, label in enumerate(columns["split"])
    ]
    found = []
    for table in (plain, spelled, mixed):
        read = named_columns("config", "example", split, None if split == "split" else 5)
        with open_table(pa.table(table), read, wanted_columns(PROBLEM)) as opened:
            losses = [
                np.asarray(opened.read(half)["error"]) for half in ("validation", "calibration")
            ]
            found.append([opened.ids("validation").tolist(), *(part.tolist() for part in losses)])  # type: ignore[union-attr]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("odd", [7.0, float("nan"), None])
@pytest.mark.parametrize("half", ["validation", "calibration"])
def test_a_free_objective_that_is_not_one_number_is_read_by_split(half: str, odd: float) -> None:
    """What stands in calibration rows does not change what validation rows say."""
    columns = rows()
    place = columns["split"].index(half)
    columns["cost"][place] = odd
    with open_table(pa.table(columns), named_columns(), wanted_columns(PROBLEM)) as table:
        assert table.survey.free is None
        shapes = {
            part: np.shape(table.read(part)["cost"]) for part in ("validation", "calibration")
        }
    assert shapes == {"validation": (3,), "calibration": (3,), half: (3, N // 2)}


def test_the_largest_table_of_ones_and_of_zeros() -> None:
    for value in (0, 1):
        columns = {**rows(), "error": [value] * (3 * N)}
        with open_table(pa.table(columns), named_columns(), wanted_columns(PROBLEM)) as table:
            assert np.all(np.asarray(table.read("validation")["error"]) == value)
            assert np.shape(table.read("calibration", rows=[2])["error"]) == (1, N // 2)


# --- the DuckDB of a process ---------------------------------------------------------------------


def _digests(path: str) -> tuple[str, str]:
    return digests(rp.select_from_frame(PROBLEM, path, **COLUMNS, ledger=None))


def _written(folder: Path) -> str:
    path = folder / "t.parquet"
    duckdb.from_arrow(pa.table(rows())).write_parquet(str(path))
    return str(path)


def test_tables_are_read_at_once_and_in_a_process_that_was_forked(tmp_path: Path) -> None:
    path = _written(tmp_path)
    expected = _digests(path)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(_digests, [path] * 12)) == {expected}
    if sys.platform == "linux":
        with multiprocessing.get_context("fork").Pool(2) as processes:
            assert set(processes.map_async(_digests, [path] * 4).get(timeout=60)) == {expected}


def test_nothing_stays_on_disk_when_the_process_ends(tmp_path: Path) -> None:
    path = _written(tmp_path)
    code = (
        "import os, sys; import riskpilot as rp\n"
        "problem = rp.Problem([rp.Risk('error', 0.3)], minimize='cost')\n"
        f"ask = lambda: rp.select_from_frame(problem, {path!r}, config='config', "
        "example='example', ledger=None)\n"
        "ask()\n"
        "child = os.fork() if hasattr(os, 'fork') else 1\n"
        "ask()\n"
        "if child == 0: sys.exit(0)\n"
        "assert not hasattr(os, 'fork') or os.waitpid(child, 0)[1] == 0\n"
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)
    assert list(folder.iterdir()) == []
