"""Every storage keeps a study, gives it back, and lets it go on as if nothing had happened."""

import json
import logging

import numpy as np
import optuna
import pytest
import sqlalchemy
from cases import PROBLEM, evaluate, evaluation, same_selection, undisturbed
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.study.as_tables import study_losses
from riskpilot.study.kept.loss_store import FolderStore, store_of
from riskpilot.study.kept.records import RECORD_KEY, record_of
from riskpilot.study.objectives import objective

# Trials that are asked for by hand have no heartbeat, and Optuna says so.
BY_HAND = pytest.mark.filterwarnings("ignore:Heartbeat of storage:UserWarning")


def run(study, n_trials, **options):
    study.optimize(rp.objective(study, evaluate), n_trials=n_trials, **options)
    return study


def test_a_study_that_is_cut_short_proposes_what_it_would_have_proposed(storage, request):
    name = request.node.name
    whole = run(rp.create_study(PROBLEM, seed=3), 9)
    command = {"study_name": name, "seed": 3, "load_if_exists": True, **storage}
    run(rp.create_study(PROBLEM, **command), 4)
    again = run(rp.create_study(PROBLEM, **command), 5)  # the same command
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]
    assert same_selection(rp.select(again), rp.select(whole))
    selection = rp.select(rp.load_study(study_name=name, **storage))
    table = study_losses(again)
    found = rp.verify(
        selection.certificate, validation=table.validation, calibration=table.calibration
    )
    assert found.ok, str(found)


def test_several_jobs_propose_different_configurations(storage, request):
    study = rp.create_study(PROBLEM, study_name=request.node.name, seed=0, **storage)
    run(study, 12, n_jobs=3)
    xs = sorted(trial.params["x"] for trial in study.trials)
    assert len(xs) == 12
    assert min(np.diff(xs)) > 1e-4
    assert same_selection(rp.select(study), rp.select(undisturbed(study)))


@BY_HAND
def test_pending_trials_are_seen_by_another_worker(storage, request):
    name = request.node.name
    one = run(rp.create_study(PROBLEM, study_name=name, seed=0, **storage), 8)
    two = rp.load_study(study_name=name, **storage)
    proposed = [s.ask().suggest_float("x", 0, 1) for s in (one, two, one, two)]
    assert min(np.diff(sorted(proposed))) > 1e-4


@BY_HAND
def test_losses_stored_by_a_worker_that_died_are_not_evaluated_again(storage, request):
    """Killed between the last write of the losses and the end of the trial; then retried."""
    name = request.node.name
    study = rp.create_study(PROBLEM, study_name=name, seed=0, **storage)
    trial = study.ask()
    objective(study, evaluate)(trial)  # and never told
    frozen = study.trials[0]
    assert frozen.state.name == "RUNNING"
    retry = optuna.create_trial(
        state=optuna.trial.TrialState.WAITING,
        params=frozen.params,
        distributions=frozen.distributions,
        user_attrs=frozen.user_attrs,
        system_attrs={"failed_trial": 0, "retry_history": [0]},
    )
    study.tell(0, state=optuna.trial.TrialState.FAIL)
    study.add_trial(retry)
    study.optimize(rp.objective(study, lambda trial: pytest.fail("evaluated again")), n_trials=1)
    assert study.trials[1].values == list(objective_values(frozen))
    assert record_of(study.trials[1]) == record_of(frozen)


def objective_values(frozen):
    x = frozen.params["x"]
    validation = evaluation(x).validation
    harm = np.float32(validation["harm"])
    return validation["error"].mean(), pytest.approx(np.nanmean(harm), rel=1e-6), 1 - x


def test_a_trial_whose_losses_cannot_be_read_back_does_not_count(tmp_path):
    class Forgetful(FolderStore):
        def write(self, artifact_id, content_body):
            pass

    study = rp.create_study(PROBLEM, artifact_store=Forgetful(tmp_path), seed=0)
    with pytest.raises(optuna.artifacts.exceptions.ArtifactNotFound):
        run(study, 1)
    assert study.trials[0].state.name == "FAIL"
    assert RECORD_KEY not in study.trials[0].user_attrs


def test_a_database_without_a_place_for_losses_makes_no_study(postgres):
    with pytest.raises(rp.StudyError, match="artifact_store"):
        rp.create_study(PROBLEM, storage=postgres, study_name="homeless")
    with pytest.raises(rp.StudyError, match="no study 'homeless'"):
        rp.load_study(storage=postgres, study_name="homeless")


def test_a_server_without_studies_is_only_read(postgres, tmp_path):
    engine = sqlalchemy.create_engine(postgres)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA shared")
        connection.exec_driver_sql("CREATE TABLE shared.customers (a integer)")
    place = f"{postgres}?options=-csearch_path%3Dshared"
    with pytest.raises(rp.StudyError, match="does not have the tables of studies"):
        rp.load_study(storage=place, study_name="n")
    assert sqlalchemy.inspect(engine).get_table_names(schema="shared") == ["customers"]
    # A database of a server may be shared, so that a study may go beside other tables.
    rp.create_study(PROBLEM, storage=place, study_name="n", artifact_store=tmp_path)
    assert rp.load_study(storage=place, study_name="n", artifact_store=tmp_path).study_name == "n"
    engine.dispose()


def test_a_study_without_its_losses_at_hand_says_so_before_an_evaluation(postgres, tmp_path):
    rp.create_study(PROBLEM, storage=postgres, study_name="far", artifact_store=tmp_path)
    study = rp.load_study(storage=postgres, study_name="far")
    with pytest.raises(rp.StudyError, match="not at hand"):
        rp.objective(study, evaluate)


IN_MEMORY = {
    "address": lambda: "sqlite:///:memory:",
    "bare address": lambda: "sqlite://",
    "with a driver": lambda: "sqlite+pysqlite:///:memory:",
    "SQL storage": lambda: optuna.storages.RDBStorage("sqlite:///:memory:"),
    "Optuna's": optuna.storages.InMemoryStorage,
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_a_study_in_memory_keeps_its_losses_in_memory(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = run(rp.create_study(PROBLEM, storage=IN_MEMORY[kind](), seed=0), 3)
    assert rp.select(study).certificate.n_configs == 3
    assert type(store_of(study)).__name__ == "MemoryArtifactStore"
    assert list(tmp_path.iterdir()) == []


def test_an_address_with_a_driver_is_a_file_like_any_other(tmp_path):
    run(rp.create_study(PROBLEM, storage=f"sqlite+pysqlite:///{tmp_path}/s.db", seed=0), 3)
    assert rp.select(rp.load_study(storage=f"{tmp_path}/s.db")).certificate.n_configs == 3
    assert (tmp_path / "s.db.losses").is_dir()


# --- passwords -----------------------------------------------------------------------------------


def test_the_password_of_a_storage_is_shown_nowhere(postgres, tmp_path, caplog):
    password = postgres.split(":")[2].split("@")[0]
    options = {"storage": postgres, "study_name": "secret", "artifact_store": tmp_path / "losses"}

    def leaky(trial):
        if trial.number == 1:
            raise OSError(f"cannot reach {postgres}")
        return evaluate(trial)

    shown = []
    with caplog.at_level(logging.DEBUG, logger="riskpilot"):
        study = rp.create_study(PROBLEM, seed=0, **options)
        study.optimize(rp.objective(study, leaky, on_error="record"), n_trials=4)
        selection = rp.select(study)
    shown += [r.getMessage() for r in caplog.records if r.name.startswith("riskpilot")]
    assert any("failed" in line for line in shown)
    shown += [str(study.user_attrs), *(str(t.user_attrs) for t in study.trials), str(selection)]
    shown += [selection.certificate.to_json(), selection.report(tmp_path / "r.html").read_text()]
    for arguments in (["status", postgres], ["status", postgres, "--json"]):
        result = CliRunner().invoke(app, [*arguments, "--study-name", "secret"])
        assert result.exit_code == 0, result.output
        shown.append(result.output)
    for wrong in (postgres.replace("@127", "x@127"), postgres.replace("/postgres", "/absent")):
        with pytest.raises(rp.StudyError, match="cannot be opened") as caught:
            rp.load_study(storage=wrong, study_name="secret")
        shown.append(str(caught.value))
        assert caught.value.__suppress_context__
    with pytest.raises(rp.StudyError, match="no study 'other'") as caught:
        rp.load_study(storage=postgres, study_name="other")
    shown.append(str(caught.value))
    assert not any(password in text for text in shown)
    assert "***" in study.trials[1].user_attrs["riskpilot:error"]


# --- status --------------------------------------------------------------------------------------


def test_status_tells_trials_failures_region_and_ledger(storage, request):
    name = request.node.name
    study = rp.create_study(PROBLEM, study_name=name, seed=0, **storage)

    def sometimes(trial):
        if trial.number == 2:
            raise RuntimeError("out of memory")
        return evaluate(trial)

    study.optimize(rp.objective(study, sometimes, on_error="record"), n_trials=9)
    address = str(storage["storage"])
    before = CliRunner().invoke(app, ["status", address, "--study-name", name])
    assert before.exit_code == 0, before.output
    assert "8 complete, 1 fail" in before.output
    assert "RuntimeError: out of memory" in before.output
    assert "sealed" in before.output
    selection = rp.select(study)
    result = CliRunner().invoke(app, ["status", address, "--study-name", name, "--json"])
    told = json.loads(result.output)
    assert told["states"]["complete"] == 8
    assert told["failures"] == [{"number": 2, "error": "RuntimeError: out of memory", "config": {}}]
    assert told["n_calibration"] == 300
    (error, _) = told["risks"]
    assert error["loss_region"][0] < error["loss_region"][1] <= 0.35
    (question,) = told["questions"]
    assert question["config"] == selection.config
    assert question["certificate"] == selection.certificate.digest
    after = CliRunner().invoke(app, ["status", address, "--study-name", name])
    assert "Ledger: all of delta spent" in after.output
