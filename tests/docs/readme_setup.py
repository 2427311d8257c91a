"""What the README's blocks take for granted, small enough to run in seconds on real data."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from riskpilot.datasets import load_adult
from riskpilot.tables import save_losses


def prepare() -> dict[str, Any]:
    """Names for the README's second example; writes losses.npz for its command line."""
    adult = load_adult()
    order = np.random.default_rng(0).permutation(len(adult.label))
    features = (adult.features - adult.features.mean(axis=0)) / adult.features.std(axis=0)
    rows = order[:3000]
    weights = _independent(adult.label[rows], adult.male[rows])

    def train(reg: float) -> LogisticRegression:
        model = LogisticRegression(C=0.1, max_iter=200)
        return model.fit(features[rows], adult.label[rows], sample_weight=weights**reg)

    def losses_of(model: LogisticRegression, rows: np.ndarray) -> dict[str, Any]:
        predicted, male = model.predict(features[rows]), adult.male[rows]
        gap = abs(float(predicted[male].mean() - predicted[~male].mean()))
        return {"error": predicted != adult.label[rows], "gap": gap}

    _save_table()
    return {
        "train": train,
        "losses_of": losses_of,
        "validation": order[3000:6000],
        "calibration": order[6000:12000],
    }


def _independent(label: np.ndarray, male: np.ndarray) -> np.ndarray:
    """Weights under which label and group do not depend on each other."""
    weights = np.ones(len(label))
    for value in (False, True):
        for group in (False, True):
            both = (label == value) & (male == group)
            weights[both] = (label == value).mean() * (male == group).mean() / both.mean()
    return weights


def _save_table() -> None:
    rng = np.random.default_rng(0)
    error, cost = np.array([[0.05], [0.08], [0.3]]), np.array([3.0, 2.0, 1.0])
    save_losses(
        "losses.npz",
        validation={"error": rng.random((3, 2000)) < error, "cost": cost},
        calibration={"error": rng.random((3, 2000)) < error},
        configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
    )
