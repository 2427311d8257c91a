"""The rate of trials through a storage is measured by workers that really work."""

import json

import pytest

from benchmarks import throughput


@pytest.mark.long
def test_workers_finish_their_trials_and_tell_what_they_took(tmp_path, capsys):
    path = tmp_path / "figures.json"
    options = ["--trials", "20", "--workers", "2", "--storage", "sqlite", "--out", str(path)]
    throughput.main(options)
    found = json.loads(path.read_text())["throughput"]["sqlite, 2"]
    assert found["trials"] == 20
    assert found["per_second"] > 0
    assert 0 < found["lock_processor_ms"] <= found["processor_ms"]


def test_times_under_a_lock_are_noted():
    study, held = throughput.rp.create_study(throughput.PROBLEM), []
    with throughput._timed(throughput.sampler.exclusive, held)(study) as is_held:
        assert is_held()
    assert len(held) == 1
