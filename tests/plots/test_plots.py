"""Figures of a selection show the validation numbers, the choice, and no markup of the user."""

import numpy as np
import plotly.graph_objects as go
import pytest

import riskpilot as rp
from riskpilot.guarantee import region_of

MEANS = np.array([0.02, 0.06, 0.12, 0.4])


def selection_of(*, problem=None, names=("error",), limit=0.2, seed=1, configs=None):
    problem = problem or rp.Problem([rp.Risk(name, limit) for name in names], "cost")
    tables = []
    for part in (0, seed):
        rng = np.random.default_rng(part)
        tables.append({n: rng.random((4, 500)) < MEANS[:, None] for n in problem.names})
    return rp.select_from_losses(
        problem,
        validation={**tables[0], problem.minimize: [4.0, 3.0, 2.0, 1.0]},
        calibration=tables[1],
        configs=configs,
    )


def points(figure):
    """Every point that a figure draws, as pairs."""
    found = set()
    for trace in figure.data:
        if trace.x is None or trace.y is None:
            continue
        for x, y in zip(trace.x, trace.y, strict=True):
            if isinstance(x, int | float | np.number) and isinstance(y, int | float | np.number):
                found.add((round(float(x), 9), round(float(y), 9)))
    return found


def test_every_configuration_is_drawn_at_its_validation_numbers():
    selection = selection_of()
    figure = selection.figure()
    assert isinstance(figure, go.Figure)
    means = selection.validation.risks["error"].summary.mean
    for mean, cost in zip(means, selection.validation.free, strict=True):
        assert (round(float(mean), 9), float(cost)) in points(figure)


def test_the_trade_off_of_a_table_shades_the_region_that_a_search_would_have():
    selection = selection_of()
    shaded = next(shape for shape in selection.figure().layout.shapes if shape.type == "rect")
    (part,) = region_of(selection.validation, selection.result.n_calibration)
    assert (shaded.x0, shaded.x1) == (part.low, part.high)


def test_no_calibration_number_is_drawn_in_the_trade_off():
    selection = selection_of()
    drawn = {x for x, _ in points(selection.figure())}
    validation = set(np.round(selection.validation.risks["error"].summary.mean, 9))
    for mean in set(np.round(selection.result.means[:, 0], 9)) - validation:
        assert float(mean) not in drawn


def test_the_choice_is_marked_where_there_is_one_and_only_there():
    chosen = [t for t in selection_of().figure().data if t.name and "chosen" in t.name]
    assert len(chosen) >= 1
    nothing = selection_of(limit=0.001)
    assert nothing.config is None
    assert not [t for t in nothing.figure().data if t.name and "chosen" in t.name]


@pytest.mark.parametrize("n_risks", [1, 2, 3])
def test_figures_of_any_number_of_risks_can_be_drawn(n_risks):
    selection = selection_of(names=[f"risk{i}" for i in range(n_risks)])
    assert "risk0" in selection.figure().to_json()


def test_a_figure_of_a_study_shows_its_search():
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    study = rp.create_study(problem, seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        draws = np.random.default_rng(trial.number).random((2, 300)) < 0.05 + 0.4 * x
        return rp.Evaluation({"error": draws[0], "cost": 1 - x}, {"error": draws[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=8)
    selection = rp.select(study)
    assert selection.search is not None
    assert len(selection.search.pool) == 8
    drawn = points(selection.figure())
    for trial in study.trials:
        assert tuple(np.round(trial.values, 9)) in drawn
