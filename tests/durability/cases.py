"""One problem whose evaluations depend on the configuration alone, for disturbed studies."""

import zlib

import numpy as np

import riskpilot as rp

PROBLEM = rp.Problem([rp.Risk("error", 0.3), rp.Risk("harm", 0.5, conditional=True)], "cost")
M = 300


def losses(x, split):
    rng = np.random.default_rng([zlib.crc32(split.encode()), round(x * 2**30)])
    harm = rng.random(M) * x
    harm[rng.random(M) < 0.5] = np.nan
    return {"error": rng.random(M) < 0.05 + 0.4 * x, "harm": harm}


def evaluation(x):
    return rp.Evaluation({**losses(x, "validation"), "cost": 1 - x}, losses(x, "calibration"))


def evaluate(trial):
    return evaluation(trial.suggest_float("x", 0, 1))


def same_selection(one, two):
    """Whether two studies with the same trials led to the same verdict, from the same numbers.

    Which question it was may differ: other studies of a storage can have the same losses.
    """
    first, second = one.certificate, two.certificate
    promises = [
        certificate.promise.split(" This is question")[0] for certificate in (first, second)
    ]
    return (
        first.config == second.config
        and promises[0] == promises[1]
        and first.plan_digest == second.plan_digest
        and first.calibration_digest == second.calibration_digest
        and first.log_p == second.log_p
    )


def undisturbed(study):
    """A study in memory that evaluates the configurations of another one, in their order."""
    again = rp.create_study(PROBLEM, seed=0)
    finished = [t for t in study.trials if t.state.name == "COMPLETE"]
    for trial in finished:
        again.enqueue_trial(trial.params)
    again.optimize(rp.objective(again, evaluate), n_trials=len(finished))
    return again
