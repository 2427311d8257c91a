"""Options and quiet for the whole suite."""

import optuna
import pytest
from threadpoolctl import threadpool_limits

import riskpilot as rp
from benchmarks.postgres import NoServerError, server
from tests.pictures import browser, scenes


def pytest_addoption(parser):
    parser.addoption(
        "--long",
        action="store_true",
        help="Run the Monte Carlo tests of tests/guarantees with 20 times the replications, "
        "the fuzz kit with 10 times the calls, and the tests that are marked as long.",
    )


def pytest_collection_modifyitems(config, items):
    """Leave tests that are marked as long to ``make test-long``, and count them as deselected."""
    if config.getoption("--long"):
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session")
def effort(request):
    """By how much to multiply the replications of a Monte Carlo test."""
    return 20 if request.config.getoption("--long") else 1


@pytest.fixture(autouse=True, scope="session")
def quiet_optuna():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(autouse=True, scope="session")
def one_thread_per_worker():
    """Matrices are tiny here, and the cores belong to the workers of the suite."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="session")
def one_browser():
    """One browser for all pages."""
    if browser.find() is None:
        pytest.fail(f"Tests of pages need Chromium: {browser.HINT}. Leave them: -m 'not browser'")
    with browser.opened() as opened:
        yield opened


@pytest.fixture
def chrome(one_browser):
    """The browser, without what it noted for the test before."""
    browser.forget(one_browser)
    return one_browser


@pytest.fixture(scope="session")
def search():
    """One search for all figures."""
    return rp.select(scenes.study())


@pytest.fixture(scope="session")
def postgres():
    """The address of a server; a machine that has none fails these tests, and skips nothing."""
    try:
        with server() as address:
            yield address
    except NoServerError as error:
        pytest.fail(str(error))
