"""The page of a watch: what it says, and that a browser draws it without a network."""

import numpy as np
import pytest

import riskpilot as rp
from tests.kits.watched import CASES
from tests.pictures import browser


def watched(name, days=20, change=12):
    case, rng = CASES[name], np.random.default_rng(0)
    watch = rp.Watch(case.certificate())
    for day in range(1, days + 1):
        labels = case.safe(rng, 100) if day < change else case.draw(rng, 100, True)
        watch.update(labels, at=f"2026-03-{day:02d}")
    return watch


def text(watch, tmp_path):
    page = watch.report(tmp_path / "page.html").read_text(encoding="utf-8")
    return page[: page.index('<script type="application/json"')]


def test_the_verdict_comes_first_and_says_what_it_means(tmp_path):
    broken, fine = (text(watched("mean", change=day), tmp_path) for day in (12, 99))
    assert "✗ Alarm" in broken
    assert "Do not rely on the promise any more" in broken
    assert "2026-03-12" in broken
    assert "✓ No alarm" in fine
    assert "No alarm is no proof" in fine
    assert "at most 5%" in broken
    assert "at most 5%" in fine
    assert "error: the limit was shown to be broken" in broken
    assert "with probability at least 95%" in " ".join(fine.split())


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_certificate_has_a_page(name, tmp_path):
    watch = watched(name)
    page = text(watch, tmp_path)
    risk = watch.risks[CASES[name].risk.name]
    assert f"{risk.estimate:.4g}" in page
    assert all(part.group in page for part in risk.groups)
    assert ("random order" in page) == ("gap" in name or name == "ratio")


def test_names_from_outside_are_shown_as_text(tmp_path):
    risk = rp.Risk("<b>error</b>", 0.1, statistic=rp.WorstGroup())
    rng = np.random.default_rng(0)
    given = [
        {"<b>error</b>": np.zeros((1, 300)), "groups": rng.choice(["<i>a</i>", "b"], 300)}
        for _ in range(2)
    ]
    selection = rp.select_from_losses(
        rp.Problem([risk], "cost"), validation={**given[0], "cost": [1.0]}, calibration=given[1]
    )
    watch = rp.Watch(selection.certificate)
    watch.update({"<b>error</b>": np.ones(100)}, groups=["<i>a</i>"] * 100)
    page = watch.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<i>a</i>" not in page
    assert "<b>error</b>" not in page


def test_a_page_that_cannot_be_written_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(rp.RiskpilotError, match="cannot be written"):
        watched("mean", days=1).report(tmp_path / "no" / "page.html")


def test_a_watch_without_labels_has_a_page_and_no_verdict_yet(tmp_path):
    page = text(rp.Watch(CASES["mean"].certificate()), tmp_path)
    assert '<p class="verdict open">No labels yet</p>' in page
    assert "<h1>Nothing is known of any limit yet</h1>" in page
    assert "✓" not in page
    assert '<body class="">' in page
    assert "over time" not in page


@pytest.mark.browser
def test_a_browser_draws_the_page_wide_and_on_a_phone_without_a_network(chrome, tmp_path):
    page = watched("worst group").report(tmp_path / "page.html")
    for width, mobile in ((1100, False), (390, True)):
        browser.view(chrome, width, mobile=mobile)
        chrome.get(page.as_uri())
        browser.drawn(chrome)
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= width
        lines = "return document.querySelectorAll('.js-line').length"
        assert chrome.execute_script(lines) >= 8
    assert browser.complaints(chrome) == []
    assert browser.requests(chrome) == []
