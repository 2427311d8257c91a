"""The figures of the watch are made from the monitors that they name, and meet their targets."""

import json

import numpy as np

from experiments import watch_choices, watch_delay


def test_the_alarms_called_mapie_are_those_of_mapie():
    assert watch_delay.agrees_with_mapie()


def test_a_cell_compares_three_monitors_on_the_same_streams(monkeypatch):
    monkeypatch.setattr(watch_delay, "LATEST", 2_000)
    row = watch_delay.measure(0.1, 0.06, 0.3, "0/1", change=500, n=20, seed=0)
    assert row["watch"] < row["single"] < row["mapie"]
    assert row["change_off_by"] < 20


def test_stored_delays_meet_the_targets():
    stored = json.loads(watch_delay.OUT.read_text())
    assert watch_delay.targets(stored["delays"]) == stored["targets"]
    to_single, mapie_to_watch = stored["targets"].values()
    assert to_single <= 1.15
    assert mapie_to_watch >= 3
    assert stored["mapie_agrees"]
    assert stored["microseconds"]["one label"] < 60  # a million updates in a minute


def test_what_was_tried_includes_the_watch_as_it_is():
    stored = json.loads(watch_choices.OUT.read_text())
    assert [row["tried"] for row in stored["tried"]] == list(watch_choices.monitors(1))
    stream = watch_choices.cell_stream(0.06, 0.3, 300, 800, "0/1", 10, 0)
    for name, monitor in watch_choices.monitors(10).items():
        alarms = monitor(stream)
        assert alarms.shape == (10,), name
        assert np.median(alarms) > 300, name
