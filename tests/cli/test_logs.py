"""``--verbose``: the log goes to standard error, and standard output keeps results alone."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from riskpilot.cli.app import app
from riskpilot.tables import save_losses

COMMANDS = typer.main.get_command(app).commands
QUESTION = ["--risk", "error<=0.3", "--minimize", "cost", "--no-ledger"]


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """A table of one configuration that keeps its limit, under an odd name."""
    few = np.random.default_rng(0).random((1, 300)) < 0.1
    return save_losses(
        tmp_path / "a\x1b[31mred.npz",
        validation={"error": few, "cost": np.ones(1)},
        calibration={"error": few[:, ::-1]},
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_option(name: str) -> None:
    assert any("--verbose" in parameter.opts for parameter in COMMANDS[name].params)


def test_the_log_is_on_standard_error_and_the_result_alone_on_standard_output(losses: Path) -> None:
    quiet = CliRunner().invoke(app, ["select", str(losses), *QUESTION, "--json"])
    told = CliRunner().invoke(app, ["select", str(losses), *QUESTION, "--json", "--verbose"])
    assert quiet.exit_code == told.exit_code == 0
    assert json.loads(told.stdout).keys() == json.loads(quiet.stdout).keys()
    assert "INFO" not in quiet.stderr
    steps = ["select with Python", "Reading and testing", "Plan frozen: 1 of 1", "ended after"]
    places = [told.stderr.index(step) for step in steps]
    assert places == sorted(places)
    assert "Calibration opened: 1 of 1" in told.stderr


def test_the_log_is_text_without_control_characters(losses: Path) -> None:
    told = CliRunner().invoke(app, ["select", str(losses), *QUESTION, "-v"])
    assert told.exit_code == 0
    assert "\x1b" not in told.stderr
    assert r"a\x1b[31mred.npz" in told.stderr


def test_the_log_hides_passwords() -> None:
    told = CliRunner().invoke(app, ["select", "foo://ann:s3cret@host/db", "--verbose"])
    assert told.exit_code == 2
    assert "ended after" in told.stderr
    assert "s3cret" not in told.output


def test_the_logger_is_as_it_was_after_a_command(losses: Path) -> None:
    logger = logging.getLogger("riskpilot")
    before = (logger.level, list(logger.handlers))
    CliRunner().invoke(app, ["select", str(losses), *QUESTION, "--verbose"])
    CliRunner().invoke(app, ["plan", "--risk", "nonsense", "--verbose"])
    assert (logger.level, list(logger.handlers)) == before
