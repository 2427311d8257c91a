"""One kit for every task: what it says of itself holds for its losses. And how tasks are found."""

import numpy as np
import optuna
import pytest

from riskpilot.bench import tasks
from riskpilot.errors import TableError


@pytest.fixture(params=tasks.NAMES, scope="module")
def task(request):
    return tasks.load(request.param)


@pytest.fixture(scope="module")
def configs(task):
    rng = np.random.default_rng(0)
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    drawn = [task.suggest(study.ask()) for _ in range(5)]
    from_grid = [task.grid[i] for i in rng.choice(len(task.grid), 3)] if task.grid else []
    return [*drawn, *from_grid, *([task.safe] if task.safe else [])]


def test_every_configuration_lies_in_the_space(task, configs):
    for config in configs:
        assert list(config) == list(task.space)
        for name, value in config.items():
            distribution = task.space[name]
            assert distribution._contains(distribution.to_internal_repr(value))


def test_losses_have_the_declared_names_sizes_and_ranges(task, configs):
    for split, size in task.size.items():
        for config in configs:
            losses = task.losses(split, config)
            assert set(losses) == {*task.problem.names, *task.problem.beside}
            for risk in task.problem.risks:
                values = np.asarray(losses[risk.name], dtype=float)
                assert values.shape == (size,)
                counted = values[~np.isnan(values)]
                assert risk.conditional or len(counted) == size
                assert np.all((counted >= risk.low) & (counted <= risk.high))


def test_asking_twice_gives_the_same(task, configs):
    for config in configs:
        for name, first in task.losses("held_out", config).items():
            again = task.losses("held_out", config)[name]
            assert np.array_equal(first, again, equal_nan=first.dtype.kind == "f")


def test_the_free_objective_on_all_rows_is_that_on_every_row(task, configs):
    for split, size in task.size.items():
        everything = np.arange(size)
        for config in configs:
            value = task.free(split, config, None)
            assert np.isfinite(value)
            assert task.free(split, config, everything) == pytest.approx(value, rel=1e-12)
            assert np.isfinite(task.free(split, config, everything[: size // 2]))


def test_limits_are_open_and_cells_fit_the_risks(task):
    assert task.problem.has_open_limits
    assert len(task.cells) >= 4
    for cell in task.cells:
        task.problem.with_limits(**dict(zip(task.problem.names, cell, strict=True)))
    assert 0 < task.n_startup_trials <= task.n_trials


def test_evaluate_replays_what_the_trial_proposes(task):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    trial = study.ask()
    rows = np.arange(0, task.size["held_out"], 2)
    evaluation = task.evaluate(trial, rows)
    names = {*task.problem.names, task.problem.minimize, *task.problem.beside}
    assert set(evaluation.validation) == set(evaluation.calibration) == names
    for name in task.problem.names:
        expected = task.losses("held_out", trial.params)[name][rows]
        found = evaluation.calibration[name]
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")


def test_grid_means_are_the_means_of_the_losses(task):
    if task.grid is None:
        with pytest.raises(TableError, match="has none"):
            task.grid_means("validation")
        return
    rows = np.arange(0, task.size["validation"], 3)
    means = task.grid_means("validation", rows)
    for index in (0, len(task.grid) // 2, len(task.grid) - 1):
        config = task.grid[index]
        losses = task.losses("validation", config)
        for risk in task.problem.risks:
            values = losses[risk.name][rows]
            expected = np.nanmean(values)
            if risk.needs_groups:
                groups = losses[risk.groups][rows]
                by_group = [values[groups == g].mean() for g in np.unique(groups)]
                lowest = min(by_group) if risk.name == "ddp" else 0.0
                expected = max(by_group) - lowest
            if task.name == "pruning_drop":
                expected -= losses["dense"][rows].mean()
            assert means[risk.name][index] == pytest.approx(expected, abs=1e-9)
        assert means[task.problem.minimize][index] == task.free("validation", config, rows)


def test_every_cell_lies_between_the_ends_of_the_trade_off(task, configs):
    if task.grid is None:  # too large a space for a grid: what was drawn has to do
        drawn = [task.losses("held_out", config)[task.problem.names[0]] for config in configs]
        means = [losses.mean() for losses in drawn]
        assert min(means) < min(cell[0] for cell in task.cells)
        return
    first = task.grid_means("held_out")[task.problem.names[0]]
    for cell in task.cells:
        assert np.nanmin(first) < cell[0] < np.nanmax(first)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(TableError, match="Did you mean 'fairness'"):
        tasks.load("fairnes")


def test_a_seed_where_there_is_none_is_refused():
    with pytest.raises(TableError, match="Leave it out"):
        tasks.load("celeba", seed=1)


def test_a_missing_table_names_the_place_and_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv(tasks.TABLES_VARIABLE, str(tmp_path))
    with pytest.raises(TableError, match="RISKPILOT_TABLES") as caught:
        tasks.load("selective_waterbirds")
    assert str(tmp_path / "waterbirds" / "table.npz") in str(caught.value)
    with pytest.raises(TableError, match="elsewhere"):
        tasks.load("vae", tables=tmp_path / "elsewhere")
