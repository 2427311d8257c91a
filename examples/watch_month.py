"""A month after deployment, on census data: a certificate, a change, an alarm, a new certificate.

A model is trained and certified on people below 40. From the 16th on people of 40 and above come,
for whom it is wrong more often. The drift is that of the data itself. Takes a few seconds:
``python examples/watch_month.py``.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import riskpilot as rp
from riskpilot.datasets import load_adult

LABELS_A_DAY = 300

adult = load_adult()
rng = np.random.default_rng(0)
order = rng.permutation(len(adult.label))
is_young = adult.features[order, adult.feature_names.index("age")] < 40
young, older = order[is_young], order[~is_young]
train, validation, calibration, later = np.split(young, [6_000, 10_000, 14_000])

model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
model.fit(adult.features[train], adult.label[train])
probability = model.predict_proba(adult.features).max(axis=1)
wrong = model.predict(adult.features) != adult.label


def losses(threshold, rows):
    """Wrong answers, where the model answers and does not hand over to a person."""
    return {"wrong": wrong[rows] & (probability[rows] >= threshold)}


# A model that hands over more is wrong less often. At most 8 % of all people may be told something
# wrong; as few as possible are handed over.
problem = rp.Problem([rp.Risk("wrong", limit=0.08)], minimize="handed_over")
study = rp.create_study(problem, study_name="income", seed=0)


def evaluate(trial):
    threshold = trial.suggest_float("threshold", 0.5, 1.0)
    handed_over = float((probability[validation] < threshold).mean())
    return rp.Evaluation(
        {**losses(threshold, validation), "handed_over": handed_over},
        losses(threshold, calibration),
    )


study.optimize(rp.objective(study, evaluate), n_trials=15)
selection = rp.select(study)
print(selection)

# The month: every day some people, of whom it is known later whether the answer was right.
watch = rp.Watch(selection.certificate, delta=0.05)
for day in range(1, 31):
    people, done = (later, 0) if day < 16 else (older, 15)
    rows = people[(day - 1 - done) * LABELS_A_DAY :][:LABELS_A_DAY]
    found = losses(selection.config["threshold"], rows)
    watch.update(found, ids=rows, at=f"2026-03-{day:02d}")
print(f"\n{watch}")
watch.report("watch.html")

# After the alarm: fresh people, none of whom the watch has seen, and all candidates of the study.
fresh = older[15 * LABELS_A_DAY :][:4_000]
again = rp.recertify(study, lambda trial: losses(trial.params["threshold"], fresh))
print(f"\n{again}")
again.certificate.save("recertified.json")
