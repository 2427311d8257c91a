"""The report in a real browser: drawn, quiet, sortable, searchable, dark, narrow."""

import json

import pytest

import riskpilot as rp
from tests.pictures import browser, scenes

pytestmark = pytest.mark.browser

NASTY = ("<script>alert(1)</script>", "a & b </script>", '"cost" \'<img src=x onerror=alert(2)>')


@pytest.fixture(scope="module")
def pages(tmp_path_factory, search):
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "table": scenes.thresholds(),
        "two risks": scenes.two_risks(),
        "search": search,
        "nothing": scenes.nothing(),
        "nasty": scenes.two_risks(NASTY, n=20),
    }
    return {
        name: selection.report(folder / f"{i}.html")
        for i, (name, selection) in enumerate(made.items())
    }


@pytest.fixture
def show(chrome, pages):
    def open_page(name, *, width=1100, mobile=False, scheme="light"):
        browser.complaints(chrome)
        browser.requests(chrome)
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, width, mobile=mobile)
        chrome.get(pages[name].as_uri())
        browser.drawn(chrome)
        return chrome

    return open_page


def column(chrome, number):
    return chrome.execute_script(
        "return [...document.querySelectorAll('#trials tbody tr')].filter(r => !r.hidden)"
        ".map(r => r.cells[arguments[0]].textContent)",
        number,
    )


def paper(chrome):
    return chrome.execute_script(
        "return [getComputedStyle(document.body).backgroundColor,"
        " document.querySelector('.js-plotly-plot')._fullLayout.paper_bgcolor]"
    )


@pytest.mark.parametrize("name", ["table", "two risks", "search", "nothing", "nasty"])
def test_page_draws_every_figure_without_complaint_or_network(show, name):
    chrome = show(name)
    boxes, drawn = chrome.execute_script(
        "return [document.querySelectorAll('.figure').length,"
        " document.querySelectorAll('.figure .main-svg').length]"
    )
    assert boxes >= 3
    assert drawn >= boxes
    assert browser.complaints(chrome) == []
    assert browser.requests(chrome) == []


def test_page_is_small_and_shows_its_text_at_once(show, pages):
    assert pages["two risks"].stat().st_size <= 1.5e6
    chrome = show("two risks")
    assert len(column(chrome, 0)) == 200
    painted = chrome.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert painted < 2_000


def test_nobodys_names_become_markup(show):
    chrome = show("nasty")
    assert chrome.execute_script("return document.querySelectorAll('img').length") == 0
    told = chrome.execute_script("return document.querySelector('.promise').textContent")
    for name in NASTY[:2]:
        assert name in told


def test_table_sorts_numbers_as_numbers_both_ways(show):
    chrome = show("table")
    click = "document.querySelectorAll('#trials th button')[arguments[0]].click()"
    chrome.execute_script(click, 3)  # the error on validation
    values = [float(text) for text in column(chrome, 3)]
    assert values == sorted(values)
    chrome.execute_script(click, 3)
    values = [float(text) for text in column(chrome, 3)]
    assert values == sorted(values, reverse=True)
    head = "return document.querySelectorAll('#trials th')[3].getAttribute('aria-sort')"
    assert chrome.execute_script(head) == "descending"


def test_untested_rows_stay_at_the_end_of_a_sort_by_p_value(show):
    chrome = show("two risks")
    last = chrome.execute_script("return document.querySelectorAll('#trials th').length") - 1
    for _ in range(2):
        chrome.execute_script(
            "document.querySelectorAll('#trials th button')[arguments[0]].click()", last
        )
        values = column(chrome, last)
        assert "" not in values[: values.index("")]
        assert set(values[values.index("") :]) == {""}


def test_search_shows_the_rows_that_hold_every_word(show):
    chrome = show("two risks")
    write = (
        "const box = document.getElementById('search'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input'))"
    )
    chrome.execute_script(write, "chosen WIDE")
    assert column(chrome, 1) in ([], ["chosen"])
    chrome.execute_script(write, "chosen")
    assert column(chrome, 1) == ["chosen"]
    count = chrome.execute_script("return document.getElementById('count').textContent")
    assert count == "1 of 200 shown"
    chrome.execute_script(write, "")
    assert len(column(chrome, 1)) == 200


def test_page_and_figures_follow_the_readers_colours(show):
    chrome = show("search", scheme="dark")
    assert paper(chrome) == ["rgb(22, 25, 29)", "#16191d"]
    browser.colour_scheme(chrome, "light")
    browser.wait(chrome, lambda c: paper(c) == ["rgb(255, 255, 255)", "#ffffff"])


@pytest.mark.parametrize("name", ["two risks", "search", "nasty", "nothing"])
def test_a_narrow_page_scrolls_only_downwards(show, name):
    chrome = show(name, width=360, mobile=True)
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= 360


def test_print_is_light_and_whole(show):
    chrome = show("search", scheme="dark")
    printed = chrome.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 20_000
    assert paper(chrome)[1] == "#16191d"  # and back again on the screen


def test_bars_are_printed_where_backgrounds_are_not_and_no_card_is_cut(show):
    chrome = show("search", width=717)
    with browser.paper(chrome, "light"):
        adjusted = (
            "return getComputedStyle(document.querySelector('.scale .mean')).printColorAdjust"
        )
        assert chrome.execute_script(adjusted) == "exact"
        right = "return document.querySelector('.card:last-child').getBoundingClientRect().right"
        assert chrome.execute_script(right) <= 717 - 1


def test_saved_certificate_is_the_certificate(show, search):
    chrome = show("search")
    link = chrome.execute_script("return document.querySelector('a.save').href")
    text = chrome.execute_async_script(
        "const done = arguments[1]; done(atob(arguments[0].split(',')[1]))", link
    )
    assert rp.Certificate.from_json(text) == search.certificate
    assert json.loads(text)["chosen"] is not None


def test_page_of_200_trials_opens_in_two_seconds_of_work(pages):
    """Of the processor, in a fresh browser: other work on the machine does not count."""
    with browser.opened() as fresh:
        fresh.get("about:blank")
        fresh.execute_cdp_cmd("Performance.enable", {})
        fresh.get(pages["two risks"].as_uri())
        assert browser.work(fresh) < 2
        browser.drawn(fresh)
        assert browser.work(fresh) < 4  # with every figure
