"""Pages for everybody: by keyboard, by ear, on a phone, on paper, and in an old browser."""

import itertools

import plotly.graph_objects as go
import pytest
from selenium.webdriver.common.keys import Keys

from riskpilot import plots
from tests.pictures import browser, written_pages

pytestmark = pytest.mark.browser


@pytest.fixture
def show(chrome, written):
    def open_page(name, *, width=1100, scheme="light"):
        browser.complaints(chrome)
        browser.colour_scheme(chrome, scheme)
        browser.view(chrome, width, mobile=width < 640)
        chrome.get(written[name].as_uri())
        browser.drawn(chrome)
        return chrome

    return open_page


def long_but(*quick, of):
    """Parameters of which all but a few are left to the long tests."""
    return [pytest.param(*case, marks=() if case in quick else (pytest.mark.long,)) for case in of]


SCHEMES = list(itertools.product(written_pages.KINDS, ("light", "dark")))


@pytest.mark.parametrize(
    ("name", "scheme"), long_but(("nothing", "light"), ("watch", "dark"), of=SCHEMES)
)
def test_axe_finds_no_serious_barrier(show, name, scheme):
    assert browser.barriers(show(name, scheme=scheme)) == {}


def press(chrome, *keys):
    """Press keys in the first figure, and return what is read aloud."""
    box = chrome.find_element("css selector", ".drawing")
    box.send_keys(*keys)
    return chrome.execute_script("return document.getElementById('spoken').textContent")


def test_keys_lead_through_the_points_of_a_figure_and_each_is_read(show):
    chrome = show("nothing")
    first = press(chrome, Keys.ARROW_RIGHT)
    second = press(chrome, Keys.ARROW_RIGHT)
    assert "1 of 8: error 0." in first
    assert "2 of 8: error 0." in second
    assert press(chrome, Keys.END).startswith(first.split(",")[0] + ", 8 of 8")
    assert press(chrome, Keys.ARROW_RIGHT).startswith(first.split(",")[0] + ", 8 of 8")
    assert press(chrome, Keys.HOME) == first
    other = press(chrome, Keys.ARROW_DOWN)
    assert other.split(",")[0] != first.split(",")[0]
    shown = "return document.querySelectorAll('.drawing .hovertext').length"
    assert chrome.execute_script(shown) == 1
    press(chrome, Keys.ESCAPE)
    browser.wait(chrome, lambda c: c.execute_script(shown) == 0)


def test_figures_say_what_they_show_and_can_be_reached(show):
    chrome = show("certified")
    for box in chrome.find_elements("css selector", ".drawing"):
        label = box.get_attribute("aria-label")
        assert "against" in label
        assert "Drawn: " in label
        assert box.get_attribute("tabindex") == "0"
    assert "chosen (1 point)" in chrome.page_source


@pytest.mark.parametrize(
    "name", long_but(("certified",), of=[(name,) for name in written_pages.KINDS])
)
def test_panels_stand_below_each_other_on_a_phone(show, name):
    chrome = show(name, width=390)
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= 390
    for areas in chrome.execute_script(
        "return [...document.querySelectorAll('.drawing')].map(box =>"
        " [...box.querySelectorAll('.plot .scatterlayer')].map(layer => layer.closest('.plot'))"
        " .map(plot => plot.getBoundingClientRect()).map(r => [r.left, r.top, r.bottom]))"
    ):
        for (_, _, bottom), (_, top, _) in itertools.pairwise(areas):
            assert top > bottom - 40
    sizes = chrome.execute_script(
        "return [...document.querySelectorAll('.drawing')].map(box => box._fullLayout._size.w)"
    )
    assert min(sizes) > 180  # the rest are numbers and titles of the axes
    assert browser.complaints(chrome) == []


def test_a_page_that_is_made_wide_again_has_its_panels_side_by_side(show):
    chrome = show("certified", width=390)
    domains = "return document.querySelector('.drawing')._fullLayout.xaxis2.domain[0]"
    assert chrome.execute_script(domains) == 0
    browser.view(chrome, 1100)
    browser.wait(chrome, lambda c: c.execute_script(domains) > 0.4, 60)
    browser.view(chrome, 390, mobile=True)
    browser.wait(chrome, lambda c: c.execute_script(domains) == 0, 60)


# Whether each figure is as wide as its place and as high as it was drawn, with its heights.
FIT = """
const boxes = [...document.querySelectorAll(".drawing")];
const fits = (box) => box.clientWidth === box._fullLayout.width
  && box.clientHeight === box._fullLayout.height && box.clientHeight >= 300;
return [boxes.every(fits), boxes.map((box) => box.clientHeight)];
"""


def test_figures_keep_their_height_when_the_page_gets_another_width(chrome, written, tmp_path):
    plain = plots.save_figure(go.Figure(go.Scatter(y=[1, 2])), tmp_path / "plain.html")
    for path in (written["nothing"], plain):
        heights = []
        browser.view(chrome, 1000)
        chrome.get(path.as_uri())
        browser.drawn(chrome)
        for width in (1000, 900, 1000, 700, 1000):
            browser.view(chrome, width)
            wide = f"return innerWidth === {width}"
            browser.wait(chrome, lambda c, wide=wide: c.execute_script(wide), 60)
            browser.wait(chrome, lambda c: c.execute_script(FIT)[0], 60)
            heights.append(chrome.execute_script(FIT)[1])
        assert heights == [heights[0]] * 5


@pytest.mark.parametrize("name", ["nothing", "watch"])
def test_two_figures_stand_on_a_sheet_of_letter_paper(show, name):
    chrome = show(name)
    with browser.paper(chrome, "light"):
        browser.view(chrome, 718)  # A4 is narrower than Letter, and higher
        browser.wait(chrome, lambda c: c.execute_script(FIT)[0], 60)
        chrome.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        drawn = "return document.querySelector('.drawing')._fullLayout.width === 680"
        browser.wait(chrome, lambda c: c.execute_script(drawn), 60)
        edges = chrome.execute_script(
            "return [...document.querySelectorAll('section:has(.figure)')]"
            ".map(place => place.getBoundingClientRect()).map(r => [r.top, r.bottom])"
        )
        assert len(edges) >= 2
        for (top, _), (_, bottom) in itertools.pairwise(edges):
            assert bottom - top < 960  # 11 inches without a margin of half an inch on both ends


def test_a_browser_that_cannot_unpack_says_so_and_keeps_the_text(chrome, written):
    source = "delete window.DecompressionStream"
    script = chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        chrome.get(written["nothing"].as_uri())
        browser.drawn(chrome)
        text = chrome.find_element("css selector", "body").text
    finally:
        chrome.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert "This browser cannot draw the figure" in text
    assert "What it would show: The trade-off" in text
    assert "not certified" in text  # the table of every configuration is there
