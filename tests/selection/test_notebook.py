"""Cards for notebooks: complete, and every name escaped."""

import numpy as np
import pytest

import riskpilot as rp
from tests.pictures import scenes, written_pages

NASTY = ("<b>one</b>", "a & b", "<i>cost</i>")


@pytest.mark.parametrize("what", ["problem", "selection", "certificate"])
def test_cards_escape_every_name(what):
    selection = scenes.two_risks(NASTY, n=20)
    shown = {
        "problem": selection.problem,
        "selection": selection,
        "certificate": selection.certificate,
    }[what]._repr_html_()
    assert "<b>one" not in shown
    assert "&lt;b&gt;one" in shown


def test_card_of_a_selection_says_what_is_promised_and_what_was_seen(search):
    card = search._repr_html_()
    assert "Certified" in card
    assert "With probability at least 90%" in card
    assert "on validation data" in card


def plan_of(names, configs=None):
    """Freeze a plan of two candidates."""
    risk, free = names
    rng = np.random.default_rng(0)
    error = np.array([[0.03], [0.05]])
    return rp.freeze(
        rp.Problem([rp.Risk(risk, limit=0.1)], minimize=free),
        validation={risk: rng.random((2, 500)) < error, free: np.array([2.0, 1.0])},
        configs=configs,
    )


def test_cards_of_a_plan_and_of_its_labels_escape_every_name():
    plan = plan_of(NASTY[::2], [{"<u>k</u>": "<s>v</s>"}, {"<u>k</u>": 1}])
    for shown in (plan._repr_html_(), rp.Calibration(plan, horizon=100)._repr_html_()):
        for markup in ("<b>one", "<i>cost", "<u>", "<s>"):
            assert markup not in shown
        assert "&lt;s&gt;v&lt;/s&gt;" in shown


def test_card_of_labels_says_where_each_candidate_stands():
    calibration = rp.Calibration(plan_of(("error", "cost")), horizon=300)
    assert calibration._repr_html_().count("needs labels") == 2
    zeros, ones = np.zeros((1, 200)), np.ones((1, 300))
    calibration.add({"error": zeros}, candidates=[0])
    assert calibration._repr_html_().count(">certified<") == 1
    calibration.add({"error": ones}, candidates=[1])
    shown = calibration._repr_html_()
    assert ">not certified<" in shown
    assert "needs labels" not in shown


def test_card_of_a_watch_says_in_words_what_its_colour_says():
    shown = written_pages.watched()._repr_html_()
    assert "alarm. error &lt;= 0.1 was shown to be broken" in shown


def test_card_of_nothing_certified_names_the_closest():
    assert "Closest: {&#x27;index&#x27;: 0}" in scenes.nothing()._repr_html_()
