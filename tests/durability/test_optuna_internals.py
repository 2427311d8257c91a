"""Optuna's unpublished parts are touched in one module, and a study outlives their change."""

import ast
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from cases import evaluate
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

import riskpilot as rp
from riskpilot.study.storages import optuna_internals
from riskpilot.study.storages.sql import SqliteStorage, SqlStorage

PACKAGE = Path(rp.__file__).parent
ADAPTER = Path(optuna_internals.__file__)
MODULES = sorted(set(PACKAGE.rglob("*.py")) - {ADAPTER})


# --- one module ----------------------------------------------------------------------------------


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


@pytest.fixture(scope="module")
def private_names(tmp_path_factory):
    """Every name with an underscore that Optuna's studies, trials and storages have."""
    folder = tmp_path_factory.mktemp("optuna")
    journal = JournalFileBackend(f"{folder}/study.log")
    sql = RDBStorage(f"sqlite:///{folder}/study.db")
    study = optuna.create_study(storage=sql)
    trial = study.ask()
    objects = [study, study._storage, sql, trial, study.trials[0], journal]
    objects += [JournalStorage(journal), InMemoryStorage(), study.sampler]
    found = {name for thing in objects for name in dir(thing) if is_private(name)}
    sql.remove_session()
    sql.engine.dispose()
    assert {"_storage", "_trial_id", "_backend", "_file_path", "_get_trials"} <= found
    return found


def is_about_itself(node):
    """Whether an attribute is one of ``self`` or ``cls``; a class may name its own as it likes."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def touched(tree, names):
    """Where a module uses one of the names on another object, or as text for ``getattr``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and not is_about_itself(node):
            yield node.lineno, node.attr
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("attr"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and argument.value in names:
                    yield node.lineno, argument.value


def imported(tree):
    """What a module imports, in full: ``from a.b import c`` is a.b.c."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def test_only_the_adapter_touches_what_optuna_does_not_publish(private_names):
    found = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [(path.name, *use) for use in touched(tree, private_names)]
        for line, name in imported(tree):
            parts = name.split(".")
            if parts[0] == "optuna" and any(is_private(part) for part in parts):
                found.append((path.name, line, name))
    assert found == []


def test_the_check_finds_such_uses_in_the_adapter(private_names):
    tree = ast.parse(ADAPTER.read_text(encoding="utf-8"))
    assert {"_storage", "_trial_id", "_backend", "_get_trials"} <= {
        name for _, name in touched(tree, private_names)
    }
    assert any("._rdb." in name for _, name in imported(tree))


@pytest.mark.parametrize("cls", [SqlStorage, SqliteStorage])
def test_storages_of_our_own_have_no_private_methods_that_could_be_optunas(cls):
    methods = [name for name, value in vars(cls).items() if inspect.isfunction(value)]
    assert [name for name in methods if is_private(name)] == []


# --- an Optuna that has changed ------------------------------------------------------------------

SCRIPT = """
import json, logging, sqlite3, sys
import optuna
import riskpilot as rp
from cases import PROBLEM, evaluate
from riskpilot.study import work
from riskpilot.study.storages import fail_silent_trials

class Lines(logging.Handler):
    lines = []
    def emit(self, record):
        self.lines.append([record.levelname, record.getMessage()])

logging.getLogger("riskpilot").addHandler(Lines())
optuna.logging.set_verbosity(optuna.logging.ERROR)
address = sys.argv[1]
assert "sqlalchemy" not in sys.modules
study = rp.create_study(PROBLEM, storage=address, study_name="s", seed=0)
work(evaluate, storage=address, study_name="s", n_trials=6)
selection = rp.select(rp.load_study(storage=address, study_name="s"))
params = [trial.params for trial in study.trials]

# A worker that dies before its first heartbeat.
study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.RUNNING))
fail_silent_trials(study)  # which writes one, because nobody else does
with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
    tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    if ("trial_heartbeats",) in tables:
        database.execute("UPDATE trial_heartbeats SET heartbeat = '2020-01-01 00:00:00.000000'")
database.close()
fail_silent_trials(study)

print(json.dumps({
    "optuna": optuna.__file__,
    "class": type(study._storage._backend).__name__,
    "lines": Lines.lines,
    "params": params,
    "after death": [trial.state.name for trial in study.trials[6:]],
    "certificate": selection.certificate.to_json(),
}))
"""


def run(address, *paths):
    folders = [*paths, PACKAGE.parent, Path(__file__).parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, address]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def changed(folder, changes):
    """A copy of Optuna in which words are changed wherever they stand in its storages."""
    copy = folder / "changed" / "optuna"
    shutil.copytree(Path(optuna.__file__).parent, copy)
    for path in (*copy.glob("storages/**/*.py"), copy / "version.py"):
        before = after = path.read_text(encoding="utf-8")
        for old, new in changes.items():
            after = after.replace(old, new)
        if after != before:
            path.write_text(after, encoding="utf-8")
    return copy


CHANGES = {
    "a method has another name": ({"_get_trials(": "_read_trials("}, "no method _get_trials"),
    "a method takes other arguments": (
        {"trial_id_greater_than": "after_trial_id"},
        "_get_trials takes other arguments",
    ),
    "the tables are described elsewhere": (
        {"_rdb.models": "_rdb.tables", "_rdb import models": "_rdb import tables as models"},
        "not described where they were",
    ),
    "a table has another name": (
        {'__tablename__ = "trial_heartbeats"': '__tablename__ = "heartbeats"'},
        "no table trial_heartbeats",
    ),
    "times mean something else": ({"_datetime_start_utc": "_datetime_start"}, "are UTC"),
    "the next major version": ({'"5.': '"6.'}, "its version is 6."),
}


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The study and its selection with the Optuna that is installed."""
    done = run(f"sqlite:///{tmp_path_factory.mktemp('usual')}/study.db")
    assert done["class"] == "SqliteStorage"
    assert done["lines"] == []
    assert done["after death"] == ["FAIL", "WAITING"]
    return done


@pytest.mark.parametrize("change", CHANGES)
def test_a_study_on_sqlite_outlives_a_change_inside_optuna(change, usual, tmp_path):
    words, difference = CHANGES[change]
    copy = changed(tmp_path, words)
    if change == "the tables are described elsewhere":
        (copy / "storages/_rdb/models.py").rename(copy / "storages/_rdb/tables.py")
    done = run(f"sqlite:///{tmp_path}/study.db", copy.parent)
    assert Path(done["optuna"]).parent == copy
    assert done["class"] == "RDBStorage"
    ((level, sentence),) = done["lines"]  # once, although the storage was opened three times
    assert level == "WARNING"
    assert difference in sentence
    assert "Optuna's own storage" in sentence
    assert done["params"] == usual["params"]
    # Where heartbeats are kept elsewhere, it is not known that the dead worker never wrote one.
    is_found = change != "a table has another name"
    assert done["after death"] == (["FAIL", "WAITING"] if is_found else ["RUNNING"])
    one, two = (rp.Certificate.from_json(run["certificate"]) for run in (done, usual))
    assert one.config == two.config
    assert one.log_p == two.log_p
    assert one.calibration_digest == two.calibration_digest


def test_a_study_begun_with_optunas_own_storage_goes_on_with_ours(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    copy = changed(tmp_path, CHANGES["a method has another name"][0])
    begun = run(address, copy.parent)
    study = rp.load_study(storage=address, study_name="s")
    assert [trial.params for trial in study.trials[:6]] == begun["params"]
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE"] * 6 + ["FAIL"] + ["COMPLETE"] * 2


# --- what stores is loaded by who stores ---------------------------------------------------------


def test_importing_the_package_loads_no_sqlalchemy():
    code = (
        "import sys, optuna; before = 'sqlalchemy' in sys.modules; "
        "import riskpilot, riskpilot.study.workers; "
        "print(before, [m for m in ('sqlalchemy', 'alembic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False []"


def test_a_study_in_memory_or_in_a_journal_loads_no_sqlalchemy(tmp_path):
    code = (
        "import sys; from cases import PROBLEM, evaluate; import riskpilot as rp\n"
        "for storage in (None, sys.argv[1]):\n"
        "    study = rp.create_study(PROBLEM, storage=storage, seed=0)\n"
        "    study.optimize(rp.objective(study, evaluate), n_trials=4)\n"
        "    rp.select(study)\n"
        "print([m for m in ('sqlalchemy', 'alembic') if m in sys.modules])"
    )
    folders = os.pathsep.join(map(str, (PACKAGE.parent, Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", code, f"{tmp_path}/study.log"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": folders},
        check=True,
    )
    assert done.stdout.strip() == "[]"
