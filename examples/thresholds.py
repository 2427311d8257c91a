"""A threshold with a promise: recall of at least 75 % with the fewest false alarms.

Shows: losses of all thresholds at once from cached scores, a conditional risk, the verdict, a
certificate and a report. Takes a few seconds: ``python examples/thresholds.py``.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import riskpilot as rp
from riskpilot.datasets import load_adult

adult = load_adult()
order = np.random.default_rng(1).permutation(len(adult.label))
train, validation, calibration, test = np.split(order, [8_000, 16_000, 36_000])
model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0)
model.fit(adult.features[train], adult.label[train])

thresholds = np.linspace(0, 1, 101).round(2)


def losses(rows: np.ndarray) -> dict[str, np.ndarray]:
    """One row per threshold; NaN where a person does not count for a rate."""
    label, score = adult.label[rows], model.predict_proba(adult.features[rows])[:, 1]
    flagged = score >= thresholds[:, None]
    return {
        "missed": np.where(label, ~flagged, np.nan),
        "false_alarms": (flagged & ~label).mean(axis=1),
    }


problem = rp.Problem([rp.Risk("missed", limit=0.25, conditional=True)], minimize="false_alarms")
print(problem)
print(rp.plan_calibration(problem, 5_000, true_risks={"missed": 0.23})[0], "\n")

selection = rp.select_from_losses(
    problem,
    validation=losses(validation),
    calibration=losses(calibration),
    configs=[{"threshold": t} for t in thresholds.tolist()],
)
print(selection)
selection.certificate.save("thresholds.json")
selection.report("thresholds.html")

if selection.config is not None:
    row = thresholds.tolist().index(selection.config["threshold"])
    missed = np.nanmean(losses(test)["missed"][row])
    print(f"\nOn {len(test):,} people that nothing has seen: {missed:.1%} missed, limit 25%.")
