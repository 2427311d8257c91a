"""Studies, evaluations and samplers that cannot be used are refused."""

import contextlib
import io
import re
from decimal import Decimal

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.study.kept.loss_bytes import decode
from riskpilot.study.storages import without_password
from riskpilot.tables import save_losses
from tests.kits.bad_input import INF, OPEN, P, V, assert_refused, assert_rule_value_and_way_out

MEMORY = optuna.storages.InMemoryStorage()


class NowhereBackend(optuna.storages.journal.BaseJournalBackend):
    """A journal that is no file."""

    def read_logs(self, log_number_from):
        return iter(())

    def append_logs(self, logs):
        pass


def evaluated(evaluation, problem=P, n_trials=1):
    study = rp.create_study(problem, seed=0)
    study.optimize(rp.objective(study, lambda trial: evaluation), n_trials=n_trials)
    return study


def evaluate(trial):
    trial.suggest_float("x", 0, 1)
    return rp.Evaluation({"error": V["error"][0], "cost": 1.0})


def searched(suggest):
    study = rp.create_study(P, seed=0)
    study.optimize(rp.objective(study, suggest), n_trials=1)


def searched_twice(suggest):
    study = rp.create_study(P, seed=0)
    with contextlib.suppress(rp.StudyError):
        study.optimize(rp.objective(study, suggest), n_trials=1)
    study.optimize(rp.objective(study, suggest), n_trials=1)


def evaluated_after(suggest):
    def evaluate_after(trial):
        suggest(trial)
        return rp.Evaluation({"error": V["error"][0], "cost": 1.0})

    searched(evaluate_after)


def told_in_the_widest_range():
    study = rp.create_study(P, safe={"x": 0.5}, seed=0)
    trial = study.ask()
    trial.suggest_float("x", -1e308, 1e308)
    rp.tell(study, trial, rp.Evaluation({"error": V["error"][0], "cost": 1.0}))


def finished():
    return evaluated(rp.Evaluation({"error": V["error"][0], "cost": 1.0}))


# name: (error class, what the message must say, the call)
CASES = {
    # studies
    "a study without a problem": (rp.StudyError, r"str", lambda: rp.create_study("error")),
    "a safe configuration that is a number": (
        rp.StudyError,
        r"0\.3",
        lambda: rp.create_study(P, safe=0.3),
    ),
    "a safe configuration with NaN": (
        rp.StudyError,
        r"'x' is nan",
        lambda: rp.create_study(P, safe={"x": float("nan")}),
    ),
    "a safe configuration of objects": (
        rp.StudyError,
        r"'x' is <object",
        lambda: rp.create_study(P, safe={"x": object()}),
    ),
    "a safe configuration with a number beyond all floats": (
        rp.StudyError,
        r"no parameter takes a number above 1\.8e\+308 or below its negative, but 'x' is 1000",
        lambda: rp.create_study(P, safe={"x": 10**400}),
    ),
    "a safe configuration with a number that Python does not write out": (
        rp.StudyError,
        r"no parameter takes a number above 1\.8e\+308 .* but 'x' is \(an int that cannot be",
        lambda: rp.create_study(P, safe={"x": -(10**5000)}),
    ),
    "a safe configuration with numbers for names": (
        rp.StudyError,
        r"mapping of parameters to values, but it is \{1: 2\}",
        lambda: rp.create_study(P, safe={1: 2}),
    ),
    "a study whose name no storage can keep": (
        rp.StudyError,
        r"study_name is a text, but it is 'a.ud800'",
        lambda: rp.create_study(P, study_name="a\ud800"),
    ),
    "losses in a file": (
        rp.StudyError,
        r"artifact_store is the name of a folder, but '.*\.py' is a file",
        lambda: rp.create_study(P, artifact_store=__file__),
    ),
    "losses in a folder without a name": (
        rp.StudyError,
        r"but '' is none",
        lambda: rp.create_study(P, artifact_store=""),
    ),
    "losses at an address": (
        rp.StudyError,
        r"but 's3://bucket' is an address, for which Optuna has stores",
        lambda: rp.create_study(P, artifact_store="s3://bucket"),
    ),
    "an objective that is called with no trial": (
        rp.StudyError,
        r"running trial, .* but got None",
        lambda: rp.objective(rp.create_study(P), evaluate)(None),
    ),
    "an objective that is tried on parameters": (
        rp.StudyError,
        r"FixedTrial.* call evaluate\(trial\)",
        lambda: rp.objective(rp.create_study(P), evaluate)(optuna.trial.FixedTrial({"x": 0.5})),
    ),
    "an objective that is called with a finished trial": (
        rp.StudyError,
        r"FrozenTrial",
        lambda: rp.objective(study := finished(), evaluate)(study.trials[0]),
    ),
    "the objective of another study": (
        rp.StudyError,
        r"is made for one study, this one for 'one', but the trial is of the study 'other'",
        lambda: rp.create_study(P, study_name="other").optimize(
            rp.objective(rp.create_study(P, study_name="one"), evaluate), n_trials=1
        ),
    ),
    "a range without end": (
        rp.StudyError,
        r"'x' goes from 0\.0 to inf",
        lambda: searched(lambda trial: trial.suggest_float("x", 0, INF)),
    ),
    "a range wider than all numbers": (
        rp.StudyError,
        r"'x' goes from -1e\+308 to 1e\+308",
        lambda: searched(lambda trial: trial.suggest_float("x", -1e308, 1e308)),
    ),
    "a range of whole numbers beyond all numbers": (
        rp.StudyError,
        r"up to 1\.8e\+308, .* but 'n' goes from 0 to 10000.* the logarithm",
        lambda: searched(lambda trial: trial.suggest_int("n", 0, 10**400)),
    ),
    "a range of whole numbers that begins below all numbers": (
        rp.StudyError,
        r"'n' goes from -10000.* to 0",
        lambda: searched(lambda trial: trial.suggest_int("n", -(10**400), 0)),
    ),
    "a range of whole numbers beyond all numbers on a logarithmic scale": (
        rp.StudyError,
        r"'n' goes from 1 to 10000",
        lambda: searched(lambda trial: trial.suggest_int("n", 1, 10**400, log=True)),
    ),
    "a range of one whole number beyond all numbers": (
        rp.StudyError,
        r"'n' goes from 10000",
        lambda: searched(lambda trial: trial.suggest_int("n", 10**400, 10**400)),
    ),
    "a range of whole numbers without end": (
        rp.StudyError,
        r"'n' goes from 0 to inf",
        lambda: searched(lambda trial: trial.suggest_int("n", 0, INF)),
    ),
    "a range of whole numbers too long to be shown": (
        rp.StudyError,
        r"'n' goes from 0 to \(an int that cannot be shown\)",
        lambda: searched(lambda trial: trial.suggest_int("n", 0, 10**5000)),
    ),
    "a range of whole numbers wider than all numbers": (
        rp.StudyError,
        r"at most as wide as the largest number, but 'n' goes from -10000.* to 10000",
        lambda: searched(lambda trial: trial.suggest_int("n", -(10**308), 10**308)),
    ),
    "a range that ends at a whole number beyond all numbers": (
        rp.StudyError,
        r"'x' goes from 0 to 10000",
        lambda: searched(lambda trial: trial.suggest_float("x", 0, 10**400)),
    ),
    "a range that ends there on a logarithmic scale": (
        rp.StudyError,
        r"'x' goes from 1 to 10000",
        lambda: searched(lambda trial: trial.suggest_float("x", 1, 10**400, log=True)),
    ),
    "a range beyond all numbers of a trial that was asked for": (
        rp.StudyError,
        r"'n' goes from 0 to 10000",
        lambda: rp.create_study(P).ask().suggest_int("n", 0, 10**400),
    ),
    "a choice beyond all numbers": (
        rp.StudyError,
        r"at most 1\.8e\+308, .* but one of 'n' is 10000.* as a text",
        lambda: evaluated_after(lambda trial: trial.suggest_categorical("n", [1, 10**400])),
    ),
    "a choice beyond all numbers, once more": (
        rp.StudyError,
        r"one of 'n' is 10000.* as a text",
        lambda: searched_twice(lambda trial: trial.suggest_categorical("n", [1, 10**400])),
    ),
    "a range wider than all numbers around a queued value": (
        rp.StudyError,
        r"'x' goes from -1e\+308 to 1e\+308",
        told_in_the_widest_range,
    ),
    "a study that is there": (
        rp.StudyError,
        r"'twice'.*load_if_exists=True.*study_name",
        lambda: [rp.create_study(P, storage=MEMORY, study_name="twice") for _ in range(2)],
    ),
    "an objective without a study": (
        rp.StudyError,
        r"None",
        lambda: rp.objective(None, lambda trial: None),
    ),
    "limits suggested without a study": (rp.StudyError, r"None", lambda: rp.suggest_limits(None)),
    "limits set without a study": (
        rp.StudyError,
        r"None",
        lambda: rp.set_limits(None, error=0.1),
    ),
    "a time limit that no thread can wait for": (
        rp.StudyError,
        r"10000000000\.0",
        lambda: rp.objective(rp.create_study(P), lambda trial: None, time_limit=1e10),
    ),
    "losses written nowhere": (
        rp.TableError,
        r"None",
        lambda: save_losses(None, validation={}, calibration={}),
    ),
    "losses written to no folder": (
        rp.TableError,
        r"/no/such/folder/losses\.npz",
        lambda: save_losses("/no/such/folder/losses.npz", validation={}, calibration={}),
    ),
    "a storage without a place for losses": (
        rp.StudyError,
        r"artifact_store",
        lambda: rp.create_study(P, storage=optuna.storages.JournalStorage(NowhereBackend())),
    ),
    "a plain Optuna study": (
        rp.StudyError,
        r"'plain'",
        lambda: rp.objective(optuna.create_study(study_name="plain"), lambda trial: None),
    ),
    "an evaluation that is no function": (
        rp.StudyError,
        r"5",
        lambda: rp.objective(rp.create_study(P), 5),
    ),
    "an evaluation of a list": (rp.LossError, r"list", lambda: rp.Evaluation([0.1])),
    "a calibration of a list": (
        rp.LossError,
        r"calibration.*list",
        lambda: rp.Evaluation({}, [0.1]),
    ),
    "a function that returns a number": (rp.LossError, r"float", lambda: evaluated(0.5)),
    "a risk that is one number": (
        rp.LossError,
        r"'error'.*\(\)",
        lambda: evaluated(rp.Evaluation({"error": 0.1, "cost": 1})),
    ),
    "a free objective of two dimensions": (
        rp.LossError,
        r"'cost'.*\(2, 2\)",
        lambda: evaluated(rp.Evaluation({"error": [0, 1], "cost": [[1, 2], [3, 4]]})),
    ),
    **{
        f"a free objective that is {value!r}": (
            rp.LossError,
            rf"'cost' is a number, or one number per example, but it is {re.escape(repr(value))}",
            lambda value=value: evaluated(rp.Evaluation({"error": [0, 1], "cost": value})),
        )
        for value in (None, "0.3", b"1", {}, [], 1j, Decimal("0.3"))
    },
    "a free objective that is infinite": (
        rp.LossError,
        r"'cost'.*inf",
        lambda: evaluated(rp.Evaluation({"error": [0, 1], "cost": INF})),
    ),
    "selecting from nothing": (
        rp.StudyError,
        r"no trial",
        lambda: rp.select(rp.create_study(P)),
    ),
    "selecting from a path": (
        rp.StudyError,
        r"sqlite:///s\.db",
        lambda: rp.select("sqlite:///s.db"),
    ),
    "selecting without calibration": (
        rp.StudyError,
        r"Trial 0 has no calibration",
        lambda: rp.select(finished()),
    ),
    "calibrate that returns an array": (
        rp.LossError,
        r"ndarray",
        lambda: rp.select(finished(), calibrate=lambda t: np.zeros(9)),
    ),
    "calibrate that forgets a risk": (
        rp.LossError,
        r"'error'.*missing",
        lambda: rp.select(finished(), calibrate=lambda t: {}),
    ),
    "a share of delta above one": (
        rp.ProblemError,
        r"1\.5",
        lambda: rp.select(finished(), spend=1.5),
    ),
    "a share of delta in words": (
        rp.ProblemError,
        r"'half'",
        lambda: rp.select(finished(), spend="half"),
    ),
    "suggestions from nothing": (
        rp.StudyError,
        r"none yet",
        lambda: rp.suggest_limits(rp.create_study(OPEN)),
    ),
    "limits of an unknown risk": (
        rp.ProblemError,
        r"'harm'",
        lambda: rp.set_limits(rp.create_study(OPEN), harm=0.1),
    ),
    # sampler
    "delta_prime of two": (rp.ProblemError, r"is 2\.", lambda: rp.GuidedSampler(P, delta_prime=2)),
    "a pool below zero": (
        rp.ProblemError,
        r"n_startup_trials.*-1",
        lambda: rp.GuidedSampler(P, n_startup_trials=-1),
    ),
    "trust above one": (rp.ProblemError, r"is 1\.5\. Use", lambda: rp.GuidedSampler(P, trust=1.5)),
    "a doubt of one": (rp.ProblemError, r"is 1\. Use", lambda: rp.GuidedSampler(P, doubt=1)),
    "a sampler without a problem": (rp.ProblemError, r"float", lambda: rp.GuidedSampler(0.1)),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])


def test_a_storage_without_the_study_is_named(tmp_path):
    place = f"sqlite:///{tmp_path}/s.db"
    rp.create_study(rp.Problem([rp.Risk("error", 0.1)], "cost"), storage=place, study_name="there")
    with pytest.raises(rp.StudyError, match="'absent'") as caught:
        rp.load_study(storage=place, study_name="absent")
    assert_rule_value_and_way_out(str(caught.value))


def test_the_names_of_several_studies_are_listed(tmp_path):
    for name in "ba":
        rp.create_study(P, storage=tmp_path / "s.db", study_name=name)
    with pytest.raises(rp.StudyError, match=r"s\.db' holds 'a', 'b'\. Write load_study") as caught:
        rp.load_study(storage=tmp_path / "s.db")
    assert_rule_value_and_way_out(str(caught.value))


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
@pytest.mark.parametrize("name", ["s.db", "s.log"])
def test_a_study_that_is_loaded_twice_is_one_study(name, tmp_path):
    one = rp.create_study(P, storage=tmp_path / name, study_name="n")
    two = rp.load_study(storage=tmp_path / name)
    trial = one.ask()
    rp.tell(two, trial, evaluate(trial))
    two.optimize(rp.objective(one, evaluate), n_trials=1)
    assert [trial.state.name for trial in one.trials] == ["COMPLETE", "COMPLETE"]


def test_stored_losses_are_never_unpickled():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        decode(buffer.getvalue())


def test_a_short_password_is_hidden_where_it_stands_alone():
    address = "postgresql://ann:a@host/db"
    shown = without_password(f"cannot reach a database at {address}: password=a, 'a'?", address)
    hidden = "postgresql://ann:***@host/db"
    assert shown == f"cannot reach a database at {hidden}: password=***, '***'?"
