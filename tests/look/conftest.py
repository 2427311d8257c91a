"""One browser for all pages, and one search for all figures."""

import pytest

import riskpilot as rp
from tests.look import browser, scenes


@pytest.fixture(scope="session")
def chrome():
    if browser.find() is None:
        pytest.fail(f"Tests of pages need Chromium: {browser.HINT}. Leave them: -m 'not browser'")
    with browser.opened() as opened:
        yield opened


@pytest.fixture(scope="session")
def search():
    return rp.select(scenes.study())
