"""After the test, the message says where validation had been too optimistic."""

import numpy as np
import pytest

import riskpilot as rp

PROBLEM = rp.Problem([rp.Risk("error", 0.15)], "cost")
RATES = np.linspace(0.02, 0.3, 50)[:, None]


def selection(seed, thinned, problem=PROBLEM):
    rng = np.random.default_rng(seed)
    kept = rng.random(1000) >= thinned
    return rp.select_from_losses(
        problem,
        validation={"error": (rng.random(1000) < RATES) & kept, "cost": 1 - RATES[:, 0]},
        calibration={"error": rng.random(2000) < RATES},
    )


def test_it_is_said_when_calibration_shows_it():
    message = str(selection(0, thinned=0.4))
    assert "Validation was too optimistic about error: " in message
    assert "standard errors apart. The promise stands" in message


def test_no_promise_stands_where_nothing_could_be_certified():
    found = selection(0, thinned=0.4, problem=rp.Problem([rp.Risk("error", 0.005)], "cost"))
    assert found.config is None
    assert "Nothing is certified, and candidates were picked by numbers" in str(found)
    assert "The promise stands" not in str(found)


def test_chance_alone_is_hardly_ever_blamed():
    blamed = ["too optimistic" in str(selection(seed, thinned=0.0)) for seed in range(60)]
    assert sum(blamed) <= 3


def test_pessimistic_validation_is_no_complaint():
    assert "too optimistic" not in str(selection(0, thinned=-1.0))


def test_the_advice_is_a_doubt_that_a_sampler_takes():
    message = str(selection(1, thinned=0.4))
    doubt = float(message.split("doubt=")[1].split(")")[0])
    rp.GuidedSampler(PROBLEM, trust=0, doubt=doubt)
    assert doubt / 2 == pytest.approx(0.4, abs=0.12)  # it is expected to be half of what it may be


def test_losses_far_from_zero_get_the_same_advice_and_numbers_that_differ():
    def moved(by):
        rng = np.random.default_rng(0)
        losses = 0.2 * (rng.random((2, 3, 1000)) < 0.2)
        losses[0] *= rng.random(1000) >= 0.4
        problem = rp.Problem([rp.Risk("delay", by + 0.1, low=by, high=by + 1)], "cost")
        return str(
            rp.select_from_losses(
                problem,
                validation={"delay": losses[0] + by, "cost": np.arange(3.0)},
                calibration={"delay": losses[1] + by},
            )
        )

    near, far = moved(0.0), moved(100.0)
    assert near.split("doubt=")[1] == far.split("doubt=")[1]
    there, here = far.split("about delay: ")[1].split(" on calibration")[0].split(" there, ")
    assert there != here


def test_no_doubt_is_advised_where_losses_may_be_negative():
    """A share of a risk that may be 0 says nothing."""
    rng = np.random.default_rng(0)
    losses = rng.choice([-1.0, 0.0, 1.0], size=(2, 1, 2000), p=(0.2, 0.6, 0.2))
    losses[0] -= losses[0] > 0.5
    found = rp.select_from_losses(
        rp.Problem([rp.Risk("harm", 0.1, low=-1)], "cost"),
        validation={"harm": losses[0], "cost": np.zeros(1)},
        calibration={"harm": losses[1]},
    )
    assert "too optimistic about harm" in str(found)
    assert "doubt=" not in str(found)


@pytest.mark.parametrize(
    ("hoped", "words"),
    [
        ([30], "for the only candidate, "),
        ([30, 30], "for the nearer of the two candidates, "),
        ([30, 150], None),  # one was too optimistic, the other one too pessimistic
        ([30, 30, 150], "for the candidate in the middle, "),
        ([30, 30, 30, 150], "for the nearer of the two candidates in the middle, "),
        ([30, 30, 150, 150], None),
    ],
)
def test_the_words_are_true_of_any_number_of_candidates(hoped, words):
    message = counted(hoped, [80] * len(hoped))
    assert ("too optimistic" in message) == (words is not None)
    assert words is None or words in message


def counted(hoped, found, n=1000, **given):
    """The message where so many of ``n`` validation and ``n`` calibration examples were wrong."""
    places = np.random.default_rng(0).permuted(np.tile(np.arange(n), (len(hoped), 1)), axis=1)
    return str(
        rp.select_from_losses(
            rp.Problem([rp.Risk("error", 0.5)], "cost"),
            validation={"error": places < np.array(hoped)[:, None], "cost": -np.array(hoped)},
            calibration={"error": places < np.array(found)[:, None]},
            order=range(len(hoped)),
            **given,
        )
    )


def test_losses_that_were_foretold_make_no_risk_more_certain():
    """The standard errors are those of the examples that were evaluated, row by row."""
    assert "for the only candidate, 4.3 standard errors apart" in counted([50], [100])
    fewer = counted([50], [100], n_evaluated=[250])
    assert "for the only candidate, 3.0 standard errors apart" in fewer
    assert "too optimistic" not in counted([50], [100], n_evaluated=[100])
    mixed = counted([50, 50, 50], [100, 100, 100], n_evaluated=[250, 1000, 100])
    assert "and most are at least 2.9 standard errors apart" in mixed


def test_the_advice_is_what_most_candidates_show_and_no_more():
    # By standard errors the first one is in the middle, with three quarters of its few losses.
    message = counted([5, 100, 200], [21, 150, 258])
    assert "0.1 there, 0.15 on calibration data for the candidate in the middle, and " in message
    assert "and most are at least 3.1 standard errors apart. The promise stands" in message
    assert "doubt=0.67)" in message


def test_the_advice_scatters_little_around_what_is_true():
    rates = np.linspace(0.01, 0.2, 10)[:, None]
    advised = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        kept = rng.random(5000) >= 0.3
        message = str(
            rp.select_from_losses(
                PROBLEM,
                validation={"error": (rng.random((10, 5000)) < rates) & kept, "cost": -rates[:, 0]},
                calibration={"error": rng.random((10, 5000)) < rates},
            )
        )
        advised.append(float(message.split("doubt=")[1].split(")")[0]))
    assert np.abs(np.array(advised) - 0.6).mean() < 0.05


@pytest.mark.parametrize(
    ("hoped", "found"),
    [([0], [0]), ([0, 0, 0], [0, 0, 0]), ([0, 0, 0, 30, 30], [0, 0, 0, 80, 80])],
)
def test_candidates_without_any_loss_show_no_optimism(hoped, found):
    assert "too optimistic" not in counted(hoped, found)


def test_losses_where_validation_had_none_are_told():
    message = counted([0, 0], [20, 30])
    assert "0 there, 0.02 on calibration data for the nearer of the two candidates, " in message
    assert "and both are at least 4.4 standard errors apart" in message
    assert "doubt=0.9)" in message


def test_no_doubt_is_advised_where_a_search_expects_as_much_by_default():
    message = counted([19_500], [20_000], n=200_000)
    assert "0.0975 there, 0.1 on calibration data for the only candidate, 2.7 " in message
    assert "are as recent." in message
    assert "doubt=" not in message


def raced(seed, thinned):
    """A study whose promising evaluations were ended early, and what it chose."""
    draws = np.random.default_rng(seed).random((3, 1000))
    kept = draws[2] >= thinned

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        errors = draws[:2] < 0.02 + 0.3 * x**2
        for block in np.array_split(errors[0] & kept, 20):
            if (yield {"error": block, "cost": 1 - x}):
                break
        return {"error": errors[1]}

    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    study = rp.create_study(problem, seed=seed, safe={"x": 0.0})
    study.optimize(rp.objective(study, evaluate), n_trials=12)
    return rp.select(study)


def test_a_race_hides_no_strong_optimism():
    """What is foretold has its own error, smaller than that of the first examples alone."""
    found = [raced(seed, thinned=0.45) for seed in range(8)]
    assert all(len(selection.certificate.evaluated) > 5 for selection in found)
    assert sum("too optimistic about error" in str(selection) for selection in found) >= 7


def test_a_race_blames_chance_hardly_ever():
    assert not any("too optimistic" in str(raced(seed, thinned=0.0)) for seed in range(12))
