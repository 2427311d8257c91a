"""The replay's cache: no result outlives the code that made it."""

import pytest

from riskpilot.bench.cache import source_digest
from riskpilot.bench.jobs import CORE


def test_a_module_that_does_not_exist_is_an_error():
    with pytest.raises(ModuleNotFoundError, match=r"bench\.uniform"):
        source_digest(["bench.uniform"])


def test_every_module_of_the_core_exists():
    assert len(source_digest(CORE)) == 64


def test_a_package_stands_for_every_module_inside_it():
    assert source_digest(["bench.baselines"]) != source_digest(["bench.baselines.grid"])
