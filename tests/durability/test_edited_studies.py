"""Studies whose storage was edited: every attribute dropped, retyped or changed, in every door."""

import copy
import json
import re
import sqlite3

import numpy as np
import pytest
from cases import PROBLEM, evaluate
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.trial import create_trial
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.study import export_losses, study_status
from riskpilot.study.storages import storage_of, trials_of
from riskpilot.study.storages.optuna_internals import sql_storage_of
from riskpilot.tables import read_losses, save_losses

# Where riskpilot keeps what its promise rests on. Other attributes are hints: where to look next,
# why a trial failed, what columns are called.
MATTERS = ("riskpilot:problem", "riskpilot:settings", "riskpilot:ledger", "riskpilot:record")
TABLES = {
    "study_user_attributes": "value_json",
    "study_system_attributes": "value_json",
    "trial_user_attributes": "value_json",
    "trial_system_attributes": "value_json",
    "trial_params": "distribution_json",
}
DEEP = "[" * 100_000
RAW = ["", "{", "NaN", DEEP, "9" * 5000, '"\\ud800"', "null", "[]", "7", '"x"', "true"]
VALUES = (None, "x", -1, 1e308, True, [], {}, ["x"], {"x": 1})
SAMPLE = 24  # cases in a quick run


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A study with a failed trial, a question and an answer, and its certificate."""
    place = tmp_path_factory.mktemp("edited")
    study = rp.create_study(
        PROBLEM, storage=place / "study.db", study_name="s", seed=0, safe={"x": 0.0}
    )

    def mostly(trial):
        made = evaluate(trial)
        if trial.number == 3:
            raise RuntimeError("no luck")
        return made

    study.optimize(rp.objective(study, mostly, on_error="record"), n_trials=6)
    rp.select(study).certificate.save(place / "c.json")
    return place


def rows(path):
    """Every attribute: its table, its row, its key and its text."""
    with sqlite3.connect(path) as base:
        found = []
        for table, column in TABLES.items():
            key = "param_name" if table == "trial_params" else "key"
            query = f"SELECT rowid, {key}, {column} FROM {table}"
            found += [(table, *row) for row in base.execute(query).fetchall()]
    base.close()
    return found


def places(value, above=()):
    """The paths to all that is inside a value; of a list to its first item alone."""
    names = list(value) if isinstance(value, dict) else [0] if isinstance(value, list) else []
    for name in names[: len(value)] if names else []:
        yield (*above, name)
        yield from places(value[name], (*above, name))


def edited(value):
    """The value with one thing changed, in every way."""
    for path in list(places(value)):
        for change in ("drop", "more", "next", *VALUES):
            new = copy.deepcopy(value)
            holder = new
            for name in path[:-1]:
                holder = holder[name]
            old = holder[path[-1]]
            if change == "drop":
                del holder[path[-1]]
            elif change == "more":
                if not isinstance(old, dict):
                    continue
                old["more"] = 1
            elif change == "next":
                if isinstance(old, bool) or not isinstance(old, int | float):
                    continue
                holder[path[-1]] = old + 1
            else:
                holder[path[-1]] = change
            if new != value or json.dumps(new) != json.dumps(value):
                yield f"{'.'.join(map(str, path))} {change!r}", json.dumps(new)


def cases(path):
    """Every edit of every attribute: table, row, key, what was done, the new text or None."""
    for table, row, key, text in rows(path):
        yield table, row, key, "gone", None
        for raw in RAW:
            if raw != text:
                yield table, row, key, raw[:20], raw
        for what, changed in edited(json.loads(text)):
            yield table, row, key, what, changed


def edit(source, target, table, row, text):
    target.write_bytes(source.read_bytes())
    with sqlite3.connect(target) as base:
        if text is None:
            base.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        else:
            base.execute(f"UPDATE {table} SET {TABLES[table]} = ? WHERE rowid = ?", (text, row))
    base.close()


def load(place):
    return rp.load_study(
        storage=place / "edited.db", study_name="s", artifact_store=place / "study.db.losses"
    )


def one_more(study):
    study.optimize(rp.objective(study, evaluate), n_trials=1)


# In this order on one loaded study: the last two may write to it.
DOORS = {
    "verify": lambda place, study: rp.verify(rp.Certificate.load(place / "c.json"), study=study).ok,
    "status": lambda place, study: study_status(study).to_json() and None,
    "suggest": lambda place, study: rp.suggest_limits(study) and None,
    "ledger": lambda place, study: rp.ledger(study) and None,
    "seal": lambda place, study: rp.seal(study, seed=5).plan,
    "export": lambda place, study: export_losses(study, place / "t.npz").name,
    "select": lambda place, study: rp.select(study).certificate.fingerprint,
    "optimize": lambda place, study: one_more(study),
}
COMMANDS = [
    ["status", "STUDY"],
    ["status", "STUDY", "--json"],
    ["verify", "CERTIFICATE", "--losses", "STUDY", "--artifacts", "LOSSES"],
    ["select", "STUDY", "--artifacts", "LOSSES"],
    ["seal", "STUDY", "--seed", "5", "--out", "SEAL"],
]


@pytest.fixture(scope="module")
def expected(original):
    (original / "edited.db").write_bytes((original / "study.db").read_bytes())
    study = load(original)
    return {name: DOORS[name](original, study) for name in ("verify", "seal", "select")}


def test_no_edit_of_an_attribute_ends_in_a_traceback_or_is_taken_for_the_original(
    original, expected, request
):
    every = list(cases(original / "study.db"))
    assert len(every) > 3000
    rng = np.random.default_rng(0)
    chosen = range(len(every))
    if not request.config.getoption("--long"):
        chosen = rng.choice(len(every), SAMPLE, replace=False)
    for i in chosen:
        table, row, key, what, text = every[i]
        edit(original / "study.db", original / "edited.db", table, row, text)
        found = {}
        try:
            study = load(original)
        except rp.RiskpilotError as error:
            found["load"] = error
        for name, door in DOORS.items() if not found else ():
            try:
                found[name] = door(original, study)
            except rp.RiskpilotError as error:
                found[name] = error
            except Exception as error:
                pytest.fail(f"{table} {key} {what} {name}: {error!r}")
        errors = [str(value) for value in found.values() if isinstance(value, rp.RiskpilotError)]
        assert not any("\n" in error for error in errors), (table, key, what, errors)
        quiet = not errors
        if quiet and key.startswith(MATTERS):
            differing = [name for name, value in expected.items() if found[name] != value]
            assert "verify" in differing, f"{table} {key} {what} is accepted: {differing}"


def test_no_edit_of_an_attribute_ends_a_command_in_a_traceback(original):
    every = list(cases(original / "study.db"))
    words = {"STUDY": "edited.db", "CERTIFICATE": "c.json", "LOSSES": "study.db.losses"}
    words["SEAL"] = "seal.json"
    for i in np.random.default_rng(1).choice(len(every), SAMPLE, replace=False):
        table, row, key, what, text = every[i]
        edit(original / "study.db", original / "edited.db", table, row, text)
        command = COMMANDS[i % len(COMMANDS)]
        filled = [str(original / words[word]) if word in words else word for word in command]
        result = CliRunner().invoke(app, filled)
        assert result.exit_code in (0, 1, 2, 3), (table, key, what, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            f"{table} {key} {what} {command}: {result.exception!r}"
        )


@pytest.mark.parametrize("attribute", ["settings", "problem", "record"])
def test_an_unknown_field_is_refused_in_one_sentence(original, attribute):
    key = f"riskpilot:{attribute}"
    table, row, _, text = next(one for one in rows(original / "study.db") if one[2] == key)
    changed = json.dumps({**json.loads(text), "from the future": 1})
    edit(original / "study.db", original / "edited.db", table, row, changed)
    with pytest.raises(rp.StudyError, match=r"changed from outside; restore it from a copy\."):
        rp.select(load(original))


@pytest.mark.parametrize("field", ["total", "n", "changes"])
def test_edited_sums_of_a_trial_are_noticed_before_a_plan_rests_on_them(original, field):
    table, row, _, text = next(
        one for one in rows(original / "study.db") if one[2] == "riskpilot:record"
    )
    record = json.loads(text)
    record["risks"]["error"][field] += 1
    edit(original / "study.db", original / "edited.db", table, row, json.dumps(record))
    study = load(original)
    for door in ("seal", "select", "suggest", "optimize"):
        with pytest.raises(rp.StudyError, match="its digest does not match its content"):
            DOORS[door](original, study)


def test_a_table_of_losses_says_its_format(tmp_path):
    losses = {"error": np.zeros((2, 5)), "cost": np.zeros(2)}
    path = save_losses(tmp_path / "t.npz", validation=losses, calibration=losses)
    with np.load(path) as arrays:
        parts = dict(arrays)
    assert str(parts.pop("format")) == "riskpilot-losses/1"
    np.savez(path, **parts)
    assert read_losses(path).validation["error"].shape == (2, 5)  # one that was made by hand
    np.savez(path, format=np.array("riskpilot-losses/9"), **parts)
    with pytest.raises(rp.TableError, match="in the format 'riskpilot-losses/9', and this"):
        read_losses(path)


def test_a_running_search_notices_that_its_limits_were_edited(original):
    database = original / "edited.db"
    database.write_bytes((original / "study.db").read_bytes())
    study = load(original)
    objective = rp.objective(study, evaluate)
    table, row, _, text = next(one for one in rows(database) if one[2] == "riskpilot:problem")
    problem = json.loads(text)
    problem["risks"][0]["limit"] = 0.9
    with sqlite3.connect(database) as base:
        changed = (json.dumps(problem), row)
        base.execute(f"UPDATE {table} SET value_json = ? WHERE rowid = ?", changed)
    base.close()
    with pytest.raises(rp.StudyError, match="its digest does not match its content"):
        study.optimize(objective, n_trials=1)


# --- the ranges of parameters --------------------------------------------------------------------

RANGES = {
    "float": FloatDistribution(0, 1),
    "log": FloatDistribution(0.001, 1, log=True),
    "stepped": FloatDistribution(0, 2, step=0.25),
    "int": IntDistribution(1, 8),
    "even": IntDistribution(0, 8, step=2),
    "choice": CategoricalDistribution(("a", None, 2)),
}


@pytest.fixture(params=["study.db", "study.log"])
def with_ranges(request, tmp_path):
    """A parameter of every kind in two trials: one function that edits a range, one that reads."""
    path = tmp_path / request.param
    study = rp.create_study(PROBLEM, storage=path, study_name="s", seed=0)
    asked = study.ask(RANGES)
    study.add_trial(create_trial(params=asked.params, distributions=RANGES, values=[0.0] * 3))
    content = path.read_bytes()

    def edit_range(old, new):
        if path.suffix == ".log":
            path.write_bytes(content.replace(json.dumps(old).encode(), json.dumps(new).encode()))
            return
        with sqlite3.connect(path) as base:
            base.execute("PRAGMA synchronous = OFF")
            change = "UPDATE trial_params SET distribution_json = ? WHERE distribution_json = ?"
            assert base.execute(change, (new, old)).rowcount == 2
        base.close()

    def read_anew():
        if path.suffix == ".log":
            return trials_of(rp.load_study(storage=path, study_name="s"))
        return sql_storage_of(storage_of(study)).get_all_trials(1)

    return edit_range, read_anew


@pytest.mark.filterwarnings(
    "ignore:Heartbeat of",
    "ignore:The distribution is",
    "ignore:Choices for",  # of journals
)
@pytest.mark.parametrize("kind", RANGES)
def test_an_edited_range_is_refused_or_is_one_that_optuna_would_write(with_ranges, kind):
    edit_range, read_anew = with_ranges
    before = distribution_to_json(RANGES[kind])
    for new in [*RAW, *(changed for _, changed in edited(json.loads(before)))]:
        edit_range(before, new)
        refusal = None
        try:
            asked, added = read_anew()
        except rp.StudyError as error:
            refusal = str(error)
        edit_range(new, before)
        if refusal is None:
            assert asked.distributions == added.distributions
            assert getattr(asked.distributions[kind], "log", False) in (True, False)
            found = json.loads(distribution_to_json(asked.distributions[kind]))
            assert json.dumps(found, sort_keys=True) == json.dumps(json.loads(new), sort_keys=True)
        else:
            assert re.search(r"(as Optuna wrote|change of a study in).*from a copy\.$", refusal)
