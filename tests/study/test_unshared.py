"""Losses by which a study searched certify nothing: whole, in parts, or beside fresh ones."""

import numpy as np
import pytest

import riskpilot as rp

PROBLEM = rp.Problem([rp.Risk("error", limit=0.2)], minimize="cost")
N, K = 20, 400
DRAWS = np.random.default_rng(0).random((3, N, K))
# Of each kind what the search saw, and two samples that it did not see.
TABLES = {"0/1": (DRAWS < 0.13).astype(int), "real": 0.26 * DRAWS}
SHUFFLED = np.random.default_rng(1).permutation(K)
PARTS = {
    "one left out": lambda seen, _: seen[:, 1:].copy(),
    "one added": lambda seen, fresh: np.c_[seen, fresh[:, :1]],
    "each twice": lambda seen, _: np.c_[seen, seen],
    "one changed": lambda seen, _: np.c_[1 - seen[:, :1], seen[:, 1:]],
    "in another order": lambda seen, _: seen[:, SHUFFLED],
}
TOLD = r"seen by the search|in another order"


@pytest.fixture(scope="module", params=TABLES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def study(kind):
    study = rp.create_study(PROBLEM, seed=0)
    for i in range(N):
        study.enqueue_trial({"i": i})

    def evaluate(trial):
        i = trial.suggest_int("i", 0, N - 1)
        return rp.Evaluation({"error": TABLES[kind][0, i], "cost": float(i)})

    study.optimize(rp.objective(study, evaluate), n_trials=N)
    return study


def losses_in(table, **free):
    return lambda trial: {"error": table[trial.params["i"]], **free}


@pytest.mark.parametrize("options", [{}, {"config": {"i": 3}}])
def test_fresh_validation_losses_do_not_hide_those_of_the_search(study, kind, options):
    seen, fresh, other = TABLES[kind]
    for used in (seen, fresh):
        with pytest.raises(rp.LeakageError, match="must not share"):
            rp.recertify(study, losses_in(used), validation=losses_in(fresh, cost=1.0), **options)
    assert rp.recertify(study, losses_in(other), validation=losses_in(fresh, cost=1.0)).config


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_row_more_or_less_does_not_hide_the_losses_of_the_search(study, kind, part):
    seen, fresh, _ = TABLES[kind]
    table = part(seen, fresh)
    given = {trial.number: losses_in(table)(trial) for trial in study.trials}
    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.recertify(study, given, config={"i": 3})
    if kind == "real":  # 0/1 losses of one candidate tell nothing
        with pytest.raises(rp.LeakageError, match=TOLD):
            rp.recertify(study, losses_in(table), config={"i": 3})
    validation = {"error": seen, "cost": np.arange(N)}
    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.select_from_losses(PROBLEM, validation=validation, calibration={"error": table})


def label(calibration, table, order, start=0):
    """Label examples until a candidate is certified."""
    rows = [config.get("i", config.get("index")) for config in calibration.candidates]
    while not calibration.certified:
        stop = start + 60
        needed = calibration.needed
        wanted = table[np.array(rows)[needed]][:, order[start:stop]]
        calibration.add({"error": wanted}, candidates=needed)
        start = stop
    return calibration.select().config


@pytest.mark.parametrize("source", ["study", "plan"])
@pytest.mark.parametrize("order", [np.arange(K), SHUFFLED], ids=["in order", "shuffled"])
def test_labels_are_no_validation_losses_before_all_have_come(study, kind, source, order):
    seen, fresh, _ = TABLES[kind]
    plan = study
    if source == "plan":
        plan = rp.freeze(PROBLEM, validation={"error": seen, "cost": np.arange(N)})
    if kind == "real" or order is not SHUFFLED:  # 0/1 losses of few candidates tell by their order
        with pytest.raises(rp.LeakageError, match="seen by the search"):
            label(rp.Calibration(plan, horizon=K - 1), seen, order)
    assert label(rp.Calibration(plan, horizon=K), fresh, order) is not None


def test_labels_in_the_order_of_validation_are_told_with_one_candidate():
    seen = TABLES["0/1"][0, :1]
    plan = rp.freeze(PROBLEM, validation={"error": seen, "cost": [1.0]})
    calibration = rp.Calibration(plan, horizon=K)
    calibration.add({"error": seen[:, :20]})
    with pytest.raises(rp.LeakageError, match="those of the first validation examples"):
        calibration.add({"error": seen[:, 20:300]})
    assert (calibration.certified, calibration.n_labels) == ([], 20)
