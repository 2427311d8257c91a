"""A search on real data, from the limit to the certificate, in less than two minutes.

Who earns more than 50,000 dollars a year (Adult census data)? Gradient boosting learns it, and also
that men do so more often than women. The demo limits the error and makes the gap between the two
groups as small as that limit allows. The model never sees the sex of a person; the knob against the
gap is in the weights of the training data, which move from plain (0) to those under which sex and
income are independent (1, Kamiran and Calders' reweighing) and beyond.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # of scikit-learn

from riskpilot.common.arrays import BoolArray, FloatArray, IntArray
from riskpilot.datasets import load_adult
from riskpilot.losses import Evaluation
from riskpilot.plots import save_figure
from riskpilot.problem import Problem, Risk
from riskpilot.selection import Selection, select_from_losses
from riskpilot.study import create_study, export_losses, objective, select

DELTA = 0.1
SAFE = {"reweigh": 0.0, "learning_rate": 0.2}  # plain training: the lowest error


@dataclass(frozen=True)
class Setting:
    """The sizes of a run.

    ``limit``: the largest error allowed; ``trials``: how many configurations are tried; ``train``,
    ``validation``, ``calibration``: numbers of people, the others test; ``trees``: of each model;
    ``draws``: how many times the choice is made again on data drawn anew.
    """

    limit: float = 0.15
    trials: int = 14
    train: int = 14_000
    validation: int = 5_000
    calibration: int = 10_000
    trees: int = 50
    draws: int = 200


FULL = Setting()
QUICK = Setting(  # a matter of seconds, with weaker models and so a higher limit
    limit=0.165, trials=9, train=3_000, validation=3_000, calibration=6_000, trees=25, draws=40
)


@dataclass(frozen=True)
class Data:
    """Adult in parts, each a list of rows. ``held_out``: calibration data, then test data."""

    features: npt.NDArray[np.float32]
    label: BoolArray
    male: BoolArray
    train: IntArray
    validation: IntArray
    held_out: IntArray


@dataclass(frozen=True)
class Outcomes:
    """What a model does on some people: to whom it gives a high income, and where it errs."""

    predicted: BoolArray
    error: BoolArray
    male: BoolArray

    @property
    def gap(self) -> float:
        """The gap between the two groups."""
        return parity_gap(self.predicted, self.male)

    def part(self, rows: IntArray | slice) -> "Outcomes":
        """Take some of the people."""
        return Outcomes(self.predicted[rows], self.error[rows], self.male[rows])


@dataclass(frozen=True)
class Trained:
    """One evaluated configuration."""

    config: dict[str, float]
    validation: Outcomes
    held_out: Outcomes


@dataclass(frozen=True)
class Habit:
    """How a way to choose fares when its data is drawn many times.

    ``broken``: the share of draws in which the choice breaks the limit; ``gap``: the mean gap of
    what was chosen; ``chosen``: the share of draws with a choice at all.
    """

    broken: float
    gap: float
    chosen: float


@dataclass(frozen=True)
class Demo:
    """All that a run found."""

    problem: Problem
    study: optuna.Study
    trained: tuple[Trained, ...]
    selection: Selection

    @property
    def usual(self) -> Trained | None:
        """The choice of common practice: the smallest gap that keeps the limit on validation."""
        errors = np.array([float(one.validation.error.mean()) for one in self.trained])
        gaps = np.array([one.validation.gap for one in self.trained])
        row = _best_within(errors, gaps, _limit(self.problem))
        return None if row is None else self.trained[row]


def demo_problem(setting: Setting) -> Problem:
    """Write the limit on the error, and the gap as the free objective."""
    return Problem([Risk("error", limit=setting.limit)], minimize="gap", delta=DELTA)


def run(
    setting: Setting = FULL,
    *,
    seed: int = 0,
    after_each: Callable[[optuna.Study], None] = lambda study: None,
) -> Demo:
    """Search, test and select; the same seed gives the same result."""
    problem = demo_problem(setting)
    data = load(setting, seed)
    trained: list[Trained] = []

    def evaluate(trial: optuna.Trial) -> Evaluation:
        config = {
            "reweigh": trial.suggest_float("reweigh", 0.0, 2.5),
            "learning_rate": trial.suggest_float("learning_rate", 0.05, 0.4, log=True),
        }
        one = train(data, config, setting.trees, seed)
        trained.append(one)
        return Evaluation(
            validation={"error": one.validation.error, "gap": one.validation.gap},
            calibration={"error": one.held_out.error[: setting.calibration]},
        )

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = create_study(problem, seed=seed, safe=SAFE)
        study.optimize(
            objective(study, evaluate),
            n_trials=setting.trials,
            callbacks=[lambda study, _trial: after_each(study)],
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
    return Demo(problem, study, tuple(trained), select(study))


def write(demo: Demo, folder: Path) -> dict[str, Path]:
    """Write what the run leaves behind, and say where each file is."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "trade-off.html"
    save_figure(demo.selection.figure(), picture)
    return {
        "picture": picture,
        "report": demo.selection.report(folder / "report.html"),
        "certificate": demo.selection.certificate.save(folder / "certificate.json"),
        "losses": export_losses(demo.study, folder / "losses.npz"),
    }


def compare(
    demo: Demo,
    setting: Setting = FULL,
    *,
    seed: int = 0,
    after_each: Callable[[], None] = lambda: None,
) -> dict[str, Habit]:
    """Count how often each way to choose among the trained models breaks the limit.

    The held-out people, whom neither training nor search has seen, stand in for the world. Many
    times validation and calibration data is drawn from them (with replacement, so that they are the
    world exactly), each way makes its choice, and its error over all of them is looked up.
    """
    limit = _limit(demo.problem)
    world = [one.held_out for one in demo.trained]
    errors = np.array([one.error for one in world])  # (configurations, people)
    truth = np.column_stack([errors.mean(axis=1), [one.gap for one in world]])
    rng = np.random.default_rng([seed, 1])
    choices: dict[str, list[int | None]] = {"usual": [], "usual, all data": [], "riskpilot": []}
    for _ in range(setting.draws):
        rows = rng.integers(errors.shape[1], size=setting.validation + setting.calibration)
        seen, sealed = np.split(rows, [setting.validation])
        gaps = np.array([one.part(seen).gap for one in world])
        all_gaps = np.array([one.part(rows).gap for one in world])
        selection = select_from_losses(
            demo.problem,
            validation={"error": errors[:, seen], "gap": gaps},
            calibration={"error": errors[:, sealed]},
        )
        config = selection.config
        choices["usual"].append(_best_within(errors[:, seen].mean(axis=1), gaps, limit))
        choices["usual, all data"].append(
            _best_within(errors[:, rows].mean(axis=1), all_gaps, limit)
        )
        choices["riskpilot"].append(None if config is None else config["index"])
        after_each()
    return {name: _habit(rows, truth, limit) for name, rows in choices.items()}


def load(setting: Setting, seed: int) -> Data:
    """Load Adult without the columns of sex, and deal its people at random to the parts."""
    adult = load_adult()
    keep = [i for i, name in enumerate(adult.feature_names) if not name.startswith("sex_")]
    order = np.random.default_rng(seed).permutation(len(adult.label))
    parts = np.split(order, np.cumsum([setting.train, setting.validation]))
    return Data(adult.features[:, keep], adult.label, adult.male, *parts)


def train(data: Data, config: dict[str, float], trees: int, seed: int) -> Trained:
    """Fit one model and record what it does on validation and held-out data."""
    label = data.label[data.train]
    weights = fair_weights(label, data.male[data.train]) ** config["reweigh"]
    model = HistGradientBoostingClassifier(
        learning_rate=config["learning_rate"],
        max_iter=trees,
        max_leaf_nodes=15,
        early_stopping=False,
        random_state=seed,
    )
    # On data of this size several threads spend their time waiting for each other.
    with threadpool_limits(1):
        model.fit(data.features[data.train], label, sample_weight=weights)
        return Trained(
            config, _outcomes(data, model, data.validation), _outcomes(data, model, data.held_out)
        )


def fair_weights(label: BoolArray, male: BoolArray) -> FloatArray:
    """Compute weights under which label and group are independent: P(label) P(group) / P(both).

    >>> label, male = np.array([True, True, False, False]), np.array([True, True, True, False])
    >>> fair_weights(label, male)
    array([0.75, 0.75, 1.5 , 0.5 ])
    """
    weights = np.ones(len(label))
    for value in (False, True):
        for group in (False, True):
            both = (label == value) & (male == group)
            if both.any():
                share = (label == value).mean() * (male == group).mean()
                weights[both] = share / both.mean()
    return weights


def parity_gap(predicted: BoolArray, male: BoolArray) -> float:
    """Compute how much more often one group is given a high income than the other."""
    return abs(float(predicted[male].mean() - predicted[~male].mean()))


def _outcomes(data: Data, model: Any, rows: IntArray) -> Outcomes:
    """Predict for some people, and compare with the truth."""
    predicted = np.asarray(model.predict(data.features[rows]), dtype=bool)
    return Outcomes(predicted, predicted != data.label[rows], data.male[rows])


def _best_within(errors: FloatArray, gaps: FloatArray, limit: float) -> int | None:
    """Find the smallest gap among the errors up to the limit; None where there is none."""
    feasible = np.flatnonzero(errors <= limit)
    return int(feasible[np.argmin(gaps[feasible])]) if len(feasible) else None


def _habit(rows: list[int | None], truth: FloatArray, limit: float) -> Habit:
    """Look up what the choices do to everybody; ``truth``: error and gap of each model."""
    chosen = truth[[row for row in rows if row is not None]]
    return Habit(
        broken=float((chosen[:, 0] > limit).sum()) / len(rows),
        gap=float(chosen[:, 1].mean()) if len(chosen) else float("nan"),
        chosen=len(chosen) / len(rows),
    )


def _limit(problem: Problem) -> float:
    """Return the limit on the error."""
    limit = problem.risks[0].limit
    assert limit is not None
    return limit
