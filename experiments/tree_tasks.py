"""Tasks whose parameters exist under conditions; those for tuning and those that are reported.

Choices about the default were made on `TUNING` alone; `REPORTED` was looked at when they were made.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import optuna
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import riskpilot as rp
from experiments.side_by_side import Config, MakeTask, SearchTask, Suggest
from riskpilot.common.arrays import Array, FloatArray
from riskpilot.datasets import load_adult

SIZES = {"validation": 2_000, "calibration": 2_000}


def _made_up(
    seed: int,
    limit: float,
    safe: Config,
    n_trials: int,
    suggest: Suggest,
    risk_and_cost: Callable[[Config], tuple[float, float]],
) -> SearchTask:
    """Make a task of 0/1 losses that are drawn alike for all configurations."""
    rng = np.random.default_rng([20_26, seed])
    luck = {part: rng.random(n) for part, n in SIZES.items()}
    turn = {part: rng.normal(scale=0.3, size=n) for part, n in SIZES.items()}

    def losses(config: Config) -> Mapping[str, Mapping[str, Any]]:
        risk, cost = risk_and_cost(config)
        return {
            part: {"error": (luck[part] + cost * turn[part]) % 1.0 < risk, "cost": cost}
            for part in SIZES
        }

    problem = rp.Problem([rp.Risk("error", limit)], "cost", delta=0.1)
    return SearchTask(problem, safe, n_trials, suggest, losses, risk_and_cost, SIZES["calibration"])


def _trade_off(flaw: float, share: float) -> tuple[float, float]:
    """Compute risk and cost where a ``share`` of the work is left to a model with such a flaw."""
    return float(min(0.01 + flaw * share**1.5, 0.99)), float(1 - 0.95 * share)


def branches(seed: int) -> SearchTask:
    """Three models with one to three parameters of their own, each best somewhere inside."""
    rng = np.random.default_rng([1, seed])
    base = dict(zip("abc", rng.permutation([0.15, 0.2, 0.3]), strict=True))
    sizes = {"a": 2, "b": 3, "c": 1}
    best = {model: rng.uniform(0.15, 0.85, n) for model, n in sizes.items()}
    weight = {model: rng.uniform(0.5, 2.5, n) for model, n in sizes.items()}

    def suggest(trial: optuna.Trial) -> Config:
        model = trial.suggest_categorical("model", ["a", "b", "c"])
        own = {f"{model}{i}": (0.0, 1.0) for i in range(sizes[model])}
        values = {name: trial.suggest_float(name, *ends) for name, ends in own.items()}
        return {"share": trial.suggest_float("share", 0.0, 1.0), "model": model, **values}

    def risk_and_cost(config: Config) -> tuple[float, float]:
        model = config["model"]
        own = np.array([config[f"{model}{i}"] for i in range(sizes[model])])
        flaw = base[model] + float(weight[model] @ (own - best[model]) ** 2)
        return _trade_off(flaw, config["share"])

    safe = {"share": 0.0, "model": "c", "c0": 0.5}
    return _made_up(seed, 0.08, safe, 40, suggest, risk_and_cost)


def layers(seed: int) -> SearchTask:
    """A number of layers, and a width and a rate for each of them."""
    rng = np.random.default_rng([2, seed])
    depth = int(rng.integers(2, 5))
    width, rate = rng.uniform(0.2, 0.8, 4), rng.uniform(0.1, 0.6, 4)

    def suggest(trial: optuna.Trial) -> Config:
        n = trial.suggest_int("layers", 1, 4)
        config: Config = {"layers": n, "share": trial.suggest_float("share", 0.0, 1.0)}
        for i in range(n):
            config[f"width{i}"] = trial.suggest_int(f"width{i}", 8, 512, log=True)
            config[f"rate{i}"] = trial.suggest_float(f"rate{i}", 0.0, 0.7)
        return config

    def risk_and_cost(config: Config) -> tuple[float, float]:
        n = config["layers"]
        widths = np.log2([config[f"width{i}"] / 8 for i in range(n)]) / 6
        rates = np.array([config[f"rate{i}"] for i in range(n)])
        misfit = 1.5 * (widths - width[:n]) ** 2 + (rates - rate[:n]) ** 2
        flaw = 0.12 + 0.08 * abs(n - depth) + float(misfit.sum() / np.sqrt(n))
        return _trade_off(flaw, config["share"])

    safe = {"layers": 1, "share": 0.0, "width0": 64, "rate0": 0.3}
    return _made_up(seed, 0.06, safe, 50, suggest, risk_and_cost)


def nested(seed: int) -> SearchTask:
    """A tree of two levels: a kernel has a shape, and only some shapes have a degree."""
    rng = np.random.default_rng([3, seed])
    level = dict(
        zip(("line", "rbf", "poly", "forest", "boosted"), rng.uniform(0.1, 0.3, 5), strict=True)
    )
    where = rng.uniform(0.1, 0.9, 8)
    slope = rng.uniform(0.3, 1.5, 8)

    def suggest(trial: optuna.Trial) -> Config:
        config: Config = {"share": trial.suggest_float("share", 0.0, 1.0)}
        config["model"] = trial.suggest_categorical("model", ["line", "kernel", "trees"])
        if config["model"] == "line":
            config["ridge"] = trial.suggest_float("ridge", 1e-4, 1e2, log=True)
        elif config["model"] == "kernel":
            config["penalty"] = trial.suggest_float("penalty", 1e-2, 1e3, log=True)
            config["shape"] = trial.suggest_categorical("shape", ["rbf", "poly"])
            if config["shape"] == "poly":
                config["degree"] = trial.suggest_int("degree", 2, 6)
            else:
                config["width"] = trial.suggest_float("width", 1e-3, 10.0, log=True)
        else:
            config["depth"] = trial.suggest_int("depth", 1, 16)
            config["boosted"] = trial.suggest_categorical("boosted", [False, True])
            if config["boosted"]:
                config["rate"] = trial.suggest_float("rate", 1e-3, 1.0, log=True)
                config["sample"] = trial.suggest_float("sample", 0.1, 1.0)
        return config

    def risk_and_cost(config: Config) -> tuple[float, float]:
        kind = {"line": "line", "kernel": config.get("shape"), "trees": "forest"}[config["model"]]
        kind = "boosted" if config.get("boosted") else kind
        places = {
            "ridge": lambda v: np.log10(v * 1e4) / 6,
            "penalty": lambda v: np.log10(v * 1e2) / 5,
            "degree": lambda v: (v - 2) / 4,
            "width": lambda v: np.log10(v * 1e3) / 4,
            "depth": lambda v: (v - 1) / 15,
            "rate": lambda v: np.log10(v * 1e3) / 3,
            "sample": lambda v: (v - 0.1) / 0.9,
        }
        flaw = level[kind]
        for i, (name, place) in enumerate(places.items()):
            if name in config:  # flat at the best place, and ever steeper away from it
                flaw += slope[i] * abs(place(config[name]) - where[i]) ** 1.5
        return _trade_off(flaw, config["share"])

    safe = {"share": 0.0, "model": "line", "ridge": 0.1}
    return _made_up(seed, 0.07, safe, 50, suggest, risk_and_cost)


def pipeline(seed: int) -> SearchTask:
    """Two choices side by side, each with parameters of its own: what goes in, and the model."""
    rng = np.random.default_rng([4, seed])
    names = {
        "words": ("grams", "rare"),
        "vectors": ("size", "pooling"),
        "linear": ("decay",),
        "network": ("hidden", "dropout"),
    }
    level = {kind: rng.uniform(0.3, 0.5) for kind in names}
    best = {name: rng.uniform(0.1, 0.9) for each in names.values() for name in each}
    tilt = {name: rng.uniform(0.3, 1.2) for name in best}

    def suggest(trial: optuna.Trial) -> Config:
        config: Config = {
            "inputs": trial.suggest_categorical("inputs", ["words", "vectors"]),
            "model": trial.suggest_categorical("model", ["linear", "network"]),
        }
        for name in (*names[config["inputs"]], *names[config["model"]]):
            config[name] = trial.suggest_float(name, 0.0, 1.0)
        config["share"] = trial.suggest_float("share", 0.0, 1.0)
        return config

    def risk_and_cost(config: Config) -> tuple[float, float]:
        flaw = 1.0
        for kind in (config["inputs"], config["model"]):
            misfit = [tilt[name] * (config[name] - best[name]) ** 2 for name in names[kind]]
            flaw *= level[kind] + sum(misfit)
        return _trade_off(flaw, config["share"])

    safe = {"inputs": "words", "model": "linear", "grams": 0.5, "rare": 0.5, "decay": 0.5}
    return _made_up(seed, 0.06, {**safe, "share": 0.0}, 40, suggest, risk_and_cost)


def three_models_on_adult(seed: int) -> SearchTask:
    """Which of three models of scikit-learn finds those who earn much with few false alarms?

    Every configuration is trained anew on 1,500 people. At most 15 % of those who earn much may be
    missed, and the share of alarms among the others is minimised.
    """
    features, label = _adult()
    n_test = 10_000
    order = np.random.default_rng([5, seed]).permutation(len(label))
    ends = np.cumsum([1_500, SIZES["validation"], SIZES["calibration"], n_test])
    train, *parts, test = np.split(order[: ends[-1]], ends[:-1])
    rows = {**dict(zip(SIZES, parts, strict=True)), "test": test}

    def suggest(trial: optuna.Trial) -> Config:
        config: Config = {
            "model": trial.suggest_categorical("model", ["linear", "forest", "boosting"]),
            "cut": trial.suggest_float("cut", 0.0, 0.6),
        }
        match config["model"]:
            case "linear":
                config["C"] = trial.suggest_float("C", 1e-4, 1e2, log=True)
            case "forest":
                config["depth"] = trial.suggest_int("depth", 2, 20)
                config["leaf"] = trial.suggest_int("leaf", 1, 50, log=True)
                config["features"] = trial.suggest_float("features", 0.03, 1.0, log=True)
            case "boosting":
                config["rate"] = trial.suggest_float("rate", 0.01, 0.5, log=True)
                config["leaves"] = trial.suggest_int("leaves", 2, 32, log=True)
                config["rounds"] = trial.suggest_int("rounds", 5, 80, log=True)
        return config

    scores: dict[str, dict[str, FloatArray]] = {}

    def flagged(config: Config) -> dict[str, Array]:
        key = repr(sorted(config.items()))
        if key not in scores:
            fitted = _classifier(config).fit(features[train], label[train])
            scores[key] = {
                part: fitted.predict_proba(features[where])[:, 1] for part, where in rows.items()
            }
        return {part: score >= config["cut"] for part, score in scores[key].items()}

    def losses(config: Config) -> dict[str, dict[str, FloatArray]]:
        found = {}
        for part, flags in flagged(config).items():
            rich = label[rows[part]]
            missed = np.where(rich, ~flags, np.nan)
            alarms = float(flags[~rich].mean())
            found[part] = {"missed": missed, "alarms": alarms}
        return found

    def on_test(config: Config) -> tuple[float, float]:
        found = losses(config)["test"]
        return float(np.nanmean(found["missed"])), float(found["alarms"])

    problem = rp.Problem([rp.Risk("missed", 0.15, conditional=True)], "alarms", delta=0.1)
    safe = {"model": "linear", "cut": 0.02, "C": 1.0}
    n_counted = int(label[rows["calibration"]].sum())
    return SearchTask(problem, safe, 40, suggest, losses, on_test, n_counted)


def _classifier(config: Config) -> Any:
    """Make the model of a configuration on Adult."""
    match config["model"]:
        case "linear":
            return LogisticRegression(C=config["C"], max_iter=300)
        case "forest":
            return RandomForestClassifier(
                n_estimators=40,
                max_depth=config["depth"],
                min_samples_leaf=config["leaf"],
                max_features=config["features"],
                random_state=0,
            )
        case _:
            return HistGradientBoostingClassifier(
                learning_rate=config["rate"],
                max_leaf_nodes=config["leaves"],
                max_iter=config["rounds"],
                early_stopping=False,
                random_state=0,
            )


@cache
def _adult() -> tuple[FloatArray, Array]:
    """Load Adult once, with scaled features."""
    adult = load_adult()
    return StandardScaler().fit_transform(adult.features.astype(np.float64)), adult.label


_FULL: dict[str, MakeTask] = {
    "branches": branches,
    "layers": layers,
    "nested": nested,
    "pipeline": pipeline,
    "three models on Adult": three_models_on_adult,
}


def _few(seed: int, make: MakeTask) -> SearchTask:
    """Make a task with three tenths of its evaluations: fewer than the initial pool holds."""
    task = make(seed)
    return replace(task, n_trials=round(0.3 * task.n_trials))


TASKS: dict[str, MakeTask] = {
    **_FULL,
    **{f"{name}, few": partial(_few, make=make) for name, make in _FULL.items()},
}
TUNING = ("branches", "layers", "branches, few", "layers, few")
REPORTED = tuple(name for name in TASKS if name not in TUNING)
