"""What the report says, read without a browser."""

import numpy as np

import riskpilot as rp
from riskpilot.selection.report import trials
from tests.pictures import scenes


def text(selection, tmp_path):
    page = selection.report(tmp_path / "page.html").read_text(encoding="utf-8")
    return page[: page.index('<script type="application/json"')]


def test_the_headline_is_a_statement_of_confidence_and_the_sentence_names_its_guarantee(tmp_path):
    page = text(scenes.thresholds(), tmp_path).replace("\N{NO-BREAK SPACE}", " ")
    assert "<h1>With 90 % confidence, error is at or below 10 % on new data</h1>" in page
    assert (
        "In at most 10 % of all draws of validation and calibration data does this procedure "
        "choose a configuration that breaks a limit." in page
    )
    assert "handed_over is 0.4838 on validation data; nothing is promised of it" in page
    assert "limit is kept" not in page


def test_nothing_certified_is_said_first_and_names_the_closest(tmp_path):
    page = text(scenes.nothing(), tmp_path)
    assert "Nothing could be certified" in page
    assert "Do not rely on any of these configurations" in page
    assert "Closest: {&#x27;index&#x27;: 0}" in page
    assert "What this does not say" in page
    for words in ("as small as the limits allow", "The promise is about", "promise does not cover"):
        assert words not in page
        assert words in text(scenes.thresholds(), tmp_path)


def test_losses_of_another_range_are_told_in_their_units(tmp_path):
    rng = np.random.default_rng(0)
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("latency", 30.0, high=100.0)], minimize="cost"),
        validation={"latency": rng.uniform(0, 40, (3, 500)), "cost": [1.0, 2.0, 3.0]},
        calibration={"latency": rng.uniform(0, 40, (3, 500))},
    )
    assert "latency at or below 30<" in text(selection, tmp_path).replace(",", "<")


def test_ledger_lists_every_question_and_marks_this_one(tmp_path):
    study = scenes.study(8)
    rp.select(study)
    selection = rp.select(study, problem=scenes.PROBLEM.with_limits(error=0.3))
    page = text(selection, tmp_path)
    assert "This is question 2" in page
    assert "error &lt;= 0.2" in page
    assert "<tr class=chosen><td>2</td>" in page


def test_a_long_table_keeps_what_was_tested_and_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "MOST_ROWS", 120)
    selection = scenes.two_risks(n=200)
    page = text(selection, tmp_path)
    assert page.count("<tr") - page.count("<thead") <= 125
    assert "80 of 200 configurations are left out" in page
    assert page.count(">chosen<") == 1


def test_page_names_no_address_to_load_from(tmp_path):
    page = text(scenes.thresholds(), tmp_path)
    assert "http" not in page
    assert "src=" not in page


def counted(problem, errors, n):
    """Select one configuration from counts."""
    name = problem.risks[0].name
    return rp.select_from_counts(
        problem,
        validation={name: ([errors], [n]), "cost": [1.0]},
        calibration={name: ([errors], [n])},
    )


def test_words_write_numbers_of_the_choice_with_six_digits_and_the_certificate_all(tmp_path):
    rng = np.random.default_rng(0)
    error, cost = rng.random((1, 4_000)) < 0.05, np.ones(1)
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1)], minimize="cost"),
        validation={"error": error[:, :2_000], "cost": cost},
        calibration={"error": error[:, 2_000:]},
        configs=[{"rate": 0.6055879974838839}],
    )
    page = text(selection, tmp_path)
    before, after = page.split("How to check it")
    assert "here {&#x27;rate&#x27;: 0.605588}, has error" in before
    assert "&#x27;rate&#x27;: 0.60558799" not in before
    assert "0.6055879974838839" in after


def test_no_promise_is_rounded_to_the_unsafe_side(tmp_path):
    above = rp.Problem([rp.Risk("error", 0.10004)], minimize="cost", delta=0.00012345)
    page = text(counted(above, 1_000_200_000, 10**10), tmp_path).replace("\N{NO-BREAK SPACE}", " ")
    assert "<h1>With 99.987655 % confidence, error is at or below 10.004 % on new data" in page
    assert "In at most 0.012345 % of all draws" in page
    assert "<dt>limit</dt><dd>10.004 %</dd>" in page
    assert "<dt>upper bound</dt><dd>10.004 %</dd>" in page  # and not 10.01 %
    below = rp.Problem([rp.Risk("accuracy", at_least=0.89996)], minimize="cost")
    page = text(counted(below, 100_020_000, 10**9), tmp_path).replace("\N{NO-BREAK SPACE}", " ")
    assert "accuracy is at or above 89.996 % on new data" in page


def test_a_tiny_delta_is_no_certainty(tmp_path):
    tiny = rp.Problem([rp.Risk("error", 0.1)], minimize="cost", delta=1e-15)
    selection = counted(tiny, 10, 10_000)
    shown = [str(selection), selection._repr_html_(), text(selection, tmp_path)]
    assert all("With probability at least 1 - 1e-15 over the draw" in words for words in shown)
    assert "<h1>With 1 - 1e-15 confidence, error is" in shown[-1]
    assert not any("100%" in words for words in shown[:2])


def test_a_page_says_where_the_questions_to_a_table_are_counted(tmp_path):
    assert "No ledger was kept: whoever asks again must count." in text(scenes.nothing(), tmp_path)
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1)], minimize="cost"),
        validation={"error": np.zeros((1, 80)), "cost": [1.0]},
        calibration={"error": np.zeros((1, 90))},
        ledger=tmp_path / "ledger.json",
    )
    assert "listed in the ledger beside the table of losses" in text(selection, tmp_path)
