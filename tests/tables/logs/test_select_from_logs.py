"""From logs of an evaluation tool to a certificate, by the command line and in Python."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app

FIXTURES = Path(__file__).parent / "fixtures"
BY_THE_TOOL = json.loads((FIXTURES / "inspect_ai" / "read_by_the_tool.json").read_text())


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Copy the logs into a folder of their own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURES / "inspect_ai", "logs")
    shutil.copytree(FIXTURES / "lm_eval", "results")
    shutil.copytree(FIXTURES / "promptfoo", "promptfoo")


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.usefixtures("logs")
def test_logs_of_inspect_ai_are_selected_from_and_the_certificate_is_verified():
    asked = ["logs/terse-*.eval", "--risk", "error<=0.1", "--minimize", "cost"]
    result = run("select", *asked, "--out", "certificate.json")
    assert result.exit_code == 0, result.output
    certificate = json.loads(Path("certificate.json").read_text())
    chosen = certificate["candidates"][certificate["chosen"]]
    assert chosen["config"]["model"] == "sums/medium"
    assert (certificate["n_validation"], certificate["n_calibration"]) == (20, 40)
    assert certificate["table"]["split"] == pytest.approx(1 / 3)
    assert isinstance(certificate["table"]["draw"], int)
    assert run("verify", "certificate.json", "--losses", "logs/terse-*.eval").exit_code == 0
    assert run("verify", "certificate.json", "--losses", "logs/terse-small.eval").exit_code != 0


@pytest.mark.usefixtures("logs")
def test_losses_of_the_selection_are_those_that_the_tool_reads():
    problem = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
    selection = rp.select_from_frame(
        problem, "logs/terse-*.eval", config=["config"], example="example", split=1 / 3
    )
    assert selection.config["model"] == "sums/medium"
    samples = BY_THE_TOOL["terse-medium.eval"]
    wrong = sum(sample["scores"]["match"] != "C" for sample in samples)
    (validated, place) = next(
        (candidate["validation_loss"], place)
        for place, candidate in enumerate(selection.certificate.candidates)
        if candidate["config"]["model"] == "sums/medium"
    )
    calibrated = float(selection.result.means[place, 0])
    assert round(20 * validated["error"] + 40 * calibrated) == wrong


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("results/*/samples_sums_*.jsonl", ["-r", "error<=0.9", "--minimize", "acc_error"]),
        ("promptfoo/repeated.json", ["-r", "error<=0.97", "--minimize", "cost", "--split", "0.2"]),
        ("logs/repeated.json", ["-r", "error<=0.97", "--minimize", "tokens"]),
    ],
)
def test_logs_of_every_tool_are_selected_from(path, words):
    result = run("select", path, *words, "--out", "certificate.json")
    assert result.exit_code == 0, result.output
    assert run("verify", "certificate.json", "--losses", path).exit_code == 0


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("logs/*.eval", "every configuration needs"),  # some were asked fewer questions
        ("logs/nothing-*.eval", "no file"),
        ("results/*/samples_*.jsonl", "error"),  # of two tasks
    ],
)
def test_logs_that_do_not_go_together_end_in_a_sentence(path, words):
    result = run("select", path, "--risk", "error<=0.1", "--minimize", "cost")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert words in " ".join(result.output.split())


@pytest.mark.usefixtures("logs")
def test_another_question_to_the_same_logs_keeps_the_draw_and_is_counted():
    asked = ["logs/terse-*.eval", "--minimize", "cost", "--out", "certificate.json"]
    tables, numbers = [], []
    for limit in ("0.1", "0.2", "0.1"):
        run("select", *asked, "--risk", f"error<={limit}")
        certificate = json.loads(Path("certificate.json").read_text())
        tables.append(certificate["table"])
        numbers.append(certificate["use"]["number"])
    assert tables[0] == tables[1] == tables[2]
    assert numbers == [1, 2, 1]
