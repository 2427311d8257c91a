"""A fairer model within a limit on its error, when every configuration is a training run.

Shows: a study with a guided search over two parameters, a safe start, calibration losses sealed
until the end, the ledger. Takes some seconds: ``python examples/fairness_study.py``.
"""

import numpy as np
import optuna
from sklearn.linear_model import LogisticRegression

import riskpilot as rp
from riskpilot.datasets import load_adult

optuna.logging.set_verbosity(optuna.logging.WARNING)
adult = load_adult()
features = (adult.features - adult.features.mean(axis=0)) / adult.features.std(axis=0)
order = np.random.default_rng(0).permutation(len(adult.label))
train, validation, calibration, test = np.split(order, [3_000, 8_000, 20_000])

label, male = adult.label[train], adult.male[train]
independent = np.ones(len(train))  # weights under which income does not depend on sex
for a in (False, True):
    for b in (False, True):
        both = (label == a) & (male == b)
        independent[both] = (label == a).mean() * (male == b).mean() / both.mean()


def fit(reweigh: float, strength: float) -> LogisticRegression:
    model = LogisticRegression(C=strength, max_iter=300)
    return model.fit(features[train], label, sample_weight=independent**reweigh)


def losses(model: LogisticRegression, rows: np.ndarray) -> dict[str, np.ndarray | float]:
    predicted, men = model.predict(features[rows]), adult.male[rows]
    gap = abs(predicted[men].mean() - predicted[~men].mean())
    return {"error": predicted != adult.label[rows], "gap": float(gap)}


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    model = fit(
        reweigh=trial.suggest_float("reweigh", 0, 3),
        strength=trial.suggest_float("strength", 1e-3, 1, log=True),
    )
    return rp.Evaluation(
        validation=losses(model, validation),
        calibration=losses(model, calibration),  # sealed until select()
    )


problem = rp.Problem([rp.Risk("error", limit=0.175)], minimize="gap", delta=0.1)
study = rp.create_study(problem, seed=0, safe={"reweigh": 0.0, "strength": 0.1})
study.optimize(rp.objective(study, evaluate), n_trials=12)

selection = rp.select(study)
print(selection)
selection.certificate.save("fairness.json")
selection.report("fairness.html")
for entry in rp.ledger(study):
    print(f"Use {entry['use']} of the calibration data: {entry['problem']}")

if selection.config is not None:
    on_test = losses(fit(**selection.config), test)
    print(
        f"On {len(test):,} people that nothing has seen: error {np.mean(on_test['error']):.3f}, "
        f"gap {on_test['gap']:.3f}; plain training has a gap of "
        f"{losses(fit(0.0, 0.1), test)['gap']:.3f}."
    )
