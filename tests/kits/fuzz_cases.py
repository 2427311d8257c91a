"""Every public function with valid calls of it, for `test_fuzz_kit` to make odd."""

import inspect
import json
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import riskpilot as rp
import riskpilot.sklearn as rps
from riskpilot.cli.app import app
from riskpilot.plots import power_curves
from riskpilot.tables import save_losses
from tests.kits.fuzzing import ODD_JSON, TEXTS, Case, Fresh, Outburst, st

N, K, M = 4, 60, 80
RNG = np.random.default_rng(0)
RATES = np.array([[0.02], [0.1], [0.3], [0.5]])


def _draw(size: int) -> np.ndarray:
    return RNG.random((N, size)) < RATES


def _grades(size: int) -> np.ndarray:
    return np.clip(RATES + 0.1 * RNG.random((N, size)), 0, 1)


PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")
GRADED = rp.Problem([rp.Risk("error", 0.4)], "cost")
OPEN = rp.Problem([rp.Risk("error", None)], "cost")
TWO = rp.Problem([rp.Risk("error", 0.4), rp.Risk("harm", 2.0, low=-1, high=4)], "cost")
STATISTICS = (
    rp.Mean(),
    rp.WorstGroup(groups=("a", "b")),
    rp.GroupGap(groups=("a", "b")),
    rp.GroupGap(groups=("a", "b"), directed=True, within="label"),
    rp.Ratio(groups=("a", "b")),
    rp.Quantile(0.8),
    rp.CVaR(0.8),
    rp.Difference("reference"),
)
COST = np.array([4.0, 3.0, 2.0, 1.0])
VALIDATION = {"error": _draw(K), "cost": COST}
CALIBRATION = {"error": _draw(M)}


def _beside(statistic: Any, size: int) -> dict[str, Any]:
    """What a statistic needs beside the losses."""
    groups = np.array(["a", "b"])[np.arange(size) % 2]
    match statistic:
        case rp.GroupGap(within=within) if within is not None:
            return {"groups": groups, within: np.arange(size) // 2 % 2}
        case rp.WorstGroup() | rp.GroupGap() | rp.Ratio():
            return {"groups": groups}
        case rp.Difference(reference=reference):
            return {reference: np.zeros(size, dtype=bool)}
    return {}


def _table(problem: rp.Problem, graded: bool = False) -> dict[str, Any]:
    """Losses for every risk of a problem, with what stands beside them."""
    tables: dict[str, dict[str, Any]] = {"validation": {}, "calibration": {}}
    for table, size in zip(tables.values(), (K, M), strict=True):
        for risk in problem.risks:
            losses = _grades(size) if graded else _draw(size)
            if (risk.low, risk.high) != (0, 1):
                losses = risk.low * (1 - losses) + risk.high * losses
            if risk.conditional:
                losses = np.where(np.arange(size) % 3 == 0, np.nan, losses)
            table |= {risk.name: losses, **_beside(risk.statistic, size)}
            if risk.weights is not None and risk.largest_weight is not None:
                table[risk.weights] = np.full(size, min(1.0, risk.largest_weight))
    tables["validation"][problem.minimize] = COST
    return {"problem": problem, **tables}


CONFIGS = [{"size": i, "kind": "a"} for i in range(N)]
TABLES = (
    {**_table(PROBLEM), "configs": CONFIGS, "seed": 3},
    {
        "problem": GRADED,
        "validation": {"error": _grades(K), "cost": _grades(K)},
        "calibration": {"error": _grades(M)},
        "validation_ids": list(range(K)),
        "calibration_ids": list(range(K, K + M)),
    },
    {
        "problem": TWO,
        "validation": {"error": _draw(K), "harm": _grades(K), "cost": COST},
        "calibration": {"error": _draw(M), "harm": _grades(M)},
        "procedure": rp.holm,
    },
    _table(rp.Problem([rp.Risk("error", 0.6, conditional=True)], "cost"), graded=True),
    _table(rp.Problem([rp.Risk("error", 0.5, weights="w", largest_weight=2)], "cost")),
    *(_table(rp.Problem([rp.Risk("error", 0.45, statistic=s)], "cost")) for s in STATISTICS[1:]),
    {**_table(PROBLEM), "n_evaluated": [K, 20, 30, K]},
)


def _frozen() -> rp.FrozenPlan:
    """A plan with one candidate."""
    validation = {"error": VALIDATION["error"][:1], "cost": COST[:1]}
    return rp.freeze(PROBLEM, validation=validation)


def _calibrated(
    source: Any,
    horizon: Any,
    losses: Any,
    candidates: Any = None,
    fresh: Any = None,
    judge: Any = None,
    ids: Any = None,
) -> Any:
    """Add labels, and look at all that a calibration says."""
    calibration = rp.Calibration(source, horizon=horizon, judge=fresh)
    calibration.add(losses, candidates, judge=judge, ids=ids)
    calibration._repr_html_()
    return calibration.message, calibration.certified, calibration.needed, calibration.select()


def _saved_labels() -> Any:
    """The file of a calibration with some labels."""
    calibration = rp.Calibration(_frozen(), horizon=80)
    calibration.add({"error": _draw(40)[:1]})
    return calibration.save("labels.npz")


def _extreme_problems() -> tuple[rp.Problem, ...]:
    """Problems at the ends of what is accepted; those that are refused are left out."""
    risks: tuple[dict[str, Any], ...] = (
        *({"limit": limit} for limit in (5e-324, 1e-300, 1e-12, 1 - 1e-12, 1 - 1e-16, 0.5)),
        *({"limit": 0.0, "low": -high, "high": high} for high in (1e-300, 1e18, 1e149, 1e307)),
        {"limit": 1e-310, "high": 1e-300},
        {"limit": 1e18, "low": 1e18 - 1e3, "high": 1e18 + 1e3},
        *({"limit": 0.2, "p_value": test} for test in ("betting", "hoeffding", "binomial")),
        *({"limit": 0.2, "weights": "w", "largest_weight": w} for w in (5e-324, 1.0, 1e308)),
        *({"limit": limit, "statistic": rp.Difference()} for limit in (-0.99, -1e-300, 0.0, 0.99)),
        *({"limit": limit, "statistic": s} for s in STATISTICS[1:5] for limit in (1e-300, 0.99)),
        {"limit": 0.2, "conditional": True, "statistic": STATISTICS[3]},
        {"limit": 0.2, "conditional": True, "statistic": rp.Difference()},
        *({"limit": 0.2, "statistic": rp.WorstGroup((name, "a"))} for name in ("é", "x" * 300)),
    )
    levels = (1e-300, 1e-9, 1 - 1e-9, 1 - 1e-16)
    makers = [
        *(
            lambda kind=kind, level=level: rp.Problem(
                [rp.Risk("error", 0.2, statistic=kind(level))], "cost"
            )
            for kind in (rp.Quantile, rp.CVaR)
            for level in levels
        ),
        *(lambda one=one: rp.Problem([rp.Risk("error", **one)], "cost") for one in risks),
        *(
            lambda delta=delta: rp.Problem([rp.Risk("error", 0.3)], "cost", delta)
            for delta in (5e-324, 1e-300, 1e-100, 1e-12, 0.49, 0.999)
        ),
        lambda: rp.Problem([rp.Risk("error", 0.3), rp.Risk("other", 0.3)], "cost"),
        lambda: rp.Problem([rp.Risk("error", 0.3, conditional=True)], "cost"),
        lambda: OPEN,
    ]
    made = []
    for make in makers:
        with suppress(rp.RiskpilotError):
            made.append(make())
    return tuple(made)


EXTREME = _extreme_problems()
FAR = tuple(_table(problem, graded) for problem in EXTREME for graded in (False, True))


def _look(selection: rp.Selection) -> None:
    """What users do with a selection."""
    str(selection)
    repr(selection)
    selection._repr_html_()
    certificate = rp.Certificate.from_json(selection.certificate.to_json())
    certificate._repr_html_()
    assert certificate == selection.certificate


def _read(*values: Any) -> None:
    for value in values:
        with suppress(Outburst):  # of an object that was passed in and given back
            str(value)
            repr(value)


# Studies


class OwnError(Exception):
    """What a user's own evaluation raises."""


def _evaluate(trial: optuna.Trial) -> rp.Evaluation:
    try:
        row = trial.suggest_int("row", 0, N - 1)
    except (
        ValueError,
        UserWarning,
        Outburst,
    ) as error:  # a safe configuration outside of its own space
        raise OwnError from error
    return _evaluation_of(row)


def _evaluation_of(row: int) -> rp.Evaluation:
    return rp.Evaluation(
        validation={"error": VALIDATION["error"][row], "cost": COST[row]},
        calibration={"error": CALIBRATION["error"][row]},
    )


def _study(problem: rp.Problem = PROBLEM, n_trials: int = 3, **settings: Any) -> optuna.Study:
    study = rp.create_study(problem, seed=0, **settings)
    study.optimize(rp.objective(study, _evaluate), n_trials=n_trials)
    return study


def _stored() -> str:
    """The address of a study in a file of the working directory."""
    if not Path("study.db").exists():
        _study(storage="sqlite:///study.db", study_name="known")
    return "sqlite:///study.db"


def _search(study: optuna.Study) -> None:
    study.optimize(rp.objective(study, _evaluate), n_trials=3)


def _search_with(sampler: Any) -> None:
    _search(rp.create_study(PROBLEM, sampler=sampler, seed=0))


def _plain() -> optuna.Study:
    """A finished study of plain Optuna."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_int("row", 0, N - 1), n_trials=3)
    return study


def _losses_of(trial: optuna.trial.FrozenTrial) -> rp.Evaluation:
    return _evaluation_of(trial.params["row"])


def _tell(trial: Any, evaluation: Any, **ids: Any) -> None:
    """Tell a study of which trial 0 is running."""
    study = rp.create_study(PROBLEM, seed=0)
    study.ask().suggest_int("row", 0, N - 1)
    rp.tell(study, trial, evaluation, **ids)


def _record(evaluation: rp.Evaluation) -> None:
    """Let a study record an evaluation, and test it."""
    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=2)
    if evaluation.calibration is not None:
        _look(rp.select(study))


def _raced(block: Any, returned: Any) -> None:
    """Let a trial of a study with a whole evaluation yield a block, and return something."""

    def evaluate(trial: optuna.Trial) -> Any:
        if trial.number:
            trial.suggest_int("row", 0, N - 1)
            yield block
            return returned
        return _evaluate(trial)

    study = rp.create_study(PROBLEM, seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)


STUDIES = (
    Case(
        "create_study",
        rp.create_study,
        (
            {"problem": PROBLEM, "seed": 3},
            {"problem": PROBLEM, "safe": {"row": 1}},
            {"problem": PROBLEM, "warm_start": Fresh(_study)},
        ),
        use=_search,
        examples=150,
        allowed=(rp.RiskpilotError, OwnError, OSError),  # names of folders that are files
        far=tuple({"problem": problem, "seed": 0} for problem in EXTREME),
    ),
    Case(
        "load_study",
        rp.load_study,
        ({"storage": Fresh(_stored), "study_name": "known"},),
        examples=30,
    ),
    Case(
        "objective",
        rp.objective,
        ({"study": Fresh(lambda: rp.create_study(PROBLEM, seed=0)), "evaluate": _evaluate},),
    ),
    Case(
        "blocks of a race",
        _raced,
        (
            {
                "block": {"error": VALIDATION["error"][0], "cost": 1.0},
                "returned": {"error": CALIBRATION["error"][0]},
            },
        ),
    ),
    Case(
        "tell",
        _tell,
        (
            {
                "trial": 0,
                "evaluation": rp.Evaluation(
                    {"error": VALIDATION["error"][0], "cost": 1.0},
                    {"error": CALIBRATION["error"][0]},
                ),
                "validation_ids": list(range(K)),
                "calibration_ids": list(range(K, K + M)),
            },
        ),
    ),
    Case(
        "adopt",
        rp.adopt,
        (
            {
                "study": Fresh(_plain),
                "problem": PROBLEM,
                "losses": _losses_of,
                "study_name": "taken over",
                "seed": 0,
            },
        ),
        use=lambda study: _look(rp.select(study)),
        examples=60,
        allowed=(rp.RiskpilotError, OSError),  # names of folders that are files
    ),
    Case(
        "Evaluation",
        rp.Evaluation,
        (
            {
                "validation": {"error": VALIDATION["error"][0], "cost": 1.0},
                "calibration": {"error": CALIBRATION["error"][0]},
            },
            {"validation": {"error": VALIDATION["error"][0], "cost": VALIDATION["error"][1]}},
        ),
        use=_record,
        examples=150,
    ),
    Case(
        "select",
        rp.select,
        ({"study": Fresh(_study), "problem": PROBLEM},),
        use=_look,
        examples=150,
        far=tuple({"study": Fresh(_study), "problem": problem} for problem in EXTREME),
    ),
    Case(
        "seal",
        rp.seal,
        ({"study": Fresh(_study), "problem": PROBLEM},),
        use=lambda seal: _read(seal, seal.to_json(), seal._repr_html_()),
        examples=60,
        far=tuple({"study": Fresh(_study), "problem": problem} for problem in EXTREME),
    ),
    Case("ledger", rp.ledger, ({"study": Fresh(_study)},), examples=30),
    Case("suggest_limits", rp.suggest_limits, ({"study": Fresh(lambda: _study(OPEN))},)),
    Case(
        "set_limits",
        rp.set_limits,
        ({"study": Fresh(lambda: rp.create_study(OPEN, seed=0)), "error": 0.3},),
        use=_read,
    ),
    Case(
        "GuidedSampler",
        rp.GuidedSampler,
        (
            {"problem": PROBLEM, "seed": 1},
            {"problem": PROBLEM, "n_startup_trials": 2},
            {"problem": PROBLEM, "trust": 0.5, "doubt": 0.1},
        ),
        use=_search_with,
        examples=150,
        far=tuple({"problem": problem, "seed": 0} for problem in EXTREME),
    ),
    Case("StopWhenSettled", rp.StopWhenSettled, ({"gain": 0.01}, {"share": 0.1}), examples=30),
    Case(
        "ShowProgress",
        lambda study: rp.ShowProgress()(study, None),
        ({"study": Fresh(_study)},),
        examples=10,
    ),
    *(
        Case(
            name,
            partial(replace, getattr(rp, name)),
            (asdict(getattr(rp, name)),),
            use=lambda strategy: _search_with(rp.GuidedSampler(PROBLEM, strategy=strategy, seed=0)),
            examples=15,
        )
        for name in ("GUIDED", "HVI", "ONE_SIDED", "PAPER")
    ),
    Case(
        "Strategy",
        rp.Strategy,
        ({},),
        use=lambda strategy: _search_with(rp.GuidedSampler(PROBLEM, strategy=strategy, seed=0)),
        examples=30,
    ),
)

# Risks, problems, statistics, procedures


def _error(name: str, message: Any) -> Exception:
    error: Exception = getattr(rp, name)(message)
    return error


VOCABULARY = (
    Case(
        "Risk",
        rp.Risk,
        (
            {"name": "error", "limit": 0.2},
            {"name": "cost", "limit": 3, "low": -1, "high": 10, "conditional": True},
            {"name": "precision", "at_least": 0.9},
            {"name": "error", "limit": 0.2, "statistic": rp.WorstGroup(groups=("a", "b"))},
            {"name": "error", "limit": 0.2, "weights": "w", "largest_weight": 3.0},
            {"name": "error", "limit": 0.2, "statistic": rp.Quantile(0.9)},
        ),
        use=lambda risk: _read(risk, rp.Problem([risk], "the cost"), risk.to_dict()),
        examples=400,
    ),
    Case(
        "Problem",
        rp.Problem,
        (
            {"risks": [rp.Risk("error", 0.2)], "minimize": "cost", "delta": 0.1},
            {"risks": tuple(TWO.risks), "minimize": "cost"},
        ),
        use=lambda problem: _read(problem, problem._repr_html_(), problem.to_dict()),
        examples=200,
    ),
    Case("Problem.with_limits", PROBLEM.with_limits, ({"error": 0.1},), use=_read),
    Case(
        "Problem.from_dict",
        rp.Problem.from_dict,
        tuple({"data": json.loads(json.dumps(t["problem"].to_dict()))} for t in TABLES),
        use=_read,
        examples=200,
        odd=ODD_JSON,
    ),
    *(
        Case(
            name,
            getattr(rp, name),
            tuple(
                {field.name: getattr(statistic, field.name) for field in fields(statistic)}
                for statistic in STATISTICS
                if type(statistic).__name__ == name
            ),
            use=lambda statistic: _read(statistic, rp.Risk("error", 0.4, statistic=statistic)),
        )
        for name in ("WorstGroup", "GroupGap", "Ratio", "Quantile", "CVaR", "Difference")
    ),
    Case(
        "Graphical",
        rp.Graphical,
        ({"weights": (0.5, 0.5), "edges": ((0, 1), (1, 0))},),
        use=lambda graph: _read(graph, graph(np.log([0.01, 0.2]), 0.1)),
        examples=200,
    ),
    Case(
        "Graphical()",
        lambda log_p, delta: rp.chain(3)(log_p, delta),
        ({"log_p": np.log([0.01, 0.2, 0.03]), "delta": 0.1},),
    ),
    Case("chain", rp.chain, ({"n": 3},)),
    *(
        Case(
            name,
            getattr(rp, name),
            ({"log_p": np.log([0.01, 0.2, 0.03]), "delta": 0.1},),
            use=_read,
        )
        for name in ("fixed_sequence", "bonferroni", "holm")
    ),
    *(
        Case(name, partial(_error, name), ({"message": "why"},), use=type, examples=20)
        for name in rp.__all__
        if isinstance(getattr(rp, name), type) and issubclass(getattr(rp, name), Exception)
    ),
)

# Losses and what they become

LABELS = RNG.integers(0, 2, M)
PREDICTIONS = np.where(_draw(M), 1 - LABELS, LABELS)
GROUPS = np.array(["a", "b"])[np.arange(M) % 2]
COUNTS = (
    {
        "problem": PROBLEM,
        "validation": {"error": ([4, 8, 30], [100] * 3), "cost": [3.0, 2.0, 1.0]},
        "calibration": {"error": ([5, 9, 28], [100] * 3)},
        "configs": CONFIGS[:3],
    },
)
ROWS = [
    {
        "model": model,
        "question": question,
        "split": ("validation", "calibration")[question % 2],
        "error": int((question * 7 + model) % 10 == 0),
        "cost": float(model),
    }
    for model in range(3)
    for question in range(60)
]
FRAMES = (
    {
        "problem": PROBLEM,
        "frame": pandas.DataFrame(ROWS),
        "config": ["model"],
        "example": "question",
        "split": "split",
        "seed": 3,
        "ledger": None,
    },
    {
        "problem": PROBLEM,
        "frame": pandas.DataFrame(ROWS),
        "config": "model",
        "example": "question",
        "split": 0.5,
        "seed": 3,
    },
)
LOSSES = (
    Case(
        "select_from_losses",
        rp.select_from_losses,
        TABLES,
        use=_look,
        examples=1500,
        far=FAR,
    ),
    Case("select_from_counts", rp.select_from_counts, COUNTS, use=_look, examples=200),
    Case("select_from_frame", rp.select_from_frame, FRAMES, use=_look, examples=200),
    Case(
        "Selection",
        rp.select_from_losses,
        TABLES[:2],
        use=lambda selection: (_look(selection), selection.figure(), selection.report("r.html")),
        examples=15,
    ),
    Case(
        "freeze",
        rp.freeze,
        tuple(
            {name: table[name] for name in ("problem", "validation")}
            for table in (TABLES[0], TABLES[1], TABLES[3], TABLES[4])
        ),
        use=lambda plan: (repr(plan), plan._repr_html_(), plan.candidates, plan.digest),
        examples=60,
    ),
    Case(
        "FrozenPlan",
        rp.FrozenPlan,
        (dict.fromkeys((field.name for field in fields(rp.FrozenPlan)), 0.1),),
        use=type,
        examples=20,
    ),
    Case(
        "Calibration",
        _calibrated,
        (
            {"source": _frozen(), "horizon": 80, "losses": {"error": _draw(40)[:1]}},
            {
                "source": _frozen(),
                "horizon": 80,
                "losses": {"error": _draw(40)[:1]},
                "fresh": {"unlabelled": {"error": _draw(200)[:1]}, "ids": list(range(100, 300))},
                "judge": {"labelled": {"error": _draw(40)[:1]}},
                "ids": list(range(40)),
            },
        ),
        examples=120,
    ),
    Case(
        "Calibration.load",
        rp.Calibration.load,
        ({"path": Fresh(_saved_labels)},),
        use=lambda calibration: calibration.message,
        examples=30,
    ),
    Case(
        "Selection.report",
        rp.select_from_losses(**TABLES[0]).report,
        ({"path": "report.html"},),
        examples=30,
    ),
    Case(
        "measure",
        rp.measure,
        tuple(
            {
                "statistic": statistic,
                "losses": _grades(M),
                **{
                    {"label": "within"}.get(name, name): values
                    for name, values in _beside(statistic, M).items()
                },
            }
            for statistic in STATISTICS
        ),
        use=_read,
        examples=300,
    ),
    Case(
        "weighted",
        rp.weighted,
        ({"losses": _grades(M), "weights": np.ones(M), "largest": 2.0},),
        use=_read,
        examples=200,
    ),
    Case(
        "losses_from_predictions",
        rp.losses_from_predictions,
        (
            {
                "problem": rp.Problem([rp.Risk("precision", at_least=0.7)], "error"),
                "labels": LABELS,
                "predictions": PREDICTIONS,
            },
            {
                "problem": [rp.Risk("error_gap", at_most=0.2)],
                "labels": LABELS,
                "predictions": PREDICTIONS[0],
                "groups": GROUPS,
            },
            {
                "problem": rp.Risk("accuracy_drop", at_most=0.2),
                "labels": LABELS,
                "predictions": PREDICTIONS,
                "reference": {"reference": LABELS},
            },
        ),
        use=_read,
        examples=200,
    ),
    Case(
        "check_losses",
        rp.check_losses,
        (
            {
                "problem": rp.Problem([rp.Risk("error", 0.3)], "cost"),
                "losses": {"error": PREDICTIONS != LABELS},
                "labels": LABELS,
                "predictions": PREDICTIONS,
            },
        ),
        examples=150,
    ),
)

# Plans

PLANS = (
    Case(
        "plan_calibration",
        rp.plan_calibration,
        (
            {"problem": PROBLEM, "n_calibration": 500, "true_risks": {"error": 0.2}},
            {
                "problem": TWO,
                "n_calibration": 100,
                "binary": False,
                "deviations": {"harm": 0.5},
                "true_risks": {"harm": 1.5},
                "target_power": 0.8,
            },
            {
                "problem": rp.Problem([rp.Risk("precision", at_least=0.9)], "cost"),
                "n_calibration": 500,
                "true_risks": {"precision": 0.95},
            },
            *({"problem": t["problem"], "n_calibration": 300} for t in TABLES),
        ),
        use=lambda plans: _read(*plans),
        examples=400,
        far=tuple(
            {"problem": problem, "n_calibration": m, "binary": binary}
            for problem in EXTREME
            for m in (1, 300, 10**12)
            for binary in (True, False)
        ),
    ),
    Case("split_labelled", rp.split_labelled, ({"n": 100},)),
    Case(
        "RiskPlan",
        rp.RiskPlan,
        (asdict(rp.plan_calibration(PROBLEM, 50)[0]) | {"risk": PROBLEM.risks[0]},),
        use=type,
        examples=20,
    ),
    Case(
        "plan_labels",
        rp.plan_labels,
        ({"problem": PROBLEM, "horizon": 50, "true_risks": {"error": 0.2}},),
        use=lambda plans: [str(plan) for plan in plans],
        examples=60,
    ),
    Case(
        "plan_judge",
        rp.plan_judge,
        ({"problem": PROBLEM, "labels": 50, "unlabelled": 500, "correlations": {"error": 0.5}},),
        use=lambda plans: [str(plan) for plan in plans],
        examples=60,
    ),
    Case(
        "LabelsPlan",
        rp.LabelsPlan,
        (dict.fromkeys((field.name for field in fields(rp.LabelsPlan)), 0.1),),
        use=type,
        examples=20,
    ),
    Case(
        "JudgePlan",
        rp.JudgePlan,
        (dict.fromkeys((field.name for field in fields(rp.JudgePlan)), 0.1),),
        use=type,
        examples=20,
    ),
    Case(
        "LimitSuggestion",
        rp.LimitSuggestion,
        (dict.fromkeys((field.name for field in fields(rp.LimitSuggestion)), 0.1),),
        use=type,
        examples=20,
    ),
    Case(
        "power_curves",
        power_curves,
        (
            {"problem": PROBLEM, "true_risks": [0.1, 0.2], "n_calibration": 100},
            {"problem": TWO, "risk": "harm", "binary": False, "deviations": {"harm": 0.5}},
        ),
        use=type,
        examples=40,
        far=tuple({"problem": problem} for problem in EXTREME),
    ),
)

# Certificates


def _certificates() -> tuple[dict[str, Any], ...]:
    """Certificates with the losses that they were made of."""
    return tuple(
        {
            "certificate": rp.select_from_losses(**table).certificate,
            "validation": table["validation"],
            "calibration": table["calibration"],
        }
        for table in TABLES
    )


CERTIFIED = _certificates()


def _signed(kind: Any, data: Any) -> str:
    """Write edited content with the digest that fits it, where it can have one."""
    try:
        text: str = kind(**data).to_json()
    except (TypeError, ValueError):  # fields that there are not, no fields at all, or NaN
        text = json.dumps(data)
    return text


@cache
def _sealed() -> tuple[optuna.Study, rp.Seal, rp.Certificate]:
    """A study, what will be asked of it, and the answer."""
    study = _study()
    seal = rp.seal(study)
    return study, seal, rp.select(study).certificate


def _read_seal(data: Any) -> None:
    """Read an edited seal, and verify a certificate with it."""
    Path("seal.json").write_text(_signed(rp.Seal, data), encoding="utf-8", errors="surrogatepass")
    seal = rp.Seal.load("seal.json")
    study, _, certificate = _sealed()
    _read(seal, seal._repr_html_(), rp.verify(certificate, study=study, seal=seal))


def _read_edited(table: int, data: Any) -> None:
    """Read a certificate whose digest fits its edited content, and verify it."""
    certificate = rp.Certificate.from_json(_signed(rp.Certificate, data))
    _read(certificate)
    losses = CERTIFIED[table]
    _read(
        rp.verify(certificate, validation=losses["validation"], calibration=losses["calibration"])
    )


CERTIFICATES = (
    *(
        Case(
            f"Certificate.from_json of table {i}",
            partial(_read_edited, i),
            ({"data": json.loads(json.dumps(asdict(certified["certificate"])))},),
            odd=ODD_JSON,
            examples=60,
        )
        for i, certified in enumerate(CERTIFIED[:4])
    ),
    Case(
        "Certificate",
        rp.Certificate.from_json,
        ({"text": CERTIFIED[0]["certificate"].to_json()},),
        use=_read,
    ),
    Case(
        "Certificate.load",
        rp.Certificate.load,
        ({"path": Fresh(lambda: CERTIFIED[0]["certificate"].save("certificate.json"))},),
        use=_read,
    ),
    Case(
        "Seal",
        _read_seal,
        ({"data": json.loads(json.dumps(asdict(_sealed()[1])))},),
        odd=ODD_JSON,
        use=type,
    ),
    Case(
        "Seal.load",
        rp.Seal.load,
        ({"path": Fresh(lambda: _sealed()[1].save("seal.json"))},),
        use=_read,
        examples=50,
    ),
    Case("Certificate.save", CERTIFIED[0]["certificate"].save, ({"path": "c.json"},)),
    Case("verify", rp.verify, CERTIFIED, use=_read, examples=250),
    Case(
        "verify with a study",
        rp.verify,
        ({"certificate": _sealed()[2], "study": _sealed()[0], "seal": _sealed()[1]},),
        use=_read,
        examples=80,
    ),
    Case("Verification", rp.Verification, ({"differences": ("one",)},), use=type, examples=20),
)

# Watches


@cache
def _promises() -> tuple[tuple[rp.Certificate, dict[str, Any]], ...]:
    """Certificates that promise something, each with labels of the configuration."""
    found = []
    for table in TABLES:
        certificate = rp.select_from_losses(**table).certificate
        if certificate.config is None:
            continue
        given, names = table["calibration"], table["problem"].names
        found.append((certificate, {n: v[0] if n in names else v for n, v in given.items()}))
    return tuple(found)


def _watch_all(watch: rp.Watch) -> None:
    """Feed a watch, and look at it."""
    labels = next(given for made, given in _promises() if made.digest == watch.certificate)
    if watch.largest_weight is None:
        watch.update(labels, ids=range(M), at="then")
    _read(watch, watch._repr_html_(), watch.risks, watch.alarms)


def _feed(which: int, **labels: Any) -> None:
    """Give labels to a new watch."""
    watch = rp.Watch(_promises()[which][0])
    watch.update(**labels)
    _read(watch, watch.risks)


def _labels_file() -> str:
    """A file of labels in the working directory."""
    Path("labels.csv").write_text("error,sex,id\n0,a,1\n1,b,2\n", encoding="utf-8")
    return "labels.csv"


def _fresh_of(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    return {"error": _draw(M)[trial.params["row"]]}


WATCHES = (
    Case(
        "Watch",
        rp.Watch,
        (
            *({"certificate": made, "delta": 0.1} for made, _ in _promises()),
            {"certificate": _promises()[0][0], "largest_weight": 4.0},
            {"certificate": _promises()[0][0], "judge": "error"},
        ),
        use=_watch_all,
        examples=150,
    ),
    *(
        Case(
            f"Watch.update of table {i}",
            partial(_feed, i),
            ({"losses": labels, "ids": list(range(M)), "at": "2026-03-01"},),
            examples=60,
        )
        for i, (_, labels) in enumerate(_promises())
    ),
    Case(
        "Watch.update with a judge",
        lambda **given: rp.Watch(_promises()[0][0], judge="error").update(**given),
        (
            {
                "losses": _promises()[0][1],
                "ids": list(range(M)),
                "judge": {
                    "labelled": {"error": _draw(M)[0]},
                    "unlabelled": {"error": _draw(3 * M)[0]},
                    "ids": list(range(1000, 1000 + 3 * M)),
                },
            },
        ),
        examples=80,
    ),
    Case(
        "Watch.update_from_file",
        lambda **given: rp.Watch(_promises()[0][0]).update_from_file(**given),
        ({"path": Fresh(_labels_file), "ids": "id", "at": "today"},),
        examples=60,
    ),
    Case(
        "Watch.load",
        rp.Watch.load,
        ({"place": Fresh(lambda: rp.Watch(_promises()[0][0]).save(f"w{RNG.random()}.json"))},),
        use=_read,
        examples=60,
    ),
    Case("Watch.save", lambda place: rp.Watch(_promises()[0][0]).save(place), ({"place": "w"},)),
    Case("Watch.report", rp.Watch(_promises()[0][0]).report, ({"path": "w.html"},), examples=30),
    Case(
        "recertify",
        rp.recertify,
        (
            {"study": Fresh(_study), "calibration": _fresh_of, "problem": PROBLEM},
            {"study": Fresh(_study), "calibration": _fresh_of, "config": {"row": 0}, "seed": 3},
            {"study": Fresh(_study), "calibration": _fresh_of, "trial": 0},
            {
                "study": Fresh(_study),
                "calibration": _fresh_of,
                "calibration_ids": [f"fresh-{i}" for i in range(M)],
            },
        ),
        use=_look,
        examples=80,
    ),
)

# scikit-learn

X, Y = RNG.normal(size=(150, 3)), RNG.integers(0, 2, 150)
X[:, 0] += 3 * Y
MODEL = LogisticRegression().fit(X[:50], Y[:50])


def _fit(kind: Any, **settings: Any) -> Any:
    """An estimator that is made, fitted, and asked for predictions."""
    names = inspect.signature(kind).parameters
    made = kind(**{name: value for name, value in settings.items() if name in names})
    made.fit(**{name: value for name, value in settings.items() if name not in names})
    repr(made)
    made.predict(X)
    made.score(X, Y)
    return made


def _own_loss(model: Any, X: Any, y: Any) -> Any:
    return model.predict(X) != y


def _estimator(name: str, examples: int, *valid: dict[str, Any]) -> Case:
    kind = getattr(rps, name)
    return Case(
        f"sklearn.{name}",
        partial(_fit, kind),
        valid,
        examples=examples,
        # What scikit-learn raises for odd data; NotFittedError and RiskpilotError are among them.
        allowed=(ValueError, TypeError, OverflowError),
        signatures=(kind, kind.fit),
        others_warn=True,
    )


SKLEARN = (
    _estimator(
        "RiskControlledThreshold",
        80,
        {
            "estimator": MODEL,
            "risks": {"false_positive_rate": 0.5},
            "minimize": "false_negative_rate",
            "X": X,
            "y": Y,
            "random_state": 0,
            "n_thresholds": 10,
        },
        {
            "estimator": MODEL,
            "risks": ["selective_error <= 0.4"],
            "minimize": "abstention",
            "X": X,
            "y": Y,
            "random_state": 0,
            "n_thresholds": 5,
        },
    ),
    _estimator(
        "RiskControlledSearch",
        40,
        {
            "estimator": DecisionTreeClassifier(random_state=0),
            "space": {"max_depth": (1, 4)},
            "risks": {"error": 0.6},
            "minimize": "false_negative_rate",
            "X": X,
            "y": Y,
            "n_trials": 3,
            "timeout": 1.0,  # odd numbers of trials are also very large ones
            "random_state": 0,
        },
        {
            "estimator": DecisionTreeClassifier(random_state=0),
            "space": {"max_depth": [1, 2], "min_impurity_decrease": (1e-4, 0.1, "log")},
            "risks": ["mine <= 0.6"],
            "losses": {"mine": _own_loss, "other": _own_loss},
            "minimize": "other",
            "X": X,
            "y": Y,
            "n_trials": 3,
            "timeout": 1.0,  # odd numbers of trials are also very large ones
            "random_state": 0,
        },
    ),
)

# The command line

_RUNNER = CliRunner()
EXIT_CODES = (0, 1, 2, 3, 4)
LIMITS = (
    *("error<=0.3", "error <= 0.1 as quantile(0.9)", "error<=0.1 as worst_group by sex", "harm<=1"),
    *(
        "error<=inf",
        "error<=nan",
        "error<=1e-300",
        "error<=0.3 in [0,1e308]",
        "error<=0.3 in [1,0]",
    ),
    *("error>=0.9", "accuracy>=0.9", "error<=0.1 as cvar(2)", "error<=0.1 as mean(3)", "a<=b"),
    *("error<=0.3 weighted by w up to inf", "error<=0.999999999999", "error≤0.1", "<=0.1"),
)
VALUES = (
    *("error=0.1", "error=inf", "error=nan", "error=-1", "error=1e308", "error=1e-300", "error=0"),
    *("harm=1", "error", "error=", "=1", "error=1=2", "0", "-1", "1", "0.5", "1e-320", "1e308"),
    *("9" * 13, "9" * 400, "0.999999999", "nan", "inf", "losses.npz", "study.db", "nowhere.csv"),
    *("sqlite:///study.db", "sqlite:///nowhere.db", "certificate.json", ".", "/", "fixed_sequence"),
)
OPTIONS = (
    *("--risk", "--minimize", "--delta", "--seed", "--p-value", "--procedure", "--json", "--out"),
    *("--report", "--samples", "-n", "--labelled", "--true-risk", "--deviation", "--target-power"),
    *("--losses", "--study-name", "--artifacts", "--help", "--version"),
)


def _command(arguments: list[str]) -> None:
    """Run a command in a directory that has a table of losses, a study and a certificate."""
    _stored()
    if not Path("losses.npz").exists():
        save_losses(
            "losses.npz",
            validation=VALIDATION,
            calibration=CALIBRATION,
            configs=CONFIGS,
        )
        CERTIFIED[0]["certificate"].save("certificate.json")
        _promises()[0][0].save("promise.json")
        _labels_file()
        Path("fresh.csv").write_text("trial,error\n0,0\n1,0\n2,1\n", encoding="utf-8")
        for name in ("new.csv", "main.csv"):
            Path(name).write_text("example,error\n1,0\n2,1\n3,0\n", encoding="utf-8")
    result = _RUNNER.invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in EXIT_CODES, result.exit_code
    assert "Traceback" not in result.output


def _typed(examples: int, *valid: list[str]) -> Case:
    """A command, with words put in the place of others, added and left out."""
    return Case(
        f"riskpilot {valid[0][0]}",
        lambda words: _command(words if isinstance(words, list) else [words]),
        tuple({"words": words} for words in valid),
        examples=examples,
        odd=st.sampled_from((*LIMITS, *VALUES, *OPTIONS, *TEXTS)),
    )


LIMIT = ["--risk", "error<=0.3", "--minimize", "cost"]
COMMANDS = (
    _typed(
        250,
        ["plan", "--risk", "error<=0.3", "--samples", "500", "--deviation", "error=0.2"],
        ["plan", "--risk", "error<=0.3", "--labelled", "90", "--true-risk", "error=0.1", "--json"],
        ["plan", "-r", "error<=0.3 as group_gap by sex", "-n", "500", "--delta", "0.1"],
    ),
    _typed(
        120,
        ["select", "losses.npz", *LIMIT, "--delta", "0.1", "--seed", "3"],
        ["select", "losses.npz", *LIMIT, "--p-value", "hoeffding", "--out", "out.json", "--json"],
        ["select", "sqlite:///study.db", "--study-name", "known", "--procedure", "holm"],
    ),
    _typed(
        80,
        ["verify", "certificate.json", "--losses", "losses.npz"],
        ["verify", "certificate.json", "--losses", "sqlite:///study.db", "--json"],
    ),
    _typed(
        30,
        ["seal", "sqlite:///study.db", "--study-name", "known", "--out", "seal.json"],
        ["seal", "sqlite:///study.db", "--risk", "error<=0.2", "--procedure", "holm", "--json"],
    ),
    _typed(
        30,
        ["calibrate", "sqlite:///study.db", "--study-name", "known", "--horizon", "90", "--json"],
    ),
    _typed(
        80,
        ["watch", "promise.json", "--losses", "labels.csv", "--ids", "id", "--json"],
        [
            "watch",
            "promise.json",
            "--losses",
            "labels.csv",
            "--metrics",
            "w.prom",
            "--delta",
            "0.1",
        ],
    ),
    _typed(
        40,
        ["gate", "new.csv", "--reference", "main.csv", "--risk", "error_drop<=0.3", "--json"],
        ["gate", "new.csv", "--risk", "error<=0.9", "--ledger", "gate.db", "--out", "gate.json"],
    ),
    _typed(
        60,
        ["recertify", "sqlite:///study.db", "--losses", "fresh.csv", "--study-name", "known"],
        ["recertify", "sqlite:///study.db", "--losses", "fresh.csv", "--risk", "error<=0.5"],
        ["recertify", "sqlite:///study.db", "--losses", "fresh.csv", "--trial", "0"],
    ),
    _typed(30, ["status", "sqlite:///study.db", "--study-name", "known", "--json"]),
    _typed(30, ["report", "sqlite:///study.db", "--study-name", "known", "--out", "r.html"]),
)
# Commands that serve, train or replay: they read no input but options that the others read, too.
NOT_TYPED = {"dashboard", "live", "demo", "bench"}

CASES = (*VOCABULARY, *LOSSES, *PLANS, *STUDIES, *CERTIFICATES, *WATCHES, *SKLEARN, *COMMANDS)
