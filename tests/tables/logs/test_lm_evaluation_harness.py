"""Logs of lm-evaluation-harness, which the tool itself wrote, against a plain reading."""

import json
import shutil
from pathlib import Path

import pytest

from riskpilot.errors import TableError
from riskpilot.tables.logs import is_log, read_runs, write_rows

LOGS = Path(__file__).parent / "fixtures" / "lm_eval"
VERSIONS = json.loads((LOGS.parent / "versions.json").read_text())


def samples_of(task, size="small"):
    """Name the log of a task."""
    (path,) = (LOGS / size).glob(f"samples_{task}_*.jsonl")
    return path


def plain(path):
    """Read the lines of a log without riskpilot."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def copied(tmp_path):
    """Copy one run, to be changed."""
    shutil.copytree(LOGS / "small", tmp_path / "small")
    return tmp_path / "small"


def change_results(folder, **changes):
    """Change some fields of the file of results."""
    (path,) = folder.glob("results_*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("size", ["small", "large"])
def test_every_sample_is_read_as_it_stands(size):
    path = samples_of("sums", size)
    (run,) = read_runs([str(path)])
    lines = plain(path)
    assert len(run.samples) == len(lines) == 24
    for sample, line in zip(run.samples, lines, strict=True):
        assert sample.example == str(line["doc_id"])
        assert sample.numbers == {
            "acc": line["acc"],
            "accuracy": line["acc"],
            "acc_error": 1 - line["acc"],
            "error": 1 - line["acc"],
        }
    (results,) = path.parent.glob("results_*.json")
    told = json.loads(results.read_text())
    mean = sum(sample.numbers["accuracy"] for sample in run.samples) / 24
    assert mean == pytest.approx(told["results"]["sums"]["acc,none"])
    assert told["lm_eval_version"] == VERSIONS["lm_eval"]


def test_filters_of_an_answer_are_scores_of_one_example():
    path = samples_of("words")
    lines = plain(path)
    (run,) = read_runs([str(path)])
    assert len(run.samples) == 24
    assert len(lines) == 48
    for sample in run.samples:
        by_filter = {
            line["filter"]: line["exact_match"]
            for line in lines
            if str(line["doc_id"]) == sample.example
        }
        assert sample.numbers["exact_match.strict"] == by_filter["strict"]
        assert sample.numbers["exact_match.loud_error"] == 1 - by_filter["loud"]
        assert "error" not in sample.numbers  # which of the two would it be?


def test_configuration_is_what_the_results_say_of_it():
    (run,) = read_runs([str(samples_of("words"))])
    assert run.config == {
        "model": "dummy",
        "model_args": {"pretrained": "small"},
        "task": "words",
        "num_fewshot": 0,
        "prompt": "Say {{word}}.",
        "generation": {"until": ["."], "do_sample": False},
    }


def test_two_models_make_two_configurations_with_the_same_examples(tmp_path):
    assert is_log(LOGS / "*" / "samples_sums_*.jsonl")
    runs = read_runs([str(samples_of("sums", size)) for size in ("small", "large")])
    write_rows(runs, tmp_path / "rows.jsonl")
    rows = plain(tmp_path / "rows.jsonl")
    assert len({row["config"] for row in rows}) == 2
    assert len({row["example"] for row in rows}) == 24
    assert all(row["repeats"] == 1 for row in rows)


def test_tasks_with_other_documents_are_not_mixed(copied, tmp_path):
    other = copied / samples_of("sums").name.replace("sums", "words")
    lines = [{**line, "doc_hash": f"another {line['doc_id']}"} for line in plain(other)]
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = read_runs([str(samples_of("sums")), str(other)])
    with pytest.raises(TableError, match="'0' is another one in"):
        write_rows(runs, tmp_path / "rows.jsonl")


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_cut_log_is_said_to_be_one(copied, share):
    path = copied / samples_of("sums").name
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(TableError, match="no complete log of lm-evaluation-harness"):
        read_runs([str(path)])


def test_a_log_that_was_cut_between_two_lines_is_found_by_its_number_of_samples(copied):
    path = copied / samples_of("sums").name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(TableError, match="it has 23 of 24 samples"):
        read_runs([str(path)])


@pytest.mark.parametrize("version", ["0.5.0", "1.4", 4, None])
def test_another_version_is_refused(copied, version):
    change_results(copied, lm_eval_version=version)
    with pytest.raises(
        TableError, match=r"its version is '.*', and riskpilot reads 0\.4\. Convert"
    ):
        read_runs([str(copied / samples_of("sums").name)])


def test_samples_without_their_results_say_where_to_put_them(copied):
    (results,) = copied.glob("results_*.json")
    results.unlink()
    with pytest.raises(TableError, match=r"results_2026.*\.json, but there is none\. Put the one"):
        read_runs([str(copied / samples_of("sums").name)])


def test_another_name_is_refused(copied):
    path = (copied / samples_of("sums").name).rename(copied / "mine.jsonl")
    with pytest.raises(TableError, match=r"its name is not samples_TASK_DATE\.jsonl"):
        read_runs([str(path)])


@pytest.mark.parametrize("field", ["config", "configs", "n-shot", "n-samples", "higher_is_better"])
def test_results_of_another_shape_are_refused_in_a_sentence(copied, field):
    change_results(copied, **{field: [1]})
    with pytest.raises(TableError, match="not written as riskpilot knows logs of lm-evaluation"):
        read_runs([str(copied / samples_of("sums").name)])
