"""The demo: a real run in small, its files, and its numbers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.cli.demo import _moral
from riskpilot.demo.run import (
    QUICK,
    Demo,
    Habit,
    compare,
    fair_weights,
    load,
    parity_gap,
    run,
    write,
)
from riskpilot.tables import read_losses

SMALL = replace(QUICK, train=2_000, trials=7, trees=20, draws=60)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run(SMALL, seed=0)


def test_the_trade_off_is_real(demo: Demo) -> None:
    errors = [one.held_out.error.mean() for one in demo.trained]
    gaps = [one.held_out.gap for one in demo.trained]
    assert max(gaps) - min(gaps) > 0.08
    assert errors[int(np.argmin(gaps))] - min(errors) > 0.005


def test_the_same_seed_gives_the_same_run(demo: Demo) -> None:
    again = run(SMALL, seed=0)
    assert [one.config for one in again.trained] == [one.config for one in demo.trained]
    assert again.selection.certificate.plan_digest == demo.selection.certificate.plan_digest
    assert again.selection.config == demo.selection.config


def test_the_files_lead_to_the_same_selection(demo: Demo, tmp_path: Path) -> None:
    files = write(demo, tmp_path / "new" / "folder")
    assert {path.name for path in files.values()} == {
        "trade-off.html",
        "report.html",
        "certificate.json",
        "losses.npz",
    }
    certificate = rp.Certificate.load(files["certificate"])
    table = read_losses(files["losses"])
    assert rp.verify(certificate, validation=table.validation, calibration=table.calibration).ok
    picture = files["picture"].read_text()
    for what in ("reference point", "region of interest", "front"):
        assert what in picture
    assert 'src="http' not in picture, "the picture needs no network"


def test_certified_choices_break_the_limit_no_more_often_than_promised(demo: Demo) -> None:
    habits = compare(demo, SMALL, seed=0)
    margin = 3 * np.sqrt(0.1 * 0.9 / SMALL.draws)
    assert habits["riskpilot"].broken <= 0.1 + margin
    assert habits["usual"].chosen > 0
    assert habits == compare(demo, SMALL, seed=0)


def test_parts_of_the_data_do_not_overlap() -> None:
    data = load(SMALL, seed=3)
    rows = np.concatenate([data.train, data.validation, data.held_out])
    assert len(np.unique(rows)) == len(rows) == len(data.label)
    assert len(data.train) == SMALL.train


def test_reweighing_makes_label_and_group_independent() -> None:
    rng = np.random.default_rng(0)
    male = rng.random(5_000) < 0.7
    label = rng.random(5_000) < np.where(male, 0.3, 0.1)
    weights = fair_weights(label, male)
    rates = [np.average(label[group], weights=weights[group]) for group in (male, ~male)]
    assert rates[0] == pytest.approx(rates[1])
    assert parity_gap(label, male) > 0.15


def test_the_command_tells_the_whole_story(tmp_path: Path) -> None:
    arguments = ["demo", "--quick", "--trials", "8", "--out", str(tmp_path / "demo")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    for what in (
        "Plan: error <= 0.165",
        "Trials, on validation data",
        "With probability at least 90%",
        "Both choices on test data",
        "breaks the limit",
        "riskpilot verify",
    ):
        assert what in result.stdout
    certificate = tmp_path / "demo" / "certificate.json"
    assert json.loads(certificate.read_text())["chosen"] is not None
    check = ["verify", str(certificate), "--losses", str(tmp_path / "demo" / "losses.npz")]
    assert CliRunner().invoke(app, check).exit_code == 0


def test_a_limit_that_nothing_keeps_ends_without_a_choice(tmp_path: Path) -> None:
    arguments = ["demo", "--quick", "--trials", "2", "--limit", "0.1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    assert "Nothing could be certified" in result.stdout
    assert (tmp_path / "report.html").exists()


def test_no_lesson_is_drawn_from_draws_that_show_none() -> None:
    same = {name: Habit(broken=0.0, gap=0.05, chosen=1.0) for name in ("usual", "riskpilot")}
    assert "show no difference" in _moral(same, 0.1)
    usual = {**same, "usual": Habit(broken=0.4, gap=0.05, chosen=1.0)}
    assert "broke the limit in 40.0 % of the draws" in _moral(usual, 0.1)
