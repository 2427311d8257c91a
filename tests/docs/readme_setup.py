"""What the README's blocks take for granted, small enough to run in seconds on real data."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import riskpilot as rp
from riskpilot.datasets import load_adult
from riskpilot.tables import save_losses

_adult = load_adult()
_order = np.random.default_rng(0).permutation(len(_adult.label))
_features = (_adult.features - _adult.features.mean(axis=0)) / _adult.features.std(axis=0)
training, validation, calibration = _order[:3000], _order[3000:6000], _order[6000:12000]


def train(reg: float) -> LogisticRegression:
    """Group and label lose their dependence as ``reg`` grows (reweighing)."""
    label, male = _adult.label[training], _adult.male[training]
    weights = np.ones(len(training))
    for value in (False, True):
        for group in (False, True):
            both = (label == value) & (male == group)
            weights[both] = (label == value).mean() * (male == group).mean() / both.mean()
    return LogisticRegression(C=0.1, max_iter=200).fit(
        _features[training], label, sample_weight=weights**reg
    )


def losses_of(model: LogisticRegression, rows: np.ndarray) -> dict[str, np.ndarray | float]:
    predicted, male = model.predict(_features[rows]), _adult.male[rows]
    gap = abs(float(predicted[male].mean() - predicted[~male].mean()))
    return {"error": predicted != _adult.label[rows], "ddp": gap}


# losses.npz of the command line's example
_rng = np.random.default_rng(0)
_error, _cost = np.array([[0.05], [0.08], [0.3]]), np.array([3.0, 2.0, 1.0])
save_losses(
    "losses.npz",
    validation={"error": _rng.random((3, 2000)) < _error, "cost": _cost},
    calibration={"error": _rng.random((3, 2000)) < _error},
    configs=[{"size": "large"}, {"size": "medium"}, {"size": "small"}],
)
assert rp.__version__
