"""One page of each kind for all tests of pages."""

import pytest

from tests.pictures import written_pages


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: write(folder / f"{name}.html") for name, write in written_pages.KINDS.items()}
