"""The built site: no warnings, nothing from a network, every name and figure found, it fits."""

import html
import json
import runpy
import subprocess
import sys

import pytest
from pages import ROOT, blocks_of
from test_reference import public

from docs import gallery, phone, site_speed
from riskpilot.bench.tasks import NAMES, SECOND_FORMS
from tests.pictures import browser

problems = runpy.run_path(str(ROOT / "docs" / "check_site.py"))["problems"]
RESULTS = ROOT / "experiments" / "results"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site once for all tests of this file."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_site_needs_no_network_and_all_links_have_targets(site):
    assert (site / "guides" / "auditing.html").exists()
    assert not list(site.rglob("*.py"))
    assert list(problems(site)) == []


def test_the_search_knows_every_public_name(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    known = {word for entry in index["docs"] for word in phone.plain(entry["title"]).split()}
    assert not [path for path in public() if path.rpartition(".")[2] not in known]


def test_every_task_has_a_page_and_the_overview_has_every_claim(site):
    for task in set(NAMES) - set(SECOND_FORMS):
        assert (site / "experiments" / "tasks" / f"{task}.html").exists()
    overview = (RESULTS / "README.md").read_text(encoding="utf-8")
    lines = (RESULTS / "claims.csv").read_text(encoding="utf-8").splitlines()
    assert overview.count("| `riskpilot bench") == len(lines) - 1


def test_the_gallery_shows_every_figure(site):
    page = html.unescape((site / "gallery.html").read_text(encoding="utf-8"))
    captions = {one.path: one.caption for one in gallery.pictures()}
    folders = (ROOT / "docs" / "images", RESULTS / "figures")
    for path in (path for folder in folders for path in folder.iterdir()):
        drawing = path.suffix == ".svg" and 'class="rp"' in path.read_text(encoding="utf-8")
        assert drawing or path.name in page, f"{path.name} is missing"
        assert path.stem.endswith("-dark") or captions[path] in page


def test_no_line_of_code_is_longer_than_what_fits(site):
    """The browser's test below looks at one page; all pages keep to the same length."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in blocks_of(page):
            if block.language == "python":
                assert max(map(len, block.code.splitlines()), default=0) <= 100, page.name


@pytest.mark.browser
def test_code_is_not_clipped_and_a_phone_does_not_scroll_sideways(site, chrome):
    pages = ("index", "experiments/index", "experiments/tasks/pruning", "compares")
    with site_speed.served(site) as address:
        for page in pages:
            wide = site_speed.laid_out(chrome, f"{address}/{page}.html", site_speed.WIDE)
            assert not wide["clipped"], page
            phone_ = site_speed.laid_out(chrome, f"{address}/{page}.html", site_speed.PHONE)
            assert not phone_["sideways"], page


# Figures, and what the names of rows measure once a table was scrolled to its end.
ON_A_PHONE = """
const shown = (each) => ({width: each.getBoundingClientRect().width,
                          left: each.getBoundingClientRect().left});
const tables = [...document.querySelectorAll('table[data-numbers]')];
tables.forEach((each) => { each.closest('.md-typeset__scrollwrap').scrollLeft = 9999; });
return {figures: [...document.querySelectorAll('img[src*="figures/"]')].map(shown),
        names: tables.map((each) => shown(each.querySelector('td')))};
"""


@pytest.mark.browser
def test_figures_and_rows_of_every_task_can_be_read_on_a_phone(site, chrome):
    pages = sorted((site / "experiments" / "tasks").glob("*.html"))
    assert len(pages) > 5
    with site_speed.served(site) as address:
        for page in pages:
            place = f"{address}/experiments/tasks/{page.name}"
            assert not site_speed.laid_out(chrome, place, site_speed.PHONE)["sideways"], page.name
            found = chrome.execute_script(ON_A_PHONE)
            assert found["figures"]
            assert found["names"]
            # Letters of 8 points on a figure of 11 inches; one as wide as the phone had a third.
            assert all(one["width"] >= 800 for one in found["figures"]), page.name
            assert all(one["width"] >= 90 and one["left"] >= 0 for one in found["names"]), page.name


# Colours of a sheet, and tables that reach beyond it.
ON_PAPER = """
const style = getComputedStyle(document.documentElement);
const beyond = (each) => each.getBoundingClientRect().right > document.body.clientWidth
    || each.scrollWidth > each.clientWidth + 1;
return {scheme: document.body.dataset.mdColorScheme, background: style.backgroundColor,
        colours: getComputedStyle(document.body).colorScheme,
        filters: [...document.images].map((each) => getComputedStyle(each).filter),
        cut: [...document.querySelectorAll('.md-content table')].filter(beyond).length};
"""
SHEET = 605  # pixels between the margins of a sheet of A4


@pytest.mark.browser
@pytest.mark.parametrize(
    "page", ["experiments/tasks/fairness", "experiments/tasks/vae", "compares"]
)
def test_a_page_is_printed_on_white_with_every_column(site, chrome, page):
    browser.view(chrome, SHEET)
    with site_speed.served(site) as address, browser.paper(chrome, "dark"):
        chrome.get(f"{address}/{page}.html")
        browser.wait(chrome, lambda c: c.execute_script(ON_PAPER)["scheme"] == "slate", 60)
        found = chrome.execute_script(ON_PAPER)
    assert (found["background"], found["colours"]) == ("rgb(255, 255, 255)", "light")
    assert set(found["filters"]) <= {"none"}
    assert found["cut"] == 0


@pytest.mark.browser
def test_the_search_box_is_there_and_finds_a_name_on_pages_from_disk(site, chrome):
    browser.view(chrome, site_speed.WIDE)
    chrome.get((site / "index.html").as_uri())
    box = chrome.find_element("css selector", "input.md-search__input")
    browser.wait(chrome, lambda _: box.is_displayed(), 60)
    box.send_keys("select_from_counts")
    found = (
        "return document.querySelector('.md-search-result__item h2, .md-search-result__item h1')"
    )
    browser.wait(chrome, lambda c: c.execute_script(f"{found} !== null"), 60)
    items = "return document.querySelector('.md-search-result__list').innerText"
    assert "select_from_counts" in chrome.execute_script(items)


def test_rows_of_sentences_become_cards_and_columns_of_numbers_do_not():
    head = "<tr><th>claim</th><th>figure</th><th>command</th></tr>"
    row = "<tr><td>{}</td><td>2</td><td>3</td></tr>"
    named = phone.with_labels(f"<table>{head}{row.format('a sentence ' * 5)}</table>")
    assert named.startswith("<table data-numbers data-names>")  # a long name beside numbers
    row = "<tr><td>1</td><td>{}</td><td>3</td></tr>"
    cards = phone.with_labels(f"<table>{head}{row.format('a sentence ' * 5)}</table>")
    assert cards.startswith("<table data-cards>")
    assert '<td data-label="claim">1</td>' in cards
    numbers = phone.with_labels(f"<table>{head}{row.format('1')}</table>")
    assert numbers.startswith("<table data-numbers>")
    assert "data-label" not in numbers


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('<script src="https://host/x.js"></script>', "fetches https://host/x.js"),
        ('<link rel="stylesheet" href="//host/x.css">', "fetches //host/x.css"),
        ('<img src="http://host/x.png">', "fetches http://host/x.png"),
        ("<style>@import 'https://host/x.css'</style>", "fetches https://host/x.css"),
        ('<pre class="mermaid"></pre>', "mermaid"),
        ('<a href="gone.html">x</a>', "does not exist"),
        ('<a href="#gone">x</a>', "no such place"),
    ],
)
def test_check_of_the_site_finds(content, complaint, tmp_path):
    (tmp_path / "index.html").write_text(f'<p id="here">{content}</p>')
    (found,) = problems(tmp_path)
    assert complaint in found


def test_check_of_the_site_allows_links_out_and_links_that_have_targets(tmp_path):
    (tmp_path / "index.html").write_text(
        '<p id="here"><a href="https://host">x</a> <a href="#here">x</a> <a href="b.css">x</a></p>'
    )
    (tmp_path / "b.css").write_text("p { background: url(x.png) }")
    assert list(problems(tmp_path)) == []
