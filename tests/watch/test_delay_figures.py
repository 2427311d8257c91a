"""The figures of the watch are made from the monitors that they name, and meet their targets."""

import json
import math
import re

import numpy as np

from experiments import watch_choices, watch_delay, watch_judged


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


def test_the_guide_gives_the_stored_delays():
    stored = json.loads(watch_delay.OUT.read_text())["delays"]
    guide = (watch_delay.OUT.parents[2] / "docs" / "guides" / "watching.md").read_text("utf-8")
    lines = re.findall(
        r"^\| (0\.\d+) \| (from the start|[\d,]+ labels at 0.06) \| (.*) \|$", guide, re.M
    )
    assert len(lines) == 6
    for after, past, cells in lines:
        change = 0 if past == "from the start" else int(past.split()[0].replace(",", ""))
        (row,) = [
            row
            for row in stored
            if (row["limit"], row["after"], row["losses"]) == (0.1, float(after), "0/1")
            and row["change"] == change
            and row["before"] in (None, 0.06)
        ]
        names = ("watch", "single", "mapie", "mapie_whole_level")
        expected = [f"{math.floor(row[name] + 0.5):,}" for name in names]
        assert cells.split(" | ") == expected, (after, past)


def test_the_guide_gives_the_stored_delays_with_a_judge():
    stored = json.loads(watch_judged.OUT.read_text())["rows"]
    guide = (watch_judged.OUT.parents[2] / "docs" / "guides" / "watching.md").read_text("utf-8")
    found = re.findall(r"^\| (no judge|0, a useless one|\.\d) \| (\d+) \| (\d+) \|$", guide, re.M)
    words = {"no judge": None, "0, a useless one": 0.0}
    assert len(found) == len(watch_judged.CORRELATIONS)
    for name, *cells in found:
        correlation = words[name] if name in words else float(name)
        rows = [row for row in stored if row["correlation"] == correlation]
        assert cells == [f"{math.floor(row['delay'] + 0.5)}" for row in rows], name


def test_a_judge_brings_the_alarm_forward():
    alone, helped = (watch_judged.measure(0, r, 30) for r in (None, 0.8))
    assert helped < 0.8 * alone
