"""Results of promptfoo, which the tool itself wrote, against a plain reading."""

import json
from pathlib import Path

import pytest

from riskpilot.errors import TableError
from riskpilot.tables.logs import is_log, read_runs, write_rows

LOGS = Path(__file__).parent / "fixtures" / "promptfoo"
VERSIONS = json.loads((LOGS.parent / "versions.json").read_text())


def plain(name="capitals"):
    """Read a file of results without riskpilot."""
    return json.loads((LOGS / f"{name}.json").read_text())


def write(path, data):
    path.write_text(json.dumps(data, indent=2))
    return str(path)


def test_every_answer_is_read_as_it_stands():
    data = plain()
    runs = read_runs([str(LOGS / "capitals.json")])
    assert data["metadata"]["promptfooVersion"] == VERSIONS["promptfoo"]
    assert [run.config for run in runs] == [
        {"provider": prompt["provider"], "prompt": prompt["raw"]}
        for prompt in data["results"]["prompts"]
    ]
    for place, run in enumerate(runs):
        answers = [one for one in data["results"]["results"] if one["promptIdx"] == place]
        assert len(run.samples) == len(answers) == 5
        for sample, answer in zip(run.samples, answers, strict=True):
            assert json.loads(sample.example) == {
                "vars": answer["vars"],
                "assert": answer["testCase"]["assert"],
            }
            assert sample.numbers["accuracy"] == answer["success"]
            assert sample.numbers["error"] == 1 - answer["success"]
            assert sample.numbers["score"] == answer["score"]
            assert sample.numbers["cost"] == answer["cost"]
            assert sample.numbers["tokens"] == answer["tokenUsage"]["total"]
            assert sample.numbers["seconds"] == answer["latencyMs"] / 1000
            for name, value in answer["namedScores"].items():
                assert sample.numbers[name] == value


def test_repeats_of_a_test_are_one_example(tmp_path):
    """The tool numbers them as if they were tests of their own; taken as such, one example would
    count three times."""
    data = plain("repeated")["results"]
    assert len(data["results"]) == 4 * 5 * 3
    write_rows(read_runs([str(LOGS / "repeated.json")]), tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 4 * 5
    assert {row["repeats"] for row in rows} == {3}
    for row in rows:
        config, test = json.loads(row["config"]), json.loads(row["example"])
        answers = [
            answer["success"]
            for answer in data["results"]
            if data["prompts"][answer["promptIdx"]]["raw"] == config["prompt"]
            and (answer["provider"]["label"] or answer["provider"]["id"]) == config["provider"]
            and (answer["vars"], answer["testCase"]["assert"]) == (test["vars"], test["assert"])
        ]
        assert len(answers) == 3
        assert row["accuracy"] == pytest.approx(sum(answers) / 3)
    assert {row["accuracy"] for row in rows} - {0.0, 1.0}


def test_tests_with_the_same_variables_and_other_assertions_stay_apart():
    (run, *_) = read_runs([str(LOGS / "capitals.json")])
    assert len({sample.example for sample in run.samples}) == 5
    assert len({str(answer["vars"]) for answer in plain()["results"]["results"]}) == 4


def test_files_are_known_by_what_they_hold(tmp_path):
    assert is_log(LOGS / "*.json")
    assert not is_log(write(tmp_path / "table.json", [{"evalId": 1}]))


@pytest.mark.parametrize("share", [0.2, 0.99])
def test_a_cut_file_is_said_to_be_one(tmp_path, share):
    whole = (LOGS / "capitals.json").read_bytes()
    cut = tmp_path / "cut.json"
    cut.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(TableError, match=r"'cut\.json' is no complete log of promptfoo"):
        read_runs([str(cut)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 4}, r"its version is 4, and riskpilot reads 3\. Convert it to a table"),
        ({"results": []}, "it has no results"),
        ({"results": [1]}, "results is no list of objects"),
        ({"results": [{"promptIdx": 9}]}, "promptIdx is none of its 4 prompts but 9"),
        ({"results": [{"promptIdx": 0}]}, r"it has no provider\.id"),
        ({"results": [{"promptIdx": 0, "provider": {"id": "a"}}]}, "it has no success"),
        ({"prompts": [{}]}, "promptIdx is none"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, changes, words):
    data = plain()
    data["results"] |= changes
    with pytest.raises(TableError, match=words):
        read_runs([write(tmp_path / "log.json", data)])


def test_an_answer_that_ended_in_an_error_is_refused(tmp_path):
    data = plain()
    data["results"]["results"][0]["failureReason"] = 2
    with pytest.raises(TableError, match=r"ended in an error\. Run the evaluation again"):
        read_runs([write(tmp_path / "log.json", data)])


def test_providers_that_only_differ_in_their_settings_need_labels(tmp_path):
    data = plain()
    for answer in data["results"]["results"]:
        answer["provider"] = {"id": "echo", "label": ""}
    with pytest.raises(TableError, match=r"two called 'echo' with the same prompt\. Give each"):
        read_runs([write(tmp_path / "log.json", data)])
