"""A lock beside a file says who holds it, whatever the last holder wrote there."""

import os

import pytest

from riskpilot.study.storages.locks import file_lock

fcntl = pytest.importorskip("fcntl")


@pytest.mark.parametrize("before", [None, "", "7 short", f"123456789 {'x' * 50}"])
def test_the_name_of_a_holder_covers_that_of_the_last_one(tmp_path, before):
    path, place = tmp_path / "study.db", tmp_path / "study.db.write-lock"
    if before is not None:
        place.write_text(before)
    seen = []
    for _ in range(2):
        with file_lock(path, "write"):
            seen.append(place.read_text())
    names = [text.split() for text in seen]
    assert [int(process) for process, _ in names] == [os.getpid()] * 2
    assert names[0][1] != names[1][1]  # those who wait see that the holder has changed
    assert len(set(map(len, seen))) == 1


def test_a_lock_is_made_readable_for_whoever_may_read_the_files_beside_it(tmp_path):
    (tmp_path / "study.db").touch()
    with file_lock(tmp_path / "study.db", "write"):
        modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 1
