"""The vectorised replay is the library's own test, split by split."""

import numpy as np
import pytest

from riskpilot.bench import cells as at
from riskpilot.bench.cells import Splits
from riskpilot.bench.methods import Assignment, Guided
from riskpilot.bench.replay import NOTHING, Outcome, log_p_values, replay
from riskpilot.bench.tasks import Task, synthetic
from riskpilot.bench.validation_sums import see
from riskpilot.guarantee.certificate import choose
from riskpilot.guarantee.procedures import fixed_sequence
from riskpilot.guarantee.testing import freeze_plan, run_test
from riskpilot.losses.reading import calibration_losses, validation_losses
from riskpilot.problem.problem import Problem, Risk
from riskpilot.study.sampler import GUIDED

CONFIGS = [{"x1": float(x)} for x in np.linspace(0, 1, 150)]


def some_splits(task: Task, n_splits: int = 6) -> Splits:
    return at.draw_splits(task, n_splits)


def held_out(task: Task, configs: list[dict[str, float]]) -> dict[str, np.ndarray]:
    each = [task.losses("held_out", config) for config in configs]
    return {name: np.stack([one[name] for one in each]) for name in task.problem.names}


def conditional(task: Task) -> Task:
    """The same task where a third of the examples does not count for the first risk."""
    name = task.problem.names[0]
    risks = [Risk(name, None, conditional=True), *task.problem.risks[1:]]

    def losses(split, config):  # type: ignore[no-untyped-def]
        found = task.losses(split, config)
        values = found[name].astype(float)
        values[::3] = np.nan
        return {**found, name: values}

    return Task(**{**vars(task), "problem": Problem(risks, "cost"), "losses": losses})


@pytest.mark.parametrize("family", ["auto", "hoeffding_bentkus", "hoeffding", "betting"])
@pytest.mark.parametrize(
    "task",
    [
        synthetic(n_validation=500, n_held_out=801),
        synthetic(n_risks=2, binary=False, n_validation=500, n_held_out=800),
        conditional(synthetic(n_risks=2, n_validation=500, n_held_out=800)),
    ],
    ids=["binary", "two continuous risks", "conditional"],
)
def test_replay_chooses_what_run_test_chooses_on_every_split(task: Task, family: str) -> None:
    problem = at.problem_at(task, (0.3,) * len(task.problem.risks), family)
    splits = some_splits(task)
    outcome = replay(task, problem, CONFIGS, see(task, CONFIGS), splits)
    rows = [task.losses("validation", config) for config in CONFIGS]
    table = {name: np.stack([row[name] for row in rows]) for name in task.problem.names}
    table["cost"] = np.array([task.free("validation", config, None) for config in CONFIGS])
    plan = freeze_plan(validation_losses(problem, table))
    losses = held_out(task, CONFIGS)
    in_order = {name: values[list(plan.order)] for name, values in losses.items()}
    log_p = log_p_values(plan, in_order, splits.calibration)
    for k, rows_k in enumerate(splits.calibration):
        calibration = calibration_losses(
            problem, {name: values[:, rows_k] for name, values in losses.items()}
        )
        result = run_test(plan, calibration, fixed_sequence)
        np.testing.assert_allclose(log_p[k], result.worst_log_p, rtol=1e-9, atol=1e-12)
        position = choose(plan, result)
        expected = NOTHING if position is None else plan.order[position]
        assert outcome.chosen[k] == expected
    assert (outcome.chosen != NOTHING).any()


def test_splits_share_no_example_and_leave_none_out() -> None:
    task = synthetic(n_held_out=101)
    splits = some_splits(task)
    for calibration, test in zip(splits.calibration, splits.test, strict=True):
        assert sorted([*calibration, *test]) == list(range(101))
    assert len({tuple(rows) for rows in splits.calibration}) == len(splits.calibration)


def test_a_run_that_certifies_nothing_counts_with_the_safe_configuration() -> None:
    task = synthetic(n_validation=200, n_held_out=60)
    problem = at.problem_at(task, (0.01,))  # 30 examples cannot certify this
    splits = some_splits(task)
    outcome = replay(task, problem, CONFIGS, see(task, CONFIGS), splits)
    assert (outcome.chosen == NOTHING).all()
    assert np.isnan(outcome.risks).all()
    assert not outcome.violated.any()
    assert task.safe is not None
    assert outcome.free[0] == task.free("held_out", task.safe, splits.test[0])


def test_violations_are_judged_by_the_truth_where_it_is_known() -> None:
    task = synthetic(n_validation=2000, n_held_out=4000)
    problem = at.problem_at(task, (0.16,))
    outcome = replay(task, problem, CONFIGS, see(task, CONFIGS), some_splits(task))
    assert task.population is not None
    for row, violated in zip(outcome.chosen, outcome.violated, strict=True):
        assert violated == (task.population(CONFIGS[row])["risk1"] > 0.16)


def test_outcomes_survive_storage() -> None:
    task = synthetic(n_validation=200, n_held_out=400)
    problem = at.problem_at(task, (0.2,))
    outcome = replay(task, problem, CONFIGS, see(task, CONFIGS), some_splits(task))
    again = Outcome.from_json(outcome.to_json())
    for name in ("chosen", "free", "risks", "violated"):
        np.testing.assert_array_equal(getattr(again, name), getattr(outcome, name))


def test_a_search_never_asks_for_held_out_losses() -> None:
    task = synthetic(n_validation=300)

    def losses(split, config):  # type: ignore[no-untyped-def]
        assert split == "validation"
        return task.losses(split, config)

    def free(split, config, rows):  # type: ignore[no-untyped-def]
        assert split == "validation"
        return task.free(split, config, rows)

    sealed = Task(**{**vars(task), "losses": losses, "free": free})
    setting = Assignment(sealed, at.problem_at(sealed, (0.16,)), 500, seed=0)
    found = Guided(GUIDED, safe=True)(setting)
    assert len(found.configs) == task.n_trials
    assert found.configs[0] == task.safe


@pytest.mark.parametrize("name", ["fairness_gap", "waterbirds_worst", "pruning_drop"])
@pytest.mark.parametrize("family", ["auto", "hoeffding_bentkus"])
def test_other_limits_are_replayed_as_run_test_tests_them(name: str, family: str) -> None:
    task = at.load(name, 0)
    assert task.grid is not None
    configs = list(task.grid)[:: len(task.grid) // 10]
    problem = at.problem_at(task, task.cells[-1], family)
    splits = some_splits(task, 3)
    outcome = replay(task, problem, configs, see(task, configs), splits)
    rows = [task.losses("validation", config) for config in configs]
    beside = problem.beside[0]
    table = {problem.names[0]: np.stack([row[problem.names[0]] for row in rows])}
    table |= {beside: rows[0][beside]}
    free = [task.free("validation", config, None) for config in configs]
    table[problem.minimize] = np.array(free)
    plan = freeze_plan(validation_losses(problem, table))
    losses = held_out(task, configs)
    groups = task.losses("held_out", configs[0])[beside]  # or the reference
    for k, rows_k in enumerate(splits.calibration):
        sample = {name: values[:, rows_k] for name, values in losses.items()}
        calibration = calibration_losses(problem, {**sample, beside: groups[rows_k]})
        result = run_test(plan, calibration, fixed_sequence)
        position = choose(plan, result)
        assert outcome.chosen[k] == (NOTHING if position is None else plan.order[position])
        if position is not None:
            test = splits.test[k]
            row = losses[problem.names[0]][plan.order[position]][test]
            by_group = [row[groups[test] == g].mean() for g in np.unique(groups)]
            expected = {
                "fairness_gap": max(by_group) - min(by_group),
                "waterbirds_worst": max(by_group),
                "pruning_drop": row.mean() - groups[test].mean(),
            }[name]
            assert outcome.risks[k, 0] == pytest.approx(expected)
    assert (outcome.chosen != NOTHING).any()
