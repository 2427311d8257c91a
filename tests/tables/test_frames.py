"""Selections from long tables: frames, files, columns by name, and splits that are drawn."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.errors import LeakageError, ProblemError, TableError
from riskpilot.study.questions.audit import audit
from riskpilot.tables import named_columns, open_table, read_losses, wanted_columns

PROBLEM = rp.Problem([rp.Risk("correct", at_least=0.8)], minimize="cost")
COLUMNS: dict[str, Any] = {"config": ["model", "prompt_id"], "example": "question_id"}


def answers(n: int = 300, seed: int = 0) -> dict[str, list[Any]]:
    """Evaluations of four configurations, with columns that nobody asks for."""
    rng = np.random.default_rng(seed)
    rows = []
    for model, accuracy, cost in (("large", 0.95, 3.0), ("small", 0.5, 1.0)):
        for prompt in (1, 2):
            for i in range(n):
                rows.append(
                    {
                        "model": model,
                        "prompt_id": prompt,
                        "question_id": f"q{i}",
                        "split": "validation" if i % 2 else "calibration",
                        "correct": int(rng.random() < accuracy),
                        "cost": cost + prompt / 10,
                        "answer": "some, text",
                        "latency": None if i % 7 else 0.1,
                    }
                )
    return {name: [row[name] for row in rows] for name in rows[0]}


def frames(columns: dict[str, list[Any]]) -> dict[str, Callable[[], Any]]:
    table = pa.table(columns)
    return {
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "arrow": lambda: table,
        "relation": lambda: duckdb.from_arrow(table),
    }


def written(folder: Path, ending: str, columns: dict[str, list[Any]]) -> Path:
    path = folder / f"answers.{ending}"
    frame = pd.DataFrame(columns)
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "csv.gz":
        with gzip.open(path, "wt") as file:
            frame.to_csv(file, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    elif ending == "json":
        frame.to_json(path, orient="records")
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


ENDINGS = ("csv", "csv.gz", "parquet", "json", "jsonl")


def by_hand() -> rp.Selection:
    """The same selection from arrays."""
    columns = answers()
    configs = [{"model": m, "prompt_id": p} for m in ("large", "small") for p in (1, 2)]
    correct = np.reshape(columns["correct"], (4, 300))
    order = np.argsort(columns["question_id"][:300])
    odd = order[order % 2 == 1]
    even = order[order % 2 == 0]
    cost = np.reshape(columns["cost"], (4, 300))[:, 0]
    return rp.select_from_losses(
        PROBLEM,
        validation={"correct": 1 - correct[:, odd], "cost": cost},
        calibration={"correct": 1 - correct[:, even]},
        configs=configs,
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "relation"])
def test_every_frame_gives_the_selection_that_arrays_give(kind: str) -> None:
    selection = rp.select_from_frame(PROBLEM, frames(answers())[kind](), **COLUMNS)
    expected = by_hand()
    assert selection.config == expected.config == {"model": "large", "prompt_id": 1}
    assert selection.certificate.validation_digest == expected.certificate.validation_digest
    assert selection.certificate.log_p == expected.certificate.log_p


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_file_gives_one_certificate_and_verifies_it(
    ending: str, tmp_path: Path
) -> None:
    path = written(tmp_path, ending, answers())
    selection = rp.select_from_frame(PROBLEM, path, **COLUMNS)
    frame = rp.select_from_frame(PROBLEM, frames(answers())["arrow"](), **COLUMNS)
    assert selection.certificate.plan_digest == frame.certificate.plan_digest
    assert selection.certificate.calibration_digest == frame.certificate.calibration_digest
    saved = selection.certificate.save(tmp_path / "certificate.json")
    assert audit(saved, str(path)).ok


def test_the_promise_is_about_what_the_column_says() -> None:
    promise = rp.select_from_frame(PROBLEM, frames(answers())["arrow"](), **COLUMNS)
    assert "'prompt_id': 1}, has correct >= 0.8 on new data" in promise.certificate.promise
    assert "1 - correct: " in str(promise)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_edited_loss_of_a_candidate_or_of_validation_is_found(
    ending: str, tmp_path: Path
) -> None:
    columns = answers()
    selection = rp.select_from_frame(PROBLEM, written(tmp_path, ending, columns), **COLUMNS)
    saved = selection.certificate.save(tmp_path / "certificate.json")
    for split in ("validation", "calibration"):
        edited = {name: list(values) for name, values in columns.items()}
        at = next(
            i
            for i, row in enumerate(edited["split"])
            if row == split and (edited["model"][i], edited["prompt_id"][i]) == ("large", 1)
        )
        edited["correct"][at] = 1 - edited["correct"][at]
        found = audit(saved, str(written(tmp_path, ending, edited)))
        assert any(f"the {split} losses are not the ones" in text for text in found.differences)


def test_a_glob_is_one_table(tmp_path: Path) -> None:
    columns = answers()
    for name, start in (("a", 0), ("b", 600)):
        part = {key: values[start : start + 600] for key, values in columns.items()}
        written(tmp_path, "csv", part).rename(tmp_path / f"{name}.csv")
    selection = rp.select_from_frame(PROBLEM, str(tmp_path / "*.csv"), **COLUMNS)
    assert selection.certificate.log_p == by_hand().certificate.log_p


def test_files_of_a_glob_with_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("split,config,error\nvalidation,a,0\n")
    (tmp_path / "b.csv").write_text("config,split,error\na,calibration,0\n")
    with pytest.raises(TableError, match="the same columns in the same order"):
        read_losses(str(tmp_path / "*.csv"))


def test_a_share_is_drawn_by_example_and_recorded(tmp_path: Path) -> None:
    columns = answers()
    del columns["split"]
    path = written(tmp_path, "parquet", columns)
    selection = rp.select_from_frame(PROBLEM, path, **COLUMNS, split=0.4)
    certificate = selection.certificate
    assert (certificate.n_validation, certificate.n_calibration) == (120, 180)
    assert certificate.table is not None
    assert isinstance(certificate.table["draw"], int)
    saved = certificate.save(tmp_path / "certificate.json")
    assert audit(saved, str(path)).ok
    unrecorded = [
        rp.select_from_frame(PROBLEM, path, **COLUMNS, split=0.4, ledger=None).certificate.table
        for _ in range(3)
    ]
    assert len({table["draw"] for table in unrecorded if table}) == 3, "each draw is a new one"
    twice = [
        rp.select_from_frame(PROBLEM, path, **COLUMNS, split=0.4, seed=7).certificate.plan_digest
        for _ in range(2)
    ]
    assert twice[0] == twice[1]


def test_a_drawn_split_is_drawn_anew_each_time() -> None:
    table = frames({k: v for k, v in answers().items() if k != "split"})["arrow"]()
    drawn = []
    for seed in range(1, 41):
        columns = named_columns(["model", "prompt_id"], "question_id", 0.5, seed)
        with open_table(table, columns, wanted_columns(PROBLEM)) as opened:
            ids = opened.ids("validation")
            assert ids is not None
            drawn.append(set(ids))
    often = [sum(f"q{i}" in ids for ids in drawn) for i in range(300)]
    assert 15 < np.mean(often) < 25
    assert max(often) < 36, "no example is always in one split"
    assert min(often) > 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"config": []}, "names the columns that make up a configuration"),
        ({"config": ["model", "nope"]}, "'nope' is missing"),
        ({"config": ["model"], "example": "model"}, "named twice"),
        ({"example": "nope"}, "'nope' is missing"),
        ({"example": None}, "told apart by the ids"),
        ({"split": "nope"}, "'nope' is missing"),
        ({"split": 1.5}, "between 0 and 1"),
        ({"split": 0.0001}, "leaves nothing for one of the two splits"),
        ({"config": ["model", "correct"]}, "cannot hold losses"),
        ({"config": "model"}, "has one row per|the same number of"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(TableError, match=says):
        rp.select_from_frame(PROBLEM, frames(answers())["arrow"](), **{**COLUMNS, **change})


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TableError, match="pandas, Polars or Arrow"):
        rp.select_from_frame(PROBLEM, 3, **COLUMNS)
    with pytest.raises(ProblemError, match="takes a Problem first"):
        rp.select_from_frame("problem", frames(answers())["arrow"](), **COLUMNS)  # type: ignore[arg-type]


def test_ids_beyond_doubles_and_ids_that_look_alike_stay_apart() -> None:
    large = [2**53 + i for i in range(8)]
    for ids in (large, ["1", "01", "1.5", " 1", "a", "A", "é", "1e0"]):
        columns = {
            "model": ["m"] * 8,
            "id": ids,
            "split": ["validation", "calibration"] * 4,
            "error": [0, 1] * 4,
            "cost": [1.0] * 8,
        }
        problem = rp.Problem([rp.Risk("error", 0.9)], "cost")
        selection = rp.select_from_frame(problem, pa.table(columns), config="model", example="id")
        assert selection.certificate.n_calibration == 4


def test_an_example_twice_or_in_both_splits_is_refused() -> None:
    columns = answers()
    twice = {name: [*values, values[0]] for name, values in columns.items()}
    with pytest.raises(TableError, match=r"two for example 'q0'|the same number of"):
        rp.select_from_frame(PROBLEM, pa.table(twice), **COLUMNS)
    balanced = {name: list(values) for name, values in columns.items()}
    balanced["question_id"][302] = "q0"  # has q0 twice and q2 never
    with pytest.raises(TableError, match="two for example 'q0'"):
        rp.select_from_frame(PROBLEM, pa.table(balanced), **COLUMNS)
    shared = {name: list(values) for name, values in columns.items()}
    for start in range(0, 1200, 300):
        shared["question_id"][start + 1] = "q0"
    with pytest.raises(LeakageError, match="'q0'"):
        rp.select_from_frame(PROBLEM, pa.table(shared), **COLUMNS)


def test_the_command_takes_columns_by_name_and_ignores_the_others(tmp_path: Path) -> None:
    path = written(tmp_path, "csv", answers())
    named = ["--config-columns", "model,prompt_id", "--example", "question_id"]
    options = ["-r", "correct>=0.8", "--minimize", "cost", "--json"]
    result = CliRunner().invoke(app, ["select", str(path), *named, *options])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["config"] == {"model": "large", "prompt_id": 1}
    assert told["certificate"]["log_p"] == by_hand().certificate.log_p
    drawn = CliRunner().invoke(app, ["select", str(path), *named, "--split", "0.5", *options])
    assert json.loads(drawn.stdout)["certificate"]["table"]["split"] == 0.5


def test_a_loss_that_is_missing_where_every_example_counts_is_refused() -> None:
    columns = answers()
    columns["correct"][5] = None
    with pytest.raises(rp.LossError, match="NaN"):
        rp.select_from_frame(PROBLEM, pa.table(columns), **COLUMNS)


def test_numbers_between_zero_and_one_are_bet_on_as_arrays_are() -> None:
    rng = np.random.default_rng(3)
    error = rng.beta(1, 20, size=(2, 800))
    columns = {
        "config": np.repeat(["a", "b"], 800).tolist(),
        "example": [*range(800)] * 2,
        "split": (["validation"] * 400 + ["calibration"] * 400) * 2,
        "error": error.ravel().tolist(),
        "cost": np.repeat([1.0, 2.0], 800).tolist(),
    }
    problem = rp.Problem([rp.Risk("error", 0.08)], "cost")
    found = rp.select_from_frame(problem, pa.table(columns), config="config", example="example")
    expected = rp.select_from_losses(
        problem,
        validation={"error": error[:, :400], "cost": [1.0, 2.0]},
        calibration={"error": error[:, 400:]},
        configs=[{"config": "a"}, {"config": "b"}],
    )
    assert found.certificate.families == {"error": "betting"}
    assert found.certificate.log_p == expected.certificate.log_p


@pytest.mark.parametrize("name", ["{}", "x{}", "x{:04}"])
def test_the_same_losses_in_both_splits_are_refused_whatever_their_ids_are(tmp_path, name):
    rng = np.random.default_rng(0)
    errors = rng.random((2, 1_500)) < 0.05
    rows = [
        f"{'ab'[config]},{split},{int(errors[config, i])},{config},{ids.format(i + shift)}"
        for split, ids, shift in (
            ("validation", "{}", 0),
            ("calibration", name, 1_500 * (name == "{}")),
        )
        for config in range(2)
        for i in range(1_500)
    ]
    rng.shuffle(rows)
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["config,split,error,cost,example", *rows]))
    with pytest.raises(LeakageError, match="the same 1500"):
        rp.select_from_frame(
            rp.Problem([rp.Risk("error", 0.1)], "cost"), path, config="config", example="example"
        )
