"""Configurations and groups that Python's own types would round, or cannot hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.errors import TableError
from riskpilot.tables import named_columns, open_table, wanted_columns
from riskpilot.tables.answers import Answer

PROBLEM = rp.Problem([rp.Risk("harm", 0.1)], minimize="cost")
BY_GROUP = rp.Problem(
    [rp.Risk("harm", 0.3, statistic=rp.WorstGroup(), groups="column")], minimize="cost"
)
COLUMNS = named_columns(["model"], "q")
WIDE = 100000000000000000000000000


def relation(column: str) -> duckdb.DuckDBPyRelation:
    """Two models on 300 examples; ``column``: an expression of the model m, 0 or 1, and of the
    example i."""
    return duckdb.sql(
        f"SELECT 'm' || m AS model, 'q' || i AS q, 0 AS harm, 1.0 + m AS cost, "
        f"if(i % 2 = 0, 'validation', 'calibration') AS split, {column} AS column "
        f"FROM range(300) t(i), range(2) u(m)"
    )


def configs(table: Any) -> list[Any]:
    selection = rp.select_from_frame(PROBLEM, table, config=["column"], example="q", ledger=None)
    return [config["column"] for config in selection.certificate.configs]


def group_table(column: str) -> rp.Selection:
    return rp.select_from_frame(
        BY_GROUP, relation(column), config=["model"], example="q", ledger=None
    )


ZONED = "TIMESTAMPTZ '2024-01-01 00:00:00+02' + to_days(m::INTEGER)"
FORMS: dict[str, Callable[[Path], Any]] = {
    "relation": lambda folder: relation(ZONED),
    "pandas": lambda folder: zoned().to_pandas(),
    "polars": lambda folder: pl.from_arrow(zoned()),
    "arrow": lambda folder: zoned(),
    "parquet": lambda folder: parquet(folder),
}


def zoned() -> pa.Table:
    return relation(ZONED).to_arrow_table()


def parquet(folder: Path) -> str:
    path = folder / "losses.parquet"
    relation(ZONED).write_parquet(str(path))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_times_with_a_zone_name_configurations_in_utc(form: str, tmp_path: Path) -> None:
    assert configs(FORMS[form](tmp_path)) == ["2023-12-31 22:00:00+00", "2024-01-01 22:00:00+00"]


def test_the_command_takes_times_with_a_zone(tmp_path: Path) -> None:
    words = ["select", parquet(tmp_path), "-r", "harm<=0.1", "--minimize", "cost"]
    words += ["--config-columns", "column", "--example", "q"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "2023-12-31 22:00:00+00" in result.output


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("if(m = 0, DATE 'infinity', DATE '9999-12-31')", ["9999-12-31", "infinity"]),
        ("if(m = 0, TIMESTAMPTZ 'infinity', '-infinity')", ["-infinity", "infinity"]),
        (
            "make_timestamp_ns(1704067200000000000 + m)",
            ["2024-01-01 00:00:00", "2024-01-01 00:00:00.000000001"],
        ),
        ("TIMESTAMP '2024-01-01' + to_days(m::INTEGER)",
         ["2024-01-01 00:00:00", "2024-01-02 00:00:00"]),
        ("if(m = 0, TIMETZ '10:00:00+02', TIMETZ '08:00:00+00')", ["08:00:00+00", "10:00:00+02"]),
        (f"m + {WIDE}::HUGEINT", [WIDE, WIDE + 1]),
        ("(m + 1)::UHUGEINT", [1, 2]),
        ("(m + 1.50)::DECIMAL(10, 2)", [1.5, 2.5]),
    ],
)  # fmt: skip
def test_names_of_configurations_are_exact(column: str, expected: list[Any]) -> None:
    assert configs(relation(column)) == expected


def test_decimals_that_are_one_float_name_no_configurations() -> None:
    column = "(1 + m * 0.0000000000000000000000001::DECIMAL(38, 25))"
    with pytest.raises(TableError, match=r"can be told apart, but 1\.0+ and 1\.0+1 of the column"):
        configs(relation(column))


@pytest.mark.parametrize(
    "column",
    [
        "TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_days((i // 2 % 2)::INTEGER)",
        "make_timestamp_ns(i // 2 % 2)",
        "TIMESTAMP '2024-01-01'",
        "DATE 'infinity'",
        "TIMETZ '10:00:00+02'",
    ],
)
def test_times_name_no_groups(column: str) -> None:
    with pytest.raises(TableError, match="must be texts or whole numbers to name groups"):
        group_table(column)


def test_times_that_differ_between_configurations_name_no_groups() -> None:
    with pytest.raises(TableError, match="must be texts or whole numbers to name groups"):
        group_table(ZONED)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (f"i // 2 % 2 + {WIDE}::HUGEINT", {str(WIDE), str(WIDE + 1)}),
        (
            "1 + (i // 2 % 2) * 0.0000000000000000000000001::DECIMAL(38, 25)",
            {"1", "1.0000000000000000000000001"},
        ),
        ("(i // 2 % 2 + 1.50)::DECIMAL(10, 2)", {"1.5", "2.5"}),
        ("(100 * (i // 2 % 2))::DECIMAL(10, 0)", {"0", "100"}),
        ("(i // 2 % 2)::UHUGEINT", {"0", "1"}),
    ],
)
def test_numbers_of_groups_keep_all_their_digits(column: str, names: set[str]) -> None:
    with open_table(relation(column), COLUMNS, wanted_columns(BY_GROUP)) as table:
        assert set(table.read("calibration")["column"].tolist()) == names


def test_what_duckdb_cannot_bring_to_python_is_said_in_words() -> None:
    with duckdb.connect() as connection:
        answer = Answer("the table", connection.execute("SELECT TIMETZ '10:00:00+02' AS t"))
        with pytest.raises(TableError, match=r"'the table': every value .* write its column as"):
            answer.fetchnumpy()
