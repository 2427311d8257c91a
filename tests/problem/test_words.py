"""Every place that shows a risk says which statistic is limited, and which way."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

import riskpilot as rp
from riskpilot.cli.plan import show_plans
from riskpilot.cli.select import show_candidates
from riskpilot.cli.status import show_status
from riskpilot.plots import search_history
from riskpilot.study.status import study_status

SLOW = "latency <= 50 (95% quantile)"
PRECISE = "precision >= 0.6"
PROBLEM = rp.Problem(
    [
        rp.Risk("latency", 50, high=100, statistic=rp.Quantile(0.95)),
        rp.Risk("precision", at_least=0.6),
    ],
    minimize="cost",
)


def evaluate(trial):
    rng = np.random.default_rng(trial.number)
    scale = trial.suggest_float("scale", 10, 40)

    def losses(m):
        flagged = rng.random(m) < 0.5
        wrong = np.where(flagged, rng.random(m) < 0.1, np.nan)
        return {"latency": scale * rng.random(m), "precision": wrong}

    return rp.Evaluation({**losses(300), "cost": -scale}, losses(400))


@pytest.fixture(scope="module")
def study():
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=4)
    return study


@pytest.fixture(scope="module")
def selection(study):
    return rp.select(study)


def shown(show, *told):
    console = Console(file=io.StringIO(), width=200)
    show(console, *told)
    return console.file.getvalue()


def test_the_promise_the_message_and_the_card_name_the_statistic(selection):
    assert selection.config is not None
    for text in (selection.certificate.promise, str(selection.problem)):
        assert f"{SLOW} and {PRECISE}" in text
    for text in (str(selection), selection._repr_html_()):
        assert "latency (95% quantile)" in text
        assert "1 - precision" in text


def test_the_ledger_and_the_status_name_the_statistic(study, selection):
    assert f"{SLOW} and {PRECISE}" in rp.ledger(study)[0]["problem"]
    status = study_status(study)
    stored = json.loads(json.dumps(status.to_json()))
    assert [risk["says"] for risk in stored["risks"]] == [SLOW, PRECISE]
    assert [risk["title"] for risk in stored["risks"]] == [
        "latency (95% quantile)",
        "1 - precision",
    ]
    text = shown(show_status, status)
    assert "latency (95% quantile)" in text
    assert "1 - precision" in text


def test_numbers_under_the_name_of_a_risk_say_that_they_are_losses(study, selection):
    """A precision of .9 stands in files as a loss of .1, under a name that says so."""
    stored = json.loads(selection.certificate.to_json())
    losses = [one["precision"] for one in stored["calibration_loss"]]
    losses += [candidate["validation_loss"]["precision"] for candidate in stored["candidates"]]
    (_, precision) = study_status(study).to_json()["risks"]
    losses += [precision["lowest_loss"], precision["highest_loss"]]
    assert all(0.02 < loss < 0.2 for loss in losses)
    assert precision["loss_limit"] == stored["problem"]["risks"][1]["limit"] == 0.4
    assert stored["problem"]["risks"][1]["complement"] is True
    assert 0 <= precision["loss_region"][0] < precision["loss_region"][1] < 0.6
    bare = {"precision", "validation", "calibration", "means", "values"}
    assert not bare & {*stored, *stored["candidates"][0], *precision}


def test_the_report_names_the_statistic_and_calls_it_no_mean(selection, tmp_path):
    page = selection.report(tmp_path / "r.html").read_text(encoding="utf-8")
    text = page[: page.index('<script type="application/json"')]
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    assert "latency is at or below 50 (95% quantile) and precision is at or above 60 %" in text
    assert "<h3>latency (95% quantile)</h3>" in text
    assert "latency (95% quantile), calibration" in text
    assert "the mean on" not in text


def test_tables_and_figures_name_the_statistic(study, selection):
    assert "latency (95% quantile), calibration" in shown(show_candidates, selection)
    plans = rp.plan_calibration(PROBLEM, 400)
    text = shown(show_plans, plans, PROBLEM.delta)
    assert SLOW in text
    assert "mean of precision of at least" in text
    figures = [
        selection.figure(),
        search_history(selection.validation),
    ]
    for figure in figures:
        assert "95% quantile" in figure.to_json()
    assert study.metric_names == ["latency (95% quantile)", "1 - precision", "cost"]


def test_suggested_limits_are_in_the_words_that_set_them(study):
    open_study = rp.create_study(rp.Problem([rp.Risk("precision")], "cost"), seed=0)

    def precise(trial):
        found = evaluate(trial)
        return rp.Evaluation(
            {name: found.validation[name] for name in ("precision", "cost")},
            {"precision": found.calibration["precision"]},
        )

    open_study.optimize(rp.objective(open_study, precise), n_trials=3)
    suggestion = rp.suggest_limits(open_study)["precision"]
    assert 0.8 < suggestion.lowest <= suggestion.highest < 1
    assert 0.5 < suggestion.tightest_limit < suggestion.highest
    assert "limits up to" in str(suggestion)
    limited = rp.set_limits(open_study, precision=suggestion.tightest_limit)
    assert limited.risks[0].limit == pytest.approx(1 - suggestion.tightest_limit)
