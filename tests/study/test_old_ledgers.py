"""Ledgers from before losses were compared in any order still know the examples that were used.

The files in the folder fixtures were written by that version, from the losses that are made here:
the journal of a study of two trials with one question, and the ledger of a table with one.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.selection import ledger_beside

FIXTURES = Path(__file__).parent / "fixtures"
PROBLEM = rp.Problem([rp.Risk("error", 0.2)], "cost")
LUCK = np.random.default_rng(5).random((3, 200))


def losses(x, part):
    return LUCK[part] < 0.02 + 0.1 * x


@pytest.fixture
def storage(tmp_path):
    return shutil.copy(FIXTURES / "old-study.jsonl", tmp_path / "study.log")


def searched(storage, validation, calibration):
    """A new study in the storage of the old one, of the same configurations."""
    study = rp.create_study(PROBLEM, storage=storage, study_name="new", seed=0)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        seen = {"error": losses(x, validation), "cost": 1 - x}
        return rp.Evaluation(seen, {"error": losses(x, calibration)})

    for x in (0.0, 0.5):
        study.enqueue_trial({"x": x})
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    return study


@pytest.mark.parametrize(("calibration", "use"), [(1, 2), (0, 1)])
def test_another_study_counts_the_question_of_an_old_one(storage, calibration, use):
    selection = rp.select(searched(storage, 2, calibration))
    assert selection.certificate.use["number"] == use
    assert [one["study"] for one in selection.certificate.use["elsewhere"]] == ["old"] * (use - 1)


def test_examples_that_an_old_study_used_are_not_fresh(storage):
    study = searched(storage, 2, 0)
    again = rp.recertify(study, lambda trial: {"error": losses(trial.params["x"], 1)})
    assert again.certificate.use["number"] == 2


@pytest.mark.parametrize(("limit", "use"), [(0.2, 1), (0.21, 2)])
def test_a_table_goes_on_with_its_old_ledger(tmp_path, limit, use):
    lines = ["config,split,example,error,cost"]
    for x in (0.0, 0.5):
        for part, split in enumerate(("validation", "calibration")):
            lines += [
                f"at {x},{split},{split[0]}{i},{int(loss)},{1 - x}"
                for i, loss in enumerate(losses(x, part))
            ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    shutil.copy(FIXTURES / "old-table.json", ledger_beside(table))
    problem = rp.Problem([rp.Risk("error", limit)], "cost")
    selection = rp.select_from_frame(problem, table, config="config", example="example")
    assert selection.certificate.use["number"] == use
