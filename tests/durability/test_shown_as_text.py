"""Names that try to act: colours, links, markup and broken characters are shown as text."""

import json
import logging

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli import terminal
from riskpilot.cli.app import app
from riskpilot.common import for_programs
from riskpilot.errors import visible
from riskpilot.study import export_losses, study_status
from riskpilot.tables import save_losses

RED = "\x1b[31mred\x1b[0m"
LINK = "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\"
MARKUP = "[bold][link=http://evil.example]x[/link][/red]"
HTML = "<a href='http://evil.example'>x</a><script>alert(1)</script>"
TURNED = "a\u202eb"
HOSTILE = {
    "colours": RED,
    "links": LINK,
    "markup": MARKUP,
    "an open tag": "[/]",
    "html": HTML,
    "turned": TURNED,
    "C1 controls": "\x9b31m",
    "a bell and a line": "\x07\r\x08over",
}
# Names that a risk may have: all of it visible.
VISIBLE = [name for name in HOSTILE.values() if visible(name) == name]


def is_only_text(output):
    """Whether nothing in an output acts on a terminal; without one, riskpilot uses no colours."""
    return not any(one != "\n" and visible(one) != one for one in output)


def strict(text):
    """Read JSON that any reader takes."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    read = json.loads(text, parse_constant=refuse)
    json.dumps(read, ensure_ascii=False).encode("utf-8")
    return read


def study_of(place, name, risk="error"):
    """A study in which a name stands wherever people put names."""
    problem = rp.Problem([rp.Risk(risk, 0.3)], "cost")
    study = rp.create_study(problem, storage=place / "study.db", study_name=name, seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_categorical(name, [name, f"{name}2"])
        if trial.number == 2:
            raise RuntimeError(name)
        draws = np.random.default_rng(trial.number).random((2, 300)) < 0.05 + 0.4 * x
        return rp.Evaluation({risk: draws[0], "cost": 1 - x}, {risk: draws[1]})

    study.optimize(rp.objective(study, evaluate, on_error="record"), n_trials=6)
    return study


@pytest.mark.parametrize("case", HOSTILE)
def test_every_command_shows_names_choices_and_errors_as_text(case, tmp_path, caplog, chrome_free):
    name = HOSTILE[case]
    risk = name if name in VISIBLE else "error"
    with caplog.at_level(logging.DEBUG, logger="riskpilot"):
        study = study_of(tmp_path, name, risk)
    assert is_only_text(caplog.text.replace("\t", " "))
    folder = tmp_path / name.replace("/", "|").replace("\0", "")
    folder.mkdir()
    storage = str(tmp_path / "study.db")
    outputs = {}
    commands = {
        "status": ["status", storage],
        "status --json": ["status", storage, "--json"],
        "seal": ["seal", storage, "--out", folder / "seal.json"],
        "seal --json": ["seal", storage, "--out", folder / "seal.json", "--json"],
        "select": ["select", storage, "--out", folder / "c.json", "--report", folder / "r.html"],
        "select --json": ["select", storage, "--json"],
        "report": ["report", storage, "--out", folder / "r.html"],
        "verify": ["verify", folder / "c.json", "--losses", storage],
        "verify with a seal": [
            *("verify", folder / "c.json", "--losses", storage),
            *("--seal", folder / "seal.json", "--json"),
        ],
        "status again": ["status", storage],
    }
    for label, words in commands.items():
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, (label, result.output, result.exception)
        assert is_only_text(result.output), (label, result.output)
        outputs[label] = result.output
        if "--json" in words:
            strict(result.output)
    assert visible(name) in outputs["status"]
    for file in ("seal.json", "c.json"):
        strict((folder / file).read_text())
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<a href='http://evil" not in page
    table = export_losses(study, folder / "losses.npz")
    result = CliRunner().invoke(app, ["verify", str(folder / "c.json"), "--losses", str(table)])
    assert result.exit_code == 0, result.output
    assert is_only_text(result.output)


@pytest.fixture
def chrome_free(monkeypatch):
    """No terminal and no colours, whatever the tests run in."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize(
    "words",
    [
        ["status", "NAME"],
        ["status", "NAME.db"],
        ["status", "sqlite:///NAME.db"],
        ["select", "NAME.npz", "-r", "error<=0.1", "-m", "cost"],
        ["select", "NAME"],
        ["verify", "NAME", "--losses", "NAME"],
        ["plan", "-r", "NAME", "-n", "100"],
        ["plan", "-r", "NAME<=0.1", "-n", "100", "--true-risk", "NAME"],
        ["plan", "-r", "error<=0.1", "-n", "NAME"],
        ["report", "NAME.db", "--out", "NAME"],
        ["dashboard", "NAME.db"],
        ["live", "NAME.db"],
        ["demo", "--limit", "NAME"],
        ["NAME"],
        ["status", "a", "NAME"],
        ["status", "--NAME"],
    ],
)
def test_errors_of_commands_show_what_was_typed_as_text(words, case, chrome_free):
    typed = [word.replace("NAME", HOSTILE[case]) for word in words]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2, (result.output, result.exception)
    assert is_only_text(result.output), result.output


def test_paths_that_are_no_text_are_shown(tmp_path, chrome_free):
    name = b"\xff\xfe.db".decode("utf-8", "surrogateescape")
    result = CliRunner().invoke(app, ["status", str(tmp_path / name)])
    assert result.exit_code == 2
    assert "\\udcff" in result.output


def test_a_terminal_gets_colours_of_riskpilot_alone(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal.show_error(f"{LINK} {MARKUP}")
    terminal.show_table(terminal.output(), MARKUP, [MARKUP, LINK], [([RED, MARKUP], None)])
    with terminal.waiting(MARKUP):
        pass
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert "\x1b]8" not in text
        assert "[link=http://evil.example]" in text
    assert "\\x1b[31mred" in shown.out


def test_errors_of_the_library_obey_nothing():
    with pytest.raises(rp.RiskpilotError) as caught:
        raise rp.StudyError(f"name {RED} {TURNED} \ud800")
    assert str(caught.value) == "name \\x1b[31mred\\x1b[0m a\\u202eb \\ud800"


@pytest.mark.parametrize("choices", [[float("nan"), 1.0], [float("inf"), 1.0], ["\ud800", "b"]])
def test_choices_that_json_does_not_have_fail_their_trial_in_one_sentence(choices, tmp_path):
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    study = rp.create_study(problem, storage=tmp_path / "study.db", study_name="s", seed=0)

    def evaluate(trial):
        x = trial.suggest_categorical("x", choices)
        draws = np.random.default_rng(trial.number).random((2, 300)) < 0.1
        return rp.Evaluation(
            {"error": draws[0], "cost": float(x == choices[1])}, {"error": draws[1]}
        )

    study.optimize(rp.objective(study, evaluate, on_error="record"), n_trials=6)
    status = study_status(study)
    assert status.failures
    assert all("cannot be kept" in failure.error for failure in status.failures)
    result = CliRunner().invoke(app, ["status", str(tmp_path / "study.db"), "--json"])
    assert result.exit_code == 0, result.exception
    assert strict(result.output)["failures"]
    try:
        selection = rp.select(study)
    except rp.StudyError:
        return  # the space itself cannot be written
    strict(selection.certificate.to_json())


@pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used with")
def test_a_running_trial_with_odd_choices_is_listed(tmp_path):
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    study = rp.create_study(problem, storage=tmp_path / "study.log", study_name="s", seed=0)
    trial = study.ask()
    trial.suggest_categorical("x", [float("nan")])
    trial.suggest_categorical("y", ["\ud800\x1b[31m"])
    for words in (["status"], ["status", "--json"]):
        result = CliRunner().invoke(app, [words[0], str(tmp_path / "study.log"), *words[1:]])
        assert result.exit_code == 0, result.exception
        assert is_only_text(result.output)
    (running,) = strict(result.output)["running"]
    assert running["config"] == {"x": "nan", "y": "\\ud800\\x1b[31m"}


def test_configurations_of_a_table_are_strict_json(tmp_path):
    losses = {"error": np.zeros((1, 50)), "cost": np.zeros(1)}
    for odd in (float("nan"), "\ud800", 10**5000):
        with pytest.raises(rp.TableError, match="cannot be kept"):
            save_losses(
                tmp_path / "t.npz", validation=losses, calibration=losses, configs=[{"x": odd}]
            )


def test_notebook_cards_and_words_escape(tmp_path):
    study = study_of(tmp_path, HTML, HTML)
    selection = rp.select(study)
    for one in (selection, selection.certificate, selection.problem):
        assert "<script>" not in one._repr_html_()
    assert optuna.get_all_study_names(study._storage) == [HTML]


def test_what_programs_get_is_json_whatever_it_is():
    value = {"x": float("inf"), "\ud800": [RED, (1, {2})], "n": np.float64(0.5), "big": 10**5000}
    written = for_programs(value)
    assert written["x"] == "inf"
    assert written["\\ud800"] == [RED, [1, "{2}"]]
    strict(json.dumps(written, allow_nan=False))
