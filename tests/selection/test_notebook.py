"""Cards for notebooks: complete, and every name escaped."""

import pytest

from tests.pictures import scenes

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


def test_card_of_nothing_certified_names_the_closest():
    assert "Closest: {&#x27;index&#x27;: 0}" in scenes.nothing()._repr_html_()
