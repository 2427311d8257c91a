"""Logs of Inspect AI, which the tool itself wrote, against what the tool itself reads in them."""

import json
import math
import zipfile
from pathlib import Path

import pytest

from riskpilot.errors import TableError
from riskpilot.tables.logs import is_log, read_runs, write_rows

LOGS = Path(__file__).parent / "fixtures" / "inspect_ai"
BY_THE_TOOL = json.loads((LOGS / "read_by_the_tool.json").read_text())
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0}


def rows_of(path, tmp_path):
    """Read a log as rows of a table."""
    written = tmp_path / "rows.jsonl"
    write_rows(read_runs([str(path)]), written)
    return [json.loads(line) for line in written.read_text().splitlines()]


def plain_json():
    """Read the log that is JSON without riskpilot."""
    return json.loads((LOGS / "repeated.json").read_text())


def write_json(path, **changes):
    """Write the log that is JSON with some parts changed."""
    path.write_text(json.dumps({**plain_json(), **changes}))
    return path


@pytest.mark.parametrize("name", sorted(BY_THE_TOOL))
def test_every_sample_is_read_as_the_tool_reads_it(name):
    (run,) = read_runs([str(LOGS / name)])
    assert len(run.samples) == len(BY_THE_TOOL[name])
    expected = {}
    for sample in BY_THE_TOOL[name]:
        expected.setdefault(sample["id"], []).append(sample)
    found = {}
    for sample in run.samples:
        found.setdefault(sample.example, []).append(sample.numbers)
    assert found.keys() == expected.keys()
    for example, samples in expected.items():
        for numbers, sample in zip(found[example], samples, strict=True):
            assert numbers["tokens"] == sample["tokens"]
            assert numbers["cost"] == sample["cost"]
            assert numbers["seconds"] == sample["seconds"]
            for scorer, value in sample["scores"].items():
                if value is None:
                    assert scorer not in numbers
                else:
                    assert numbers[scorer] == GRADES.get(value, value)


def test_repeats_are_averaged_into_one_loss_for_each_example(tmp_path):
    rows = rows_of(LOGS / "repeated.json", tmp_path)
    grades = {}
    for sample in plain_json()["samples"]:
        grade = sample["scores"]["match"]["value"]
        grades.setdefault(sample["id"], []).append(GRADES[grade])
    assert [row["example"] for row in rows] == list(grades)
    for row in rows:
        answers = grades[row["example"]]
        assert row["repeats"] == len(answers) == 2
        assert row["accuracy"] == math.fsum(answers) / 2
        assert row["error"] == pytest.approx(1 - row["accuracy"])


def test_half_grades_and_several_scores_keep_names_of_their_own(tmp_path):
    rows = rows_of(LOGS / "repeated.eval", tmp_path)
    assert "error" not in rows[0]  # which of the scores would it be?
    assert {row["half"] for row in rows} - {0.0, 1.0}
    for row in rows:
        assert row["half_error"] == pytest.approx(1 - row["half"])
        assert "length_error" not in row  # a length is not better when larger
        assert ("length" in row) == (row["example"] != "sum-05")  # its score was NaN


def test_configuration_is_what_the_log_says_of_it():
    (run,) = read_runs([str(LOGS / "terse-small.eval")])
    assert run.config == {
        "model": "sums/small",
        "task": "sums",
        "task.style": "terse",
        "task.n": 60,
        "task.scorers": 1,
        "solvers": [
            {"solver": "system_message", "template": "Answer in a terse way."},
            {"solver": "generate", "tool_calls": "loop"},
        ],
        "temperature": 0.5,
    }


def test_archives_of_older_versions_are_read_alike(tmp_path):
    """They are compressed by deflation, and may lack the short form of the samples."""
    header = plain_json()
    samples = header.pop("samples")
    old = tmp_path / "old.eval"
    with zipfile.ZipFile(old, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
    assert rows_of(old, tmp_path) == rows_of(LOGS / "repeated.json", tmp_path)


def test_logs_are_known_by_what_they_hold(tmp_path):
    assert is_log(LOGS / "terse-*.eval")
    assert is_log(LOGS / "repeated.json")
    table = tmp_path / "table.json"
    table.write_text('[{"config": "a", "example": 1, "error": 0}]')
    assert not is_log(table)
    assert not is_log(tmp_path / "nowhere.json")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["terse-small.eval", "repeated.json"])
def test_a_cut_log_is_said_to_be_one(tmp_path, name, share):
    whole = (LOGS / name).read_bytes()
    cut = tmp_path / f"cut{Path(name).suffix}"
    cut.write_bytes(whole[: int(share * len(whole))])
    if name.endswith(".json") and share == 0:
        assert not is_log(cut)  # nothing is left to know it by
        return
    with pytest.raises(TableError, match=r"'cut\.\w+' is no complete log of Inspect AI"):
        read_runs([str(cut)])


def test_an_archive_with_a_damaged_part_is_said_to_be_one(tmp_path):
    whole = bytearray((LOGS / "terse-small.eval").read_bytes())
    with zipfile.ZipFile(LOGS / "terse-small.eval") as archive:
        part = archive.getinfo("summaries.json")
    begin = part.header_offset + 30 + len(part.filename)
    whole[begin : begin + part.compress_size // 2] = bytes(part.compress_size // 2)
    damaged = tmp_path / "damaged.eval"
    damaged.write_bytes(whole)
    with pytest.raises(TableError, match=r"no complete log of Inspect AI \(its part summaries"):
        read_runs([str(damaged)])


def test_an_archive_of_an_evaluation_that_did_not_end_is_refused(tmp_path):
    path = tmp_path / "running.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    with pytest.raises(TableError, match="the evaluation did not end"):
        read_runs([str(path)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 3}, r"its version is 3, and riskpilot reads 2\. Convert it to a table"),
        ({"status": "error"}, "must have ended well, but its status is 'error'"),
        ({"status": "started"}, "inspect eval-retry"),
        ({"invalidated": True}, "marked as invalid"),
        ({"samples": []}, "log_samples=False"),
        ({"samples": None}, "log_samples=False"),
        ({"samples": ["one"]}, "samples is no list of objects"),
        ({"eval": {"model": "a"}}, r"it has no task"),
        ({"eval": None}, "it has no model"),
        ({"samples": [{"epoch": 1}]}, "it has no id"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, changes, words):
    with pytest.raises(TableError, match=words):
        read_runs([str(write_json(tmp_path / "log.json", **changes))])


@pytest.mark.parametrize(
    ("key", "value"),
    [("results", []), ("results", {"scores": [1]}), ("plan", [1]), ("plan", {"steps": ["x"]})],
)
def test_parts_of_another_shape_are_refused_in_a_sentence(tmp_path, key, value):
    with pytest.raises(TableError, match="not written as riskpilot knows logs of Inspect AI"):
        read_runs([str(write_json(tmp_path / "log.json", **{key: value}))])


def test_a_sample_that_ended_in_an_error_is_refused(tmp_path):
    samples = plain_json()["samples"]
    samples[3]["error"] = {"message": "no memory"}
    with pytest.raises(TableError, match=f"sample {samples[3]['id']!r} ended in an error"):
        read_runs([str(write_json(tmp_path / "log.json", samples=samples))])


def test_an_id_must_not_stand_for_two_examples(tmp_path):
    samples = plain_json()["samples"]
    other = {**samples[0], "input": "What is the capital of France?", "target": "Paris"}
    log = write_json(tmp_path / "other.json", samples=[other])
    runs = read_runs([str(LOGS / "repeated.json"), str(log)])
    with pytest.raises(TableError, match=r"'sum-00' is another one in 'other\.json' than in"):
        write_rows(runs, tmp_path / "rows.jsonl")


def test_ids_that_are_numbers_stay_apart_from_each_other(tmp_path):
    samples = [{**plain_json()["samples"][0], "id": number} for number in (1, 10, "01")]
    log = write_json(tmp_path / "log.json", samples=samples)
    assert [row["example"] for row in rows_of(log, tmp_path)] == ["1", "10", "01"]


def test_other_files_beside_logs_are_refused(tmp_path):
    (tmp_path / "a.json").write_text((LOGS / "repeated.json").read_text())
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(TableError, match=r"'a\.json' is a log and 'b\.json' is none"):
        is_log(tmp_path / "*.json")


@pytest.mark.parametrize("name", ["terse-small.eval", "repeated.json"])
def test_a_log_that_would_take_too_much_memory_is_refused_before_it_is_read(monkeypatch, name):
    monkeypatch.setenv("RISKPILOT_MEMORY", "64KB")
    with pytest.raises(TableError, match=r"would take .* of memory, and riskpilot reads"):
        read_runs([str(LOGS / name)])


def test_an_archive_that_claims_less_than_it_holds_is_refused(tmp_path, monkeypatch):
    """The sizes that the archive claims are set to 1; what its parts expand to counts."""
    lying = bytearray((LOGS / "terse-small.eval").read_bytes())
    with zipfile.ZipFile(LOGS / "terse-small.eval") as archive:
        begin = archive.start_dir
        count = len(archive.infolist())
    for _ in range(count):
        assert lying[begin : begin + 4] == b"PK\x01\x02"
        lying[begin + 24 : begin + 28] = (1).to_bytes(4, "little")
        lengths = (int.from_bytes(lying[begin + i : begin + i + 2], "little") for i in (28, 30, 32))
        begin += 46 + sum(lengths)
    path = tmp_path / "lying.eval"
    path.write_bytes(lying)
    assert len(read_runs([str(path)])[0].samples) == 60
    monkeypatch.setenv("RISKPILOT_MEMORY", "64KB")
    with pytest.raises(TableError, match=r"would take .* of memory, and riskpilot reads"):
        read_runs([str(path)])


def test_the_recorded_version_is_the_one_that_wrote_the_log():
    versions = json.loads((LOGS.parent / "versions.json").read_text())
    assert plain_json()["eval"]["packages"]["inspect_ai"] == versions["inspect_ai"]
