"""Tables on disk come back as they were written, or not at all."""

import zipfile

import numpy as np
import pytest

from riskpilot.bench.tasks import table
from riskpilot.errors import TableError

ARRAYS = {
    "bits": np.packbits(np.arange(24) % 3 == 0),
    "losses": np.linspace(0, 1, 12).reshape(3, 4),
    "name": np.array(["a", "bc"]),
    "scalar": np.float32(2.5),
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "table.npz"
    table.save(file, ARRAYS, {"epochs": 50, "model": "MLP"})
    return file


def test_a_table_comes_back_as_it_was_written(path):
    stored = table.load(path)
    assert stored.settings == {"epochs": 50, "model": "MLP"}
    assert set(stored.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert stored[name].dtype == array.dtype
        assert np.array_equal(stored[name], array)


def test_the_same_arrays_give_the_same_bytes(path, tmp_path):
    table.save(tmp_path / "again.npz", ARRAYS, {"model": "MLP", "epochs": 50})
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("changed", ["losses", "settings"])
def test_a_change_is_found(path, changed):
    with np.load(path) as archive:
        content = dict(archive)
    content[changed] = content[changed] + 1 if changed == "losses" else np.array("{}")
    np.savez(path, **content)
    with pytest.raises(TableError, match="changed or damaged"):
        table.load(path)


def test_pickled_objects_are_refused(tmp_path):
    file = tmp_path / "pickled.npz"
    np.savez(file, losses=np.array([{"a": 1}], dtype=object))
    with pytest.raises(TableError, match="no pickled objects"):
        table.load(file)


def test_what_is_not_an_archive_is_refused(tmp_path):
    file = tmp_path / "text.npz"
    file.write_text("not a table")
    with pytest.raises(TableError, match="cannot be read"):
        table.load(file)


def test_a_truncated_file_is_refused(path):
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TableError, match="cannot be read"):
        table.load(path)


def test_damaged_bytes_are_refused(path):
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("losses.npy")
    content[member.header_offset + 60] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(TableError):
        table.load(path)


def test_a_plain_npz_lacks_its_digest(tmp_path):
    np.savez(tmp_path / "plain.npz", losses=np.zeros(3))
    with pytest.raises(TableError, match="lacks settings and digest"):
        table.load(tmp_path / "plain.npz")


def test_a_missing_file_and_a_missing_array_say_what_to_do(path, tmp_path):
    with pytest.raises(TableError, match="training script"):
        table.load(tmp_path / "absent.npz")
    with pytest.raises(TableError, match="holds bits, losses, name, scalar"):
        table.load(path)["labels"]


def test_reserved_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Rename the array"):
        table.save(tmp_path / "table.npz", {"digest": np.zeros(1)}, {})
