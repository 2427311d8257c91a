"""Figures hold what they promise to show, whatever the problem."""

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

import riskpilot as rp
from riskpilot import plots
from riskpilot.errors import PlotError
from riskpilot.plots import drawing
from riskpilot.plots.points import places_of_numbers
from tests.pictures import browser, scenes


def names(figure):
    return {trace.name for trace in figure.data}


def shapes(figure):
    return [(shape.type, shape.xref, shape.x0, shape.x1) for shape in figure.layout.shapes]


def test_trade_off_of_a_search_shows_every_part_of_the_paper_picture(search):
    figure = search.figure()
    assert {
        "region of interest",
        "largest calibration value that passes",
        "limit",
        "front",
        "initial",
        "proposed",
        "certified",
        "chosen",
        "reference point",
    } <= names(figure)
    assert ("line", "x", 0.2, 0.2) in shapes(figure)


def test_trade_off_numbers_the_tested_in_testing_order(search):
    texts = [t for trace in search.figure().data for t in (trace.text or ()) if str(t).isdigit()]
    assert sorted(map(int, texts)) == list(range(1, len(search.candidates) + 1))


def test_no_number_hides_another_one_or_a_point():
    points = np.array([[0.5, 0.5], [0.51, 0.5], [0.51, 0.52], [0.9, 0.1], [0.9, 0.1]])
    places = places_of_numbers(
        points, {8: 0, 9: 1, 10: 2, 11: 3, 12: 4}, (400.0, 400.0), np.full(5, 6.0)
    )
    assert places[8] != "top right"  # other points are there
    assert places[11] == "top right"
    assert places[12] != places[11]  # at the same place, on another side
    line = np.linspace(0, 1, 60)
    crowd = np.column_stack([np.repeat(line, 60), np.tile(line, 60)])
    assert places_of_numbers(crowd, {1: 1830}, (400.0, 400.0), np.full(3600, 6.0)) == {}


def test_long_names_of_configurations_are_in_labels_and_not_beside_the_axis():
    selection = scenes.two_risks(n=30)
    chosen = selection.certificate.chosen
    long = [{**config, "prompt": "answer in one short sentence"} for config in selection.candidates]
    figure = plots.risk_bounds(selection.plan, selection.result, chosen, long)
    marks = [name for trace in figure.data if trace.y and trace.y[0] for name in trace.y]
    assert all("prompt" not in name for name in marks)
    assert f"<b>{chosen + 1} ★</b>" in marks
    assert any("prompt=answer" in text for trace in figure.data for text in trace.text or ())
    assert figure.layout.yaxis.type == figure.layout.yaxis2.type == "category"


def test_each_of_several_risks_has_a_panel_with_its_limit():
    figure = scenes.two_risks(n=30).figure()
    limits = [shape for shape in shapes(figure) if shape[0] == "line"]
    assert ("line", "x", 0.15, 0.15) in limits
    assert ("line", "x2", 0.3, 0.3) in limits


def test_many_candidates_are_not_all_numbered():
    texts = [t for trace in scenes.thresholds().figure().data for t in (trace.text or ())]
    assert 5 <= sum(str(t).isdigit() for t in texts) <= 12


def test_p_values_stand_in_testing_order_with_smallest_ones_at_the_floor():
    selection = scenes.thresholds()
    figure = plots.p_value_sequence(selection.plan, selection.result, selection.candidates)
    *points, line = figure.data
    drawn = sorted((x, y) for trace in points for x, y in zip(trace.x, trace.y, strict=True))
    assert line.name == "delta = 0.1"  # in the legend, where no point covers it
    assert not figure.layout.annotations
    assert [y for _, y in drawn] == pytest.approx(np.maximum(selection.p_values, 1e-12))


def test_bounds_of_the_choice_end_before_the_limit():
    selection = scenes.two_risks(n=30)
    chosen = selection.certificate.chosen
    figure = plots.risk_bounds(
        selection.plan, selection.result, chosen, selection.candidates, [chosen]
    )
    for trace, limit in zip([figure.data[0], figure.data[3]], (0.15, 0.3), strict=True):
        assert trace.x[0] + trace.error_x.array[0] < limit


def test_shown_candidates_surround_the_decision():
    selection = scenes.thresholds()
    chosen = selection.certificate.chosen
    shown = plots.shown_positions(selection.result, chosen)
    assert chosen in shown
    assert int(np.argmin(selection.result.passed)) in shown
    assert len(shown) == 8


def test_history_steps_down_to_the_best_that_keeps_the_limits(search):
    figure = plots.search_history(search.validation, search.background)
    best = next(t for t in figure.data if t.name.startswith("best"))
    assert list(best.y) == sorted(best.y, reverse=True)
    assert {"initial", "proposed"} <= names(figure)


def test_a_running_search_is_drawn_from_validation_alone(search):
    figure = plots.search_plane(search.validation, search.background)
    assert not names(figure) & {"certified", "chosen", "tested, not certified"}


def test_power_rises_with_the_sample_and_falls_with_the_risk():
    problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    figure = plots.power_curves(problem, true_risks=[0.05, 0.08], n_calibration=1000)
    safe, close = (np.array(trace.y) for trace in figure.data[:2])
    assert (safe >= close - 0.02).all()
    assert safe[-1] > 0.99
    assert safe[0] < 0.5


def test_power_needs_a_risk_of_the_problem_below_its_limit():
    problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    with pytest.raises(PlotError, match="Name one of them"):
        plots.power_curves(problem, "eror")
    with pytest.raises(rp.ProblemError, match=r"lies in \[0, 0.1\), but it is 0.2"):
        plots.power_curves(problem, true_risks=[0.2])
    with pytest.raises(PlotError, match="Leave it out"):
        plots.power_curves(problem, true_risks=["0.05"])


def test_power_of_a_risk_that_is_better_when_larger_is_drawn_in_its_words():
    precise = rp.Problem([rp.Risk("precision", at_least=0.9)], minimize="cost")
    wrong = rp.Problem([rp.Risk("error", 0.1)], minimize="cost")
    figure = plots.power_curves(precise, true_risks=[0.95])
    assert figure.data[0].name == "true precision 0.95"
    assert figure.data[0].y == plots.power_curves(wrong, true_risks=[0.05]).data[0].y
    assert "a precision at the limit" in figure.to_json()
    assert plots.power_curves(precise).data[0].name == "true precision 0.95"  # half of the losses
    with pytest.raises(rp.ProblemError, match=r"lies in \(0.9, 1\], but it is 0.05"):
        plots.power_curves(precise, true_risks=[0.05])


def test_both_risks_at_once_shades_where_all_limits_are_kept():
    selection = scenes.two_risks(n=30)
    figure = plots.risk_plane(
        selection.plan, selection.result, selection.validation, selection.certificate.chosen
    )
    box = next(shape for shape in figure.layout.shapes if shape.type == "rect")
    assert (box.x1, box.y1) == (0.15, 0.3)


def test_names_are_words_and_never_markup():
    nasty = ("<b>one</b>", "two<br>", "<a href='x'>cost</a>")
    figure = scenes.two_risks(nasty, n=30).figure()
    told = json.dumps(figure.to_plotly_json(), default=str)
    assert "<b>one" not in told
    assert "<a href" not in told


def test_themes_change_the_paper_and_leave_the_original(search):
    figure = search.figure()
    dark = plots.with_theme(figure, "dark")
    assert dark.layout.template.layout.paper_bgcolor != figure.layout.template.layout.paper_bgcolor
    with pytest.raises(PlotError, match="light, dark, neutral"):
        plots.with_theme(figure, "sepia")


def test_a_figure_needs_an_ending_it_can_be_written_as(tmp_path):
    with pytest.raises(PlotError, match="one of these endings"):
        plots.save_figure(go.Figure(), tmp_path / "figure.bmp")


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import kaleido_that_nobody_has as kaleido", "pip install"),
        ("class ChromeNotFoundError(Exception): pass\nraise ChromeNotFoundError", "apt install"),
        ("raise SystemExit(3)", "ended without a word"),
    ],
)
def test_a_missing_tool_is_named_with_the_way_to_get_it(tmp_path, monkeypatch, code, hint):
    monkeypatch.setattr(drawing, "_DRAW", code)
    with pytest.raises(PlotError, match=hint):
        plots.save_figure(go.Figure(), tmp_path / "figure.png")


def test_a_browser_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    pytest.importorskip("kaleido")
    silent = tmp_path / "chromium"
    silent.write_text("#!/bin/sh\nexec sleep 15\n")
    silent.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(silent))
    monkeypatch.setattr(drawing, "_SECONDS", 3.0)
    with pytest.raises(PlotError, match="did not answer within 3 seconds, 2 times"):
        plots.save_figure(go.Figure(), tmp_path / "figure.png")


def test_a_page_with_a_figure_sends_nothing_to_others(tmp_path):
    path = plots.save_figure(go.Figure(), tmp_path / "figure.html")
    assert "showSendToCloud: false" in path.read_text(encoding="utf-8")


@pytest.mark.browser
def test_figures_are_written_as_pictures_without_a_network(search, tmp_path):
    if browser.find() is None:
        pytest.fail(f"Pictures need Chromium: {browser.HINT}")
    png = plots.save_figure(search.figure(), tmp_path / "a.png", width=400, height=300, scale=1)
    svg = plots.save_figure(search.figure(), tmp_path / "a.svg", theme="dark")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert b"reference point" in svg.read_bytes()


def test_hover_texts_round_to_the_safe_side():
    """An upper bound of 0.10004 is no 0.1, and a p-value of 0.1000009 is no 0.1."""
    problem = rp.Problem([rp.Risk("error", 0.10004)], minimize="cost", delta=0.1000004)
    errors = ([1_000_200_000], [10**10])
    selection = rp.select_from_counts(
        problem, validation={"error": errors, "cost": [1.0]}, calibration={"error": errors}
    )
    (bound,) = (
        text
        for trace in plots.risk_bounds(selection.plan, selection.result, 0).data
        for text in trace.text or ()
    )
    assert bound == "10,000,000,000 examples<br>upper bound 0.10004"
    result = replace(selection.result, log_p=np.log([[0.1000009]]))
    figure = plots.p_value_sequence(selection.plan, result)
    assert [text for trace in figure.data for text in trace.text or ()] == ["p = 0.100001"]
    assert "delta = 0.1000004" in names(figure)


def test_the_chance_of_a_plan_is_never_rounded_up():
    problem = rp.Problem([rp.Risk("error", 0.1)], minimize="cost", delta=0.1000004)
    figure = plots.power_curves(problem, true_risks=[0.05])
    (curve,) = figure.data
    shown = [float(text) for text in curve.text]
    assert all(text <= 100 * chance + 1e-9 for text, chance in zip(shown, curve.y, strict=True))
    nearly = [text for text, chance in zip(shown, curve.y, strict=True) if 0.995 < chance < 0.999]
    assert set(nearly) == {99.0}
    assert "delta = 0.1000004: a risk at the limit" in figure.layout.annotations[0].text


def test_the_boundary_of_labels_is_told_as_counts():
    """A share of 0.02499 that is shown as 0.025 would not pass."""
    figure = plots.labels_ahead(np.array([40, 80]), 100, 0.1, 0.05, np.linspace(0, 1, 100))
    (boundary,) = (trace for trace in figure.data if trace.name == "boundary")
    assert set(boundary.customdata) == {0, 1}
    assert "%{customdata:,}" in boundary.hovertemplate
    assert "%{y" not in boundary.hovertemplate
