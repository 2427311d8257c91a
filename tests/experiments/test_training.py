"""The comparison of searches that train anew for each trial."""

from dataclasses import replace

import optuna
import pytest

from experiments import trained_tasks
from experiments.trained_tasks import DATA, TASKS
from experiments.training import COMPARISON, main

ADULT = "boosting on Adult, 0.175"


def _small(seed):
    return replace(trained_tasks.boosting_on_adult(seed, 0.175), n_trials=3)


def test_a_task_trains_anew_for_every_configuration_and_its_start_is_safe():
    task = TASKS[ADULT](0)
    risk, gap = task.on_test(task.safe)
    assert risk < 0.175
    assert gap > 0.1
    assert len(task.suggest(optuna.trial.FixedTrial(task.safe))) == 7
    assert task.on_test({**task.safe, "fair": 1.0})[1] < gap


def test_data_that_is_not_there_is_asked_for(monkeypatch):
    monkeypatch.delenv(DATA, raising=False)
    with pytest.raises(SystemExit, match=f"Set {DATA}"):
        TASKS["network on MNIST, 0.12"](0)


@pytest.mark.parametrize("search", ["paper's search", "GPSampler", "CMA-ES"])
def test_every_search_begins_at_the_safe_configuration(search):
    task = _small(0)
    configs = COMPARISON.searches[search](task, 0)
    assert len(configs) == 3
    assert configs[0] == task.safe


def test_outcomes_that_were_kept_are_not_searched_again(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(TASKS, ADULT, _small)
    kept, out = tmp_path / "kept.jsonl", tmp_path / "out.json"
    kept.write_text(
        '[{"task": "boosting on Adult, 0.175", "seed": 0, "search": "random"}, '
        '{"free": 0.125, "risk": 0.1, "certified": true}]\n'
    )
    options = ["--task", ADULT, "--search", "random", "--seeds", "1", "--jobs", "1"]
    main([*options, "--kept", str(kept), "--out", str(out)])
    assert '"random": 0.125' in out.read_text()
    assert len(kept.read_text().splitlines()) == 1
    assert "above_limit" in capsys.readouterr().out
