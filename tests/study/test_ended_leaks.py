"""What a race had evaluated certifies nothing: foretold losses hide no examples of the search."""

from dataclasses import replace

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.losses import depths_of, overlap_tells
from riskpilot.study.kept.foretold import foretold_of

PROBLEM = rp.Problem([rp.Risk("error", 0.35)], minimize="cost")
K, N, BLOCK = 600, 39, 50
DRAWS = np.random.default_rng(0)
HARD, OTHER = DRAWS.random((2, K))
# 0/1 losses tell where many differ: here each configuration errs on other examples.
ERRS, OTHERS = DRAWS.random((2, N + 1, K))
SHUFFLED = np.random.default_rng(1).permutation(K)
TOLD = r"seen by the search|must not share|in another order"
KINDS = ["real", "0/1"]
PARTS = {
    "shuffled": lambda seen, _: seen[..., SHUFFLED],
    "half of them": lambda seen, fresh: np.concatenate(
        [seen[..., : K // 2], fresh[..., : K // 2]], axis=-1
    )[..., SHUFFLED],
    "from 100 on": lambda seen, _: seen[..., 100:],
    "all but the first": lambda seen, _: seen[..., 1:],
    "all but the first, shuffled": lambda seen, _: seen[..., SHUFFLED[1:]],
    "one more": lambda seen, fresh: np.concatenate([seen, fresh[..., :1]], axis=-1),
    "in their order": lambda seen, _: seen,
}


def losses(kind, x, sample):
    """Return the losses of one configuration on a sample of examples."""
    rate = 0.2 + 0.3 * x / N
    if kind == "real":
        return np.clip(2 * rate * sample * (1 + 0.05 * np.sin(x * sample)), 0, 1)
    return (sample[x] < rate).astype(float)


def samples(kind):
    return (HARD, OTHER) if kind == "real" else (ERRS, OTHERS)


def raced(kind, seen, calibration=None, *, heeds=True, seed=0, **settings):
    """Search by a race over the samples ``seen``; ``heeds``: whether it ends evaluations."""

    def evaluate(trial):
        x = trial.suggest_int("x", 0, N)
        lost = losses(kind, x, seen)
        for rows in np.split(np.arange(K), K // BLOCK):
            if (yield {"error": lost[rows], "cost": float(N - x)}) and heeds:
                break
        return None if calibration is None else {"error": losses(kind, x, calibration)}

    study = rp.create_study(PROBLEM, seed=seed, safe={"x": 0}, **settings)
    study.optimize(rp.objective(study, evaluate), n_trials=12 if kind == "real" else N)
    return study


def complete(study):
    return [trial for trial in study.trials if trial.state.name == "COMPLETE"]


def losses_on(kind, sample):
    return lambda trial: {"error": losses(kind, trial.params["x"], sample)}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def study(kind):
    study = raced(kind, samples(kind)[0])
    assert sum(foretold_of(trial) is not None for trial in complete(study)) >= 4
    return study


def taken(part, kind):
    return PARTS[part](*samples(kind))


@pytest.mark.parametrize("part", PARTS)
def test_recertify_refuses_the_examples_of_a_race(study, kind, part):
    make = losses_on(kind, taken(part, kind))
    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.recertify(study, {trial.number: make(trial) for trial in complete(study)})
    # The 0/1 losses of the few candidates tell in their order, or where all examples are there.
    if kind == "real" or part not in ("half of them", "from 100 on"):
        with pytest.raises(rp.LeakageError, match=TOLD):
            rp.recertify(study, make)


def test_evaluations_that_were_ended_do_not_hide_what_whole_ones_tell():
    study = raced("real", HARD)
    make = losses_on("real", HARD[100:])  # what the others evaluated is not among these
    whole = [trial for trial in complete(study) if foretold_of(trial) is None]
    assert 2 <= len(whole) < len(complete(study))
    for trials in (whole, complete(study)):
        with pytest.raises(rp.LeakageError, match="500 of 500"):
            rp.recertify(study, {trial.number: make(trial) for trial in trials})


@pytest.mark.parametrize("part", PARTS)
def test_select_refuses_to_make_calibration_losses_of_examples_of_a_race(part):
    sample = taken(part, "real")
    study = raced("real", HARD, n_calibration=len(sample))
    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.select(study, calibrate=losses_on("real", sample))
    other = np.random.default_rng(2).random(len(sample))
    assert rp.select(study, calibrate=losses_on("real", other)).config is not None


@pytest.mark.parametrize("part", ["shuffled", "all but the first, shuffled", "one more"])
def test_select_refuses_calibration_losses_that_a_race_recorded(kind, part):
    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.select(raced(kind, samples(kind)[0], taken(part, kind)))


@pytest.mark.parametrize("fresh", [False, True])
def test_labels_are_no_examples_of_a_race(kind, fresh):
    study = raced(kind, samples(kind)[0])  # one that keeps no labels yet
    # 0/1 losses of few candidates tell by their order.
    order = SHUFFLED if kind == "real" or fresh else np.arange(K)
    sample = samples(kind)[1 if fresh else 0][..., order]
    calibration = rp.Calibration(study, horizon=K)
    table = np.array([losses(kind, config["x"], sample) for config in calibration.candidates])

    def label():
        for start in range(0, K, 60):
            needed = calibration.needed
            labels = table[needed, start : start + 60]
            if calibration.done:
                return
            calibration.add({"error": labels}, candidates=needed)

    if fresh:
        label()
        assert calibration.select().config is not None
    else:
        with pytest.raises(rp.LeakageError, match=TOLD):
            label()


def test_a_copy_of_a_calibration_knows_what_a_race_evaluated(kind, tmp_path):
    study = raced(kind, samples(kind)[0])
    path = rp.Calibration(study, horizon=K).save(tmp_path / "labels.npz")
    order = SHUFFLED if kind == "real" else np.arange(K)
    for sample, refused in zip(samples(kind), (True, False), strict=True):
        copy = rp.Calibration.load(path)
        configs = [config["x"] for config in copy.candidates]
        table = np.array([losses(kind, x, sample[..., order]) for x in configs])
        if refused:
            with pytest.raises(rp.LeakageError, match="seen by the search"):
                copy.add({"error": table[:, :-1]})
        else:
            copy.add({"error": table})
            assert copy.select().config is not None


def test_a_copy_whose_numbers_of_examples_were_changed_is_refused(tmp_path):
    study = raced("real", HARD)
    calibration = rp.Calibration(study, horizon=K)
    asked = calibration._question
    known = asked.evaluated
    for evaluated in ({99: 5}, dict.fromkeys(known, K)):
        calibration._question = replace(asked, evaluated=evaluated)
        path = calibration.save(tmp_path / "labels.npz")
        with pytest.raises(rp.CertificateError, match="foretold must"):
            rp.Calibration.load(path)


def test_fresh_validation_losses_do_not_hide_the_examples_of_a_race(study, kind):
    seen, fresh = samples(kind)

    def validation(trial):
        return {**losses_on(kind, fresh)(trial), "cost": float(N - trial.params["x"])}

    with pytest.raises(rp.LeakageError, match=TOLD):
        rp.recertify(study, losses_on(kind, seen[..., SHUFFLED]), validation=validation)


@pytest.mark.parametrize("sort", ["real", "0/1", "rare", "mostly nan", "levels"])
def test_honest_races_are_not_refused(sort):
    conditional = sort == "mostly nan"
    problem = rp.Problem([rp.Risk("error", 0.1, conditional=conditional)], minimize="cost")
    n_ended = 0
    for seed in range(4):
        rng = np.random.default_rng([3, seed])
        seen, sealed, fresh = rng.random((3, 2, K))

        def lost(x, sample, sort=sort):
            luck, other = sample
            if sort == "real":
                return 0.1 * luck * (1 + x)
            if sort == "levels":
                return np.where(luck < 0.5, 0.0, np.where(luck < 0.9, 0.25, 0.5)) * x / 4
            rates = {"0/1": 0.02 + 0.2 * x, "rare": 0.001 + 0.02 * x, "mostly nan": 0.2 * x}
            wrong = (luck < rates[sort]).astype(float)
            return np.where(other < 0.1, wrong, np.nan) if sort == "mostly nan" else wrong

        def evaluate(trial, seen=seen, sealed=sealed, lost=lost):
            x = trial.suggest_float("x", 0, 1)
            for rows in np.split(np.arange(K), 12):
                if (yield {"error": lost(x, seen)[rows], "cost": 1 - x}):
                    break
            return {"error": lost(x, sealed)}

        study = rp.create_study(problem, seed=seed, safe={"x": 0.0})
        study.optimize(rp.objective(study, evaluate), n_trials=8)
        n_ended += sum(foretold_of(trial) is not None for trial in complete(study))
        rp.select(study)
        make = {t.number: {"error": lost(t.params["x"], fresh)} for t in complete(study)}
        rp.recertify(study, make)
    assert n_ended > 4


def test_the_first_examples_stand_for_all_of_them():
    rng = np.random.default_rng(4)
    for n in (60, 200, 1_000):
        seen = np.arange(1_000, dtype=np.uint64)
        halved, quarter = rng.permutation(1_000), rng.permutation(1_000)
        fresh = np.arange(10_000, 11_000, dtype=np.uint64)
        half = np.where(halved < 500, seen, fresh)[rng.permutation(1_000)]
        less = np.where(quarter < 250, seen, fresh)[rng.permutation(1_000)]
        assert overlap_tells(seen[:n], half, 1_000) == (n > 60)  # 30 of 60 examples are too few
        assert overlap_tells(seen[:n], seen[rng.permutation(1_000)], 1_000)
        assert not overlap_tells(seen[:n], less, 1_000)


def test_of_many_numbers_of_evaluated_examples_a_few_are_compared():
    assert depths_of([600, 100, 100]) == [100, 600]
    assert depths_of([300]) == [300]
    assert depths_of(range(50, 650, 50)) == [50, 250, 400, 600]


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("part", ["in their order", "shuffled", "half of them"])
def test_a_later_study_does_not_calibrate_on_what_a_race_evaluated(part, links, tmp_path):
    place = {"storage": str(tmp_path / "study.log")}
    study = raced("real", HARD, study_name="0", **place)
    fresh, other = np.random.default_rng(5).random((2, K))
    if links == 2:
        study = again(fresh, other, study, study_name="1", **place)
    rp.select(again(other, fresh, study, study_name="honest", **place))
    with pytest.raises(rp.LeakageError, match="validation losses of the study that this one was"):
        rp.select(again(other, taken(part, "real"), study, study_name="2", **place))


def again(seen, calibration, earlier, **settings):
    """Search once more, where a race had ended the evaluations."""
    ended = [trial.params["x"] for trial in complete(earlier) if foretold_of(trial) is not None]
    study = rp.create_study(PROBLEM, seed=1, warm_start=earlier, **settings)

    def evaluate(trial):
        x = trial.suggest_int("x", 0, N)
        sealed = {"error": losses("real", x, calibration)} if trial.number < 3 else None
        return rp.Evaluation({"error": losses("real", x, seen), "cost": float(N - x)}, sealed)

    for x in ended[:3]:
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    return study


def test_honest_later_studies_of_races_are_not_refused(kind):
    for seed in range(4):
        rng = np.random.default_rng([6, seed])
        shape = (4, K) if kind == "real" else (4, N + 1, K)
        first, sealed, seen, fresh = rng.random(shape)
        earlier = raced(kind, first, sealed, seed=seed)
        rp.select(raced(kind, seen, fresh, seed=seed, warm_start=earlier))
