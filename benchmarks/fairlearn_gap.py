"""Fairlearn's constrained training and a certified choice among its models, on Adult:
``python -m benchmarks.fairlearn_gap`` (needs ``pip install fairlearn``).

A gap of at most 0.05 between the rates of positive predictions of men and women is asked for. For
each split of the data Fairlearn trains under that constraint, and under two tighter ones. Its own
answer is the model of the constraint that was asked for; riskpilot chooses among the three. Both
are measured on examples that neither has seen.
"""

import argparse

import numpy as np
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

import riskpilot as rp
from riskpilot.datasets import load_adult

LIMIT = 0.05
# Of the difference from the overall rate, which Fairlearn bounds: twice that bounds the gap.
BOUNDS = (0.025, 0.01, 0.002)
N_TRAIN, N_VALIDATION, N_CALIBRATION = 3000, 4000, 8000


def one_split(seed: int) -> dict[str, tuple[float, float] | None]:
    """Gap and error on unseen examples of Fairlearn's answer and of riskpilot's."""
    adult = load_adult()
    features = (adult.features - adult.features.mean(axis=0)) / adult.features.std(axis=0)
    order = np.random.default_rng(seed).permutation(len(adult.label))
    train, held_out = order[:N_TRAIN], order[N_TRAIN:]
    predicted = []
    for bound in BOUNDS:
        model = ExponentiatedGradient(
            LogisticRegression(solver="liblinear", max_iter=150),
            constraints=DemographicParity(difference_bound=bound),
            eps=bound,
            max_iter=15,
        )
        model.fit(features[train], adult.label[train], sensitive_features=adult.male[train])
        predicted.append(model.predict(features[held_out], random_state=seed))
    table = np.array(predicted, dtype=int)
    problem = rp.Problem(
        [rp.Risk("demographic_parity_gap", at_most=LIMIT, groups="sex")], minimize="error"
    )
    label, male = adult.label[held_out], adult.male[held_out]

    def losses(rows: slice) -> dict[str, np.ndarray]:
        return rp.losses_from_predictions(
            problem, label[rows], table[:, rows], groups={"sex": male[rows]}
        )

    seen, sealed = slice(0, N_VALIDATION), slice(N_VALIDATION, N_VALIDATION + N_CALIBRATION)
    unseen = slice(N_VALIDATION + N_CALIBRATION, None)
    calibration = losses(sealed)
    del calibration["error"]
    selection = rp.select_from_losses(problem, validation=losses(seen), calibration=calibration)
    gaps = rp.measure(rp.GroupGap(), table[:, unseen], male[unseen])
    errors = (table[:, unseen] != label[unseen]).mean(axis=1)
    ours = None if selection.config is None else selection.config["index"]
    return {
        "fairlearn": (float(gaps[0]), float(errors[0])),
        "riskpilot": None if ours is None else (float(gaps[ours]), float(errors[ours])),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fairlearn_gap", description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args(arguments)
    found = [one_split(seed) for seed in range(options.splits)]
    for who in ("fairlearn", "riskpilot"):
        kept = [result for split in found if (result := split[who]) is not None]
        gaps, errors = np.array(kept).reshape(-1, 2).T
        print(
            f"{who}: an answer in {len(kept)} of {len(found)} splits, gap above {LIMIT} in "
            f"{int((gaps > LIMIT).sum())}, mean gap {gaps.mean():.4f}, largest {gaps.max():.4f}, "
            f"mean error {errors.mean():.4f}"
        )


if __name__ == "__main__":
    main()
