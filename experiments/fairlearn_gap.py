"""Who keeps a limit on the gap, on Adult: ``python -m experiments.fairlearn_gap`` (needs
``pip install fairlearn``) writes experiments/results/gap.json and draws docs/images/gap-kept.svg.

The gap is that between the rates of positive predictions of men and women. For each split of the
data a logistic regression is trained; its configurations are 225 pairs of thresholds, one for each
sex. Beside the training data there are 2 V labelled examples. riskpilot plans on V of them and
tests on the other V. Common practice takes the smallest error among the configurations whose gap
on all 2 V keeps the limit. Fairlearn's ThresholdOptimizer fits its thresholds to all 2 V, with the
limit as its tolerance. Fairlearn's ExponentiatedGradient trains under the constraint on the same
training data. Every answer is measured on the examples that nobody has seen.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

import riskpilot as rp
from riskpilot.datasets import load_adult

RESULT = Path(__file__).parent / "results" / "gap.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "gap-kept.svg"
LIMITS = (0.02, 0.03, 0.04, 0.05, 0.08)
SIZES = (500, 1000, 2000)  # V
N_TRAIN = 3000
THRESHOLDS = np.linspace(0.25, 0.75, 15)
WHO = {
    "riskpilot": "riskpilot",
    "practice": "measured gap keeps the limit",
    "thresholds": "Fairlearn ThresholdOptimizer",
    "gradient": "Fairlearn ExponentiatedGradient",
}
DELTA = 0.1
Array = npt.NDArray[Any]
Answer = tuple[float, float] | None  # gap and error on unseen examples


@dataclass(frozen=True)
class Split:
    """Features, labels and sex of the training examples and of all others, in random order."""

    train: tuple[Array, Array, Array]
    rest: tuple[Array, Array, Array]

    @property
    def unseen(self) -> slice:
        return slice(2 * max(SIZES), None)


def split(seed: int) -> Split:
    adult = load_adult()
    features = (adult.features - adult.features.mean(axis=0)) / adult.features.std(axis=0)
    order = np.random.default_rng(seed).permutation(len(adult.label))
    parts = order[:N_TRAIN], order[N_TRAIN:]
    train, rest = ((features[rows], adult.label[rows], adult.male[rows]) for rows in parts)
    return Split(train, rest)


def gap_and_error(predicted: Array, label: Array, male: Array) -> tuple[float, float]:
    gap = abs(float(predicted[male].mean()) - float(predicted[~male].mean()))
    return gap, float((predicted != label).mean())


def one_split(seed: int) -> dict[str, dict[str, Answer]]:
    """The answers of everyone, by ``"limit/V"``."""
    data = split(seed)
    _, label, male = data.rest
    model = LogisticRegression(solver="liblinear").fit(*data.train[:2])
    score = model.predict_proba(data.rest[0])[:, 1]
    pairs = np.array([(a, b) for a in THRESHOLDS for b in THRESHOLDS])
    predicted = score >= np.where(male, pairs[:, :1], pairs[:, 1:])
    found: dict[str, dict[str, Answer]] = {}
    for limit in LIMITS:
        trained = _gradient(data, limit, seed)
        for size in SIZES:
            chosen = {
                "riskpilot": _certified(limit, predicted, label, male, size),
                "practice": _measured(limit, predicted, label, male, size),
            }
            answers: dict[str, Answer] = {
                who: None
                if row is None
                else gap_and_error(
                    predicted[row, data.unseen], label[data.unseen], male[data.unseen]
                )
                for who, row in chosen.items()
            }
            answers["gradient"] = trained
            answers["thresholds"] = _thresholds(data, model, limit, size, seed)
            found[f"{limit}/{size}"] = answers
    return found


def _certified(limit: float, predicted: Array, label: Array, male: Array, size: int) -> int | None:
    problem = rp.Problem(
        [rp.Risk("demographic_parity_gap", at_most=limit, groups="sex")], "error", DELTA
    )

    def losses(rows: slice) -> dict[str, Array]:
        return rp.losses_from_predictions(
            problem, label[rows], predicted[:, rows], groups={"sex": male[rows]}
        )

    calibration = losses(slice(size, 2 * size))
    del calibration["error"]
    selection = rp.select_from_losses(
        problem, validation=losses(slice(0, size)), calibration=calibration
    )
    return None if selection.config is None else int(selection.config["index"])


def _measured(limit: float, predicted: Array, label: Array, male: Array, size: int) -> int | None:
    rows = slice(0, 2 * size)
    gaps = rp.measure(rp.GroupGap(), predicted[:, rows], male[rows])
    errors = (predicted[:, rows] != label[rows]).mean(axis=1)
    kept = np.flatnonzero(gaps <= limit)
    return int(kept[np.argmin(errors[kept])]) if len(kept) else None


def _thresholds(data: Split, model: Any, limit: float, size: int, seed: int) -> Answer:
    features, label, male = data.rest
    rows, unseen = slice(0, 2 * size), data.unseen
    optimizer = ThresholdOptimizer(
        estimator=model,
        prefit=True,
        constraints="demographic_parity",
        predict_method="predict_proba",
        tol=limit,
    )
    optimizer.fit(features[rows], label[rows], sensitive_features=male[rows])
    predicted = optimizer.predict(
        features[unseen], sensitive_features=male[unseen], random_state=seed
    )
    return gap_and_error(predicted, label[unseen], male[unseen])


def _gradient(data: Split, limit: float, seed: int) -> Answer:
    bound = limit / 2  # of each group's distance from the overall rate: twice that bounds the gap
    model = ExponentiatedGradient(
        LogisticRegression(solver="liblinear", max_iter=150),
        constraints=DemographicParity(difference_bound=bound),
        eps=bound,
        max_iter=15,
    )
    model.fit(*data.train[:2], sensitive_features=data.train[2])
    features, label, male = (part[data.unseen] for part in data.rest)
    return gap_and_error(model.predict(features, random_state=seed), label, male)


def summary(found: Sequence[dict[str, dict[str, Answer]]]) -> list[dict[str, Any]]:
    """One row for each limit, size and choice: how often there was an answer, and how often the
    gap of the answer was above the limit, among all splits."""
    rows = []
    for limit in LIMITS:
        for size in SIZES:
            for who in WHO:
                answers = [one[f"{limit}/{size}"][who] for one in found]
                given = np.array([a for a in answers if a is not None]).reshape(-1, 2)
                rows.append(
                    {
                        "limit": limit,
                        "V": size,
                        "who": who,
                        "splits": len(found),
                        "answers": len(given),
                        "broke": int((given[:, 0] > limit).sum()),
                        "mean_gap": float(given[:, 0].mean()) if len(given) else None,
                        "largest_gap": float(given[:, 0].max()) if len(given) else None,
                        "mean_error": float(given[:, 1].mean()) if len(given) else None,
                    }
                )
    return rows


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(1, len(SIZES), figsize=(11, 3.6), sharey=True)
    colors = dict(zip(WHO, ("#0072B2", "#999999", "#E69F00", "#D55E00"), strict=True))
    for axis, size in zip(axes, SIZES, strict=True):
        for i, (who, title) in enumerate(WHO.items()):
            chosen = [row for row in rows if row["V"] == size and row["who"] == who]
            shares = [row["broke"] / row["splits"] for row in chosen]
            places = np.arange(len(LIMITS)) + (i - 1.5) * 0.2
            axis.bar(places, shares, 0.18, label=title, color=colors[who])
        axis.axhline(DELTA, color="black", linestyle=":", linewidth=1)
        ours = [row for row in rows if row["V"] == size and row["who"] == "riskpilot"]
        ticks = [f"{row['limit']:g}\n{row['answers']} of {row['splits']}" for row in ours]
        axis.set_xticks(range(len(LIMITS)), ticks, fontsize=8)
        axis.set(
            title=f"2 x {size:,} labelled examples",
            xlabel="limit on the gap; answers of riskpilot",
            ylim=(0, 1.05),
        )
        axis.title.set_fontsize(10)
    axes[0].set_ylabel("splits in which the gap was broken")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser("python -m experiments.fairlearn_gap", description=__doc__)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--json", type=Path, default=RESULT, help="the result")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    options = parser.parse_args(arguments)
    found = []
    for seed in range(options.splits):
        found.append(one_split(seed))
        print(f"split {seed + 1} of {options.splits}", flush=True)
    rows = summary(found)
    options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    draw(rows, options.out)
    for row in rows:
        print(row)
    return rows


if __name__ == "__main__":
    main()
