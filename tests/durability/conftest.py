"""The storages that every test of this folder may ask for."""

import pytest


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def storage(request, tmp_path):
    """Where a study is kept and its losses go, as arguments of `create_study` and `load_study`."""
    if request.param == "sqlite":
        return {"storage": f"sqlite:///{tmp_path}/study.db"}
    if request.param == "journal":
        return {"storage": f"{tmp_path}/study.log"}
    address = request.getfixturevalue("postgres")
    return {"storage": address, "artifact_store": tmp_path / "losses"}
