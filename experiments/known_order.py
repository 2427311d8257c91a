"""A known order against a searched one and against MAPIE, on thresholds of an income model.

``python -m experiments.known_order`` draws 2,000 held-out people 200 times. On each draw, every
method picks a threshold with a false-positive rate of at most 10 % (delta = 0.1) and as few missed
positives as it can. Rates are those on the people that were not drawn. A second part asks for a
precision of at least 70 %, which may rise and fall along the thresholds, so that none of their
orders is known to be from safe to risky. It tests them from the highest on, and in a searched
order.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from mapie.risk_control import BinaryClassificationController  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import riskpilot as rp
from riskpilot.datasets import load_adult
from riskpilot.sklearn import RiskControlledThreshold

Array = npt.NDArray[np.generic]
Method = Callable[[Array, Array], float | None]
"""From drawn examples and their labels to a threshold, or None where nothing is certified."""

LIMIT, DELTA, PRECISION = 0.1, 0.1, 0.7
RESULTS = Path(__file__).parent / "results" / "known_order.json"


def mapie(model: object, fwer_method: str, n_thresholds: int) -> Method:
    """MAPIE's controller, its thresholds listed from the safe end on."""
    levels = np.linspace(0.99, 0.0, n_thresholds)

    def pick(X: Array, y: Array) -> float | None:
        controller = BinaryClassificationController(
            model.predict_proba,  # type: ignore[attr-defined]
            "fpr",
            LIMIT,
            confidence_level=1 - DELTA,
            best_predict_param_choice="recall",
            list_predict_params=levels,
            fwer_method=fwer_method,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nothing is valid is counted here
            if fwer_method == "split_fixed_sequence":  # half of the data learns the order
                k = len(y) // 2
                controller.learn_fixed_sequence_order(X[:k], y[:k])
                best = controller.calibrate(X[k:], y[k:]).best_predict_param
            else:
                best = controller.calibrate(X, y).best_predict_param
        return None if best is None else float(best)

    return pick


def ours(model: object, order: str, n_thresholds: int) -> Method:
    """`RiskControlledThreshold`, its order known or searched for."""

    def pick(X: Array, y: Array) -> float | None:
        tuned = RiskControlledThreshold(
            model,
            risks={"false_positive_rate": LIMIT},
            minimize="false_negative_rate",
            delta=DELTA,
            n_thresholds=n_thresholds,
            order=order,
            random_state=0,
        ).fit(X, y)
        config = tuned.selection_.config
        return None if config is None else float(config["threshold"])

    return pick


def with_precision(
    model: object, highest_first: bool, highest: float = 0.99, n_thresholds: int = 100
) -> Method:
    """A precision of at least 0.7, tested from the highest threshold on, or in a searched order."""
    levels = np.linspace(highest, 0.0, n_thresholds)
    problem = rp.Problem([rp.Risk("precision", at_least=PRECISION)], "missed", DELTA)

    def pick(X: Array, y: Array) -> float | None:
        score = model.predict_proba(X)[:, 1]  # type: ignore[attr-defined]
        flagged = score >= levels[:, None]
        wrong = np.where(flagged, y == 0, np.nan)
        missed = (~flagged & (y == 1)).sum(axis=1) / (y == 1).sum()
        k = len(y) // 2
        if highest_first:
            selection = rp.select_from_losses(
                problem,
                validation={"missed": missed},
                calibration={"precision": wrong},
                order=range(len(levels)),
            )
        else:
            selection = rp.select_from_losses(
                problem,
                validation={"precision": wrong[:, :k], "missed": missed},
                calibration={"precision": wrong[:, k:]},
            )
        return None if selection.config is None else float(levels[selection.config["index"]])

    return pick


def measure(draws: int, size: int, only: str) -> dict[str, dict[str, float]]:
    """Run every method on the same draws; ``only``: a part of the names of those to run."""
    adult = load_adult()
    label = adult.label.astype(int)
    order = np.random.default_rng(0).permutation(len(label))
    trained, rest = order[:5000], order[5000:]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(adult.features[trained], label[trained])
    X, y, score = (
        adult.features[rest],
        label[rest],
        model.predict_proba(adult.features[rest])[:, 1],
    )
    methods = {
        "riskpilot, known order, 100 thresholds": ours(model, "monotone", 100),
        "riskpilot, known order, 1,000 thresholds": ours(model, "monotone", 1000),
        "riskpilot, known order, every score": ours(model, "monotone", 2_001),
        "riskpilot, searched order, 100 thresholds": ours(model, "searched", 100),
        "MAPIE, fixed sequence, 100 thresholds": mapie(model, "fixed_sequence", 100),
        "MAPIE, fixed sequence, 1,000 thresholds": mapie(model, "fixed_sequence", 1000),
        "MAPIE, split fixed sequence, 100 thresholds": mapie(model, "split_fixed_sequence", 100),
        "MAPIE, Bonferroni-Holm, 100 thresholds": mapie(model, "bonferroni_holm", 100),
        "precision, highest threshold first": with_precision(model, True),
        "precision, searched order": with_precision(model, False),
        # Hardly anybody is flagged at first, which shows nothing: the test ends where it begins.
        "precision, highest of 1,000 thresholds first": with_precision(model, True, 0.9999, 1_000),
        "precision, searched among 1,000 thresholds": with_precision(model, False, 0.9999, 1_000),
    }
    return {
        name: _rates(name, method, X, y, score, draws, size)
        for name, method in methods.items()
        if only in name
    }


def _rates(
    name: str, method: Method, X: Array, y: Array, score: Array, draws: int, size: int
) -> dict[str, float]:
    """Apply a method to every draw and count on the people that were not drawn."""
    missed, broken, certified = [], 0, 0
    for seed in range(draws):
        drawn = np.zeros(len(y), dtype=bool)
        drawn[np.random.default_rng(seed).permutation(len(y))[:size]] = True
        threshold = method(X[drawn], y[drawn])
        flagged = score[~drawn] >= (np.inf if threshold is None else threshold)
        truth = y[~drawn] == 1
        missed.append(float((~flagged)[truth].mean()))
        certified += threshold is not None
        if name.startswith("precision"):
            broken += bool(flagged.any()) and float(truth[flagged].mean()) < PRECISION
        else:
            broken += float(flagged[~truth].mean()) > LIMIT
    return {
        "false negative rate": float(np.mean(missed)),
        "its standard error": float(np.std(missed) / np.sqrt(draws)),
        "limit broken": broken / draws,
        "certified": certified / draws,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="a part of the names of the methods to run")
    options = parser.parse_args(arguments)
    found = measure(options.draws, options.size, options.only)
    for name, row in found.items():
        print(f"{name:45s} " + "  ".join(f"{key} {value:.3f}" for key, value in row.items()))
    if options.only and options.out.exists():  # the others stay as they were
        found = {**json.loads(options.out.read_text())["methods"], **found}
    content = {"draws": options.draws, "size": options.size, "methods": found}
    options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
