"""Every trial as a run in MLflow, and the certificate of the choice in a run of its own.

Shows: a callback, which sees validation numbers only; MLflow's own store in a SQLite file, so that
no server is needed. Needs MLflow: in a clone of riskpilot ``pip install '.[mlflow]'``. Takes about
ten seconds: ``python examples/mlflow_runs.py``, then ``mlflow ui --backend-store-uri
sqlite:///mlflow.db`` with all of MLflow installed.
"""

import logging

import numpy as np
import optuna

import riskpilot as rp

try:
    import mlflow
except ModuleNotFoundError as error:
    raise SystemExit(
        f"This example needs MLflow ({error}). In a clone of riskpilot: pip install '.[mlflow]'"
    ) from None

logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of every table that it makes
optuna.logging.set_verbosity(optuna.logging.WARNING)
mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("width")

problem = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
noise = np.random.default_rng(0).random((2, 4_000))


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    """Stands for a training run: wider models err less and cost more."""
    width = trial.suggest_int("width", 8, 256, log=True)
    errors = noise < 0.04 + 0.8 / width
    return rp.Evaluation({"error": errors[0], "cost": width}, {"error": errors[1]})


def to_mlflow(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    with mlflow.start_run(run_name=f"trial-{trial.number}"):
        mlflow.log_params(trial.params)
        mlflow.set_tag("state", trial.state.name)
        if trial.values is not None:
            mlflow.log_metrics(dict(zip(study.metric_names, trial.values, strict=True)))


study = rp.create_study(problem, seed=0)
study.optimize(rp.objective(study, evaluate), n_trials=8, callbacks=[to_mlflow])
selection = rp.select(study)
print(selection)

if selection.config is not None:
    with mlflow.start_run(run_name="selection"):
        mlflow.log_params(selection.config)
        mlflow.set_tag("promise", selection.certificate.promise)
        mlflow.set_tag("certificate", selection.certificate.digest)

runs = mlflow.MlflowClient().search_runs([mlflow.get_experiment_by_name("width").experiment_id])
print(f"{len(runs)} runs in mlflow.db, the last one: {runs[0].info.run_name}")
