"""A real PostgreSQL server, and one study problem, for every test of this folder."""

import pytest

from benchmarks.postgres import NoServerError, server


@pytest.fixture(scope="session")
def postgres():
    """The address of a server; a machine that has none fails these tests, and skips nothing."""
    try:
        with server() as address:
            yield address
    except NoServerError as error:
        pytest.fail(str(error))


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def storage(request, tmp_path):
    """Where a study is kept and its losses go, as arguments of `create_study` and `load_study`."""
    if request.param == "sqlite":
        return {"storage": f"sqlite:///{tmp_path}/study.db"}
    if request.param == "journal":
        return {"storage": f"{tmp_path}/study.log"}
    address = request.getfixturevalue("postgres")
    return {"storage": address, "artifact_store": tmp_path / "losses"}
