"""Tasks that train a model anew for each configuration, with 7 to 20 parameters.

All of them are reported: no choice about the search was made on them. Adult ships with riskpilot;
the folder that the environment variable ``RISKPILOT_DATA`` names holds ``mnist/`` and ``ag_news/``.
"""

import gzip
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import normalize

import riskpilot as rp
from experiments.pruning.ag_news import read_texts
from experiments.side_by_side import Config, MakeTask, SearchTask, Suggest
from riskpilot.common.arrays import Array, FloatArray
from riskpilot.datasets import load_adult

SIZES = {"train": 2_000, "validation": 2_000, "calibration": 2_000, "test": 9_000}
DATA = "RISKPILOT_DATA"
Losses = Mapping[str, Any]


def _split(n: int, key: int, seed: int) -> dict[str, Array]:
    """Draw the rows of each part."""
    order = np.random.default_rng([key, seed]).permutation(n)
    ends = np.cumsum(list(SIZES.values()))
    return dict(zip(SIZES, np.split(order[: ends[-1]], ends[:-1]), strict=True))


def task_of(
    risk: rp.Risk,
    minimize: str,
    safe: Config,
    n_trials: int,
    suggest: Suggest,
    losses: Callable[[Config], Mapping[str, Losses]],
    n_counted: int = SIZES["calibration"],
) -> SearchTask:
    """Make a task whose losses on test come with those of the other parts."""
    kept: dict[str, Mapping[str, Losses]] = {}

    def trained_once(config: Config) -> Mapping[str, Losses]:
        key = repr(sorted(config.items()))
        if key not in kept:
            kept[key] = losses(config)
        return kept[key]

    def on_test(config: Config) -> tuple[float, float]:
        found = trained_once(config)["test"]
        return float(np.nanmean(found[risk.name])), float(np.nanmean(found[minimize]))

    problem = rp.Problem([risk], minimize, delta=0.1)
    return SearchTask(problem, safe, n_trials, suggest, trained_once, on_test, n_counted)


def boosting_on_adult(seed: int, limit: float) -> SearchTask:
    """Seven parameters of boosting: few errors, and rates of alarm that are alike for both sexes.

    Weights that make income and sex independent are mixed with equal ones (``fair``).
    """
    adult = load_adult()
    rows = _split(len(adult.label), 1, seed)
    features, label, male = adult.features, adult.label, adult.male
    train = rows["train"]
    cell = 2 * label[train] + male[train]
    share = np.bincount(cell, minlength=4) / len(train)
    expected = np.outer(
        [1 - label[train].mean(), label[train].mean()], [1 - male[train].mean(), male[train].mean()]
    ).ravel()
    independent = (expected / np.maximum(share, 1e-9))[cell]

    def suggest(trial: optuna.Trial) -> Config:
        return {
            "rate": trial.suggest_float("rate", 0.01, 0.5, log=True),
            "rounds": trial.suggest_int("rounds", 5, 60, log=True),
            "leaves": trial.suggest_int("leaves", 2, 31, log=True),
            "leaf": trial.suggest_int("leaf", 5, 200, log=True),
            "ridge": trial.suggest_float("ridge", 1e-3, 1e2, log=True),
            "alone": trial.suggest_categorical("alone", [False, True]),
            "fair": trial.suggest_float("fair", 0.0, 2.0),
        }

    def losses(config: Config) -> dict[str, Losses]:
        model = HistGradientBoostingClassifier(
            learning_rate=config["rate"],
            max_iter=config["rounds"],
            max_leaf_nodes=config["leaves"],
            min_samples_leaf=config["leaf"],
            l2_regularization=config["ridge"],
            interaction_cst="no_interactions" if config["alone"] else None,
            early_stopping=False,
            random_state=0,
        )
        weights = np.maximum(1 + config["fair"] * (independent - 1), 0.0)
        model.fit(features[train], label[train], sample_weight=weights)
        found: dict[str, Losses] = {}
        for part, where in rows.items():
            if part != "train":
                flagged = model.predict(features[where])
                gap = flagged[male[where]].mean() - flagged[~male[where]].mean()
                found[part] = {"error": flagged != label[where], "gap": float(abs(gap))}
        return found

    safe = {"rate": 0.1, "rounds": 40, "leaves": 15, "leaf": 20, "ridge": 1e-3}
    safe |= {"alone": False, "fair": 0.0}
    return task_of(rp.Risk("error", limit), "gap", safe, 30, suggest, losses)


def network_on_mnist(seed: int, limit: float) -> SearchTask:
    """Ten parameters of a network for digits: few errors, and few multiplications."""
    images, label = _digits()
    rows = _split(len(label), 2, seed)
    largest = 196 * 128 + 128 * 128 + 128 * 10

    def suggest(trial: optuna.Trial) -> Config:
        return {
            "side": trial.suggest_int("side", 5, 14),
            "first": trial.suggest_int("first", 8, 128, log=True),
            "second": trial.suggest_int("second", 8, 128, log=True),
            "activation": trial.suggest_categorical("activation", ["relu", "tanh"]),
            "rate": trial.suggest_float("rate", 1e-4, 3e-2, log=True),
            "decay": trial.suggest_float("decay", 1e-6, 1e-1, log=True),
            "batch": trial.suggest_int("batch", 16, 256, log=True),
            "epochs": trial.suggest_int("epochs", 2, 12),
            "momentum": trial.suggest_float("momentum", 0.5, 0.99),
            "contrast": trial.suggest_float("contrast", 0.3, 3.0, log=True),
        }

    def losses(config: Config) -> dict[str, Losses]:
        pixels = {
            part: _seen(images[where], config["side"]) ** config["contrast"]
            for part, where in rows.items()
        }
        model = MLPClassifier(
            (config["first"], config["second"]),
            activation=config["activation"],
            learning_rate_init=config["rate"],
            alpha=config["decay"],
            batch_size=config["batch"],
            max_iter=config["epochs"],
            beta_1=config["momentum"],
            tol=0.0,
            n_iter_no_change=config["epochs"] + 1,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is meant to stop after so many epochs
            model.fit(pixels["train"], label[rows["train"]])
        inputs = config["side"] ** 2
        multiplications = inputs * config["first"] + config["first"] * config["second"]
        cost = (multiplications + 10 * config["second"]) / largest
        return {
            part: {"error": model.predict(pixels[part]) != label[where], "cost": cost}
            for part, where in rows.items()
            if part != "train"
        }

    safe = {"side": 14, "first": 128, "second": 128, "activation": "relu", "rate": 3e-3}
    safe |= {"decay": 1e-4, "batch": 32, "epochs": 12, "momentum": 0.9, "contrast": 1.0}
    return task_of(rp.Risk("error", limit), "cost", safe, 40, suggest, losses)


def words_of_ag_news(seed: int, limit: float) -> SearchTask:
    """Twenty parameters of a linear model on words: few wrong answers, few texts handed over."""
    blocks, label = _texts()
    rows = _split(len(label), 3, seed)
    numbers = {
        **{f"weight_{name}": (0.05, 5.0, True) for name in blocks},
        **{f"power_{name}": (0.1, 1.0, False) for name in blocks},
        **{f"rare_{name}": (-2.0, 2.0, False) for name in blocks},
        **{f"prior_{topic}": (0.3, 3.0, True) for topic in range(4)},
        "decay": (1e-6, 1e-2, True),
        "mixture": (0.0, 1.0, False),
        "cut": (0.0, 1.0, False),
    }

    def suggest(trial: optuna.Trial) -> Config:
        config: Config = {
            name: trial.suggest_float(name, low, high, log=log)
            for name, (low, high, log) in numbers.items()
        }
        config["epochs"] = trial.suggest_int("epochs", 1, 10)
        config["loss"] = trial.suggest_categorical("loss", ["log_loss", "modified_huber"])
        config["norm"] = trial.suggest_categorical("norm", ["l1", "l2"])
        config["average"] = trial.suggest_categorical("average", [False, True])
        return config

    def losses(config: Config) -> dict[str, Losses]:
        weighted = sparse.hstack(
            [_weighted(name, config) for name in blocks],
            format="csr",
        )
        values = normalize(weighted, norm=config["norm"])
        model = SGDClassifier(
            loss=config["loss"],
            penalty="elasticnet",
            l1_ratio=config["mixture"] * 0.3,
            alpha=config["decay"],
            max_iter=config["epochs"],
            tol=None,
            average=config["average"],
            class_weight={topic: config[f"prior_{topic}"] for topic in range(4)},
            random_state=0,
        )
        model.fit(values[rows["train"]], label[rows["train"]])
        found: dict[str, Losses] = {}
        for part, where in rows.items():
            if part != "train":
                chances = model.predict_proba(values[where])
                answered = chances.max(axis=1) >= config["cut"]
                wrong = chances.argmax(axis=1) != label[where]
                found[part] = {"wrong": answered & wrong, "handed_over": ~answered}
        return found

    safe: Config = {
        name: (low * high) ** 0.5 if log else 0.5 for name, (low, high, log) in numbers.items()
    }
    safe |= {"cut": 0.99, "mixture": 0.0, "decay": 1e-4, "epochs": 5}
    safe |= {"loss": "log_loss", "norm": "l2", "average": True}
    return task_of(rp.Risk("wrong", limit), "handed_over", safe, 40, suggest, losses)


def _weighted(name: str, config: Config) -> Any:
    """Weigh the counts of one block: by their power, by how rare they are, and as a whole."""
    counts = _texts()[0][name].copy()
    counts.data = counts.data ** config[f"power_{name}"]
    rare = _rarity(name) ** config[f"rare_{name}"]
    return counts @ sparse.diags(config[f"weight_{name}"] * rare)


@cache
def _rarity(name: str) -> FloatArray:
    """Compute the logarithm of how rare each column of a block is, at least 1."""
    counts = _texts()[0][name]
    return 1 + np.log((1 + counts.shape[0]) / (1 + counts.getnnz(axis=0)))


def _seen(images: Array, side: int) -> FloatArray:
    """Average images of 28 x 28 over a grid of so many cells a side."""
    edges = np.linspace(0, 28, side + 1).astype(int)
    rows = np.add.reduceat(images.astype(np.float32), edges[:-1], axis=1)
    cells = np.add.reduceat(rows, edges[:-1], axis=2)
    area = np.outer(np.diff(edges), np.diff(edges))
    return (cells / (255.0 * area)).reshape(len(images), -1)


@cache
def _digits() -> tuple[Array, Array]:
    """Load 20,000 digits of MNIST and their labels."""
    folder = _folder() / "mnist"
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)[:20_000]
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:20_000]
    return images, labels


@cache
def _texts() -> tuple[dict[str, Any], Array]:
    """Load 15,000 texts of AG News as counts of words, of pairs of words and of parts of words."""
    train, _ = read_texts(_folder())
    few = [train[i] for i in np.random.default_rng(0).permutation(len(train))[:15_000]]
    texts, label = [text for _, text in few], np.array([label for label, _ in few])
    counters = {
        "words": CountVectorizer(min_df=5, max_features=10_000, dtype=np.float32),
        "pairs": CountVectorizer(
            min_df=8, ngram_range=(2, 2), max_features=8_000, dtype=np.float32
        ),
        "parts": CountVectorizer(
            min_df=10, analyzer="char_wb", ngram_range=(3, 3), max_features=4_000, dtype=np.float32
        ),
    }
    return {name: counter.fit_transform(texts) for name, counter in counters.items()}, label


def _folder() -> Path:
    if DATA not in os.environ:
        raise SystemExit(
            f"MNIST and AG News are read from a folder that holds mnist/ and ag_news/, but none is "
            f"named. Set {DATA}, or run the tasks on Adult alone."
        )
    return Path(os.environ[DATA])


LIMITS: dict[str, tuple[MakeTask, Sequence[float]]] = {
    "boosting on Adult": (boosting_on_adult, (0.165, 0.175)),
    "network on MNIST": (network_on_mnist, (0.12, 0.15)),
    "words of AG News": (words_of_ag_news, (0.05, 0.08)),
}
TASKS: dict[str, MakeTask] = {
    f"{name}, {limit:g}": partial(make, limit=limit)
    for name, (make, limits) in LIMITS.items()
    for limit in limits
}
