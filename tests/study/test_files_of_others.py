"""Files of others: a storage or a ledger that is none is refused, and left as it is."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import optuna
import pytest

import riskpilot as rp
from riskpilot.gate import check_change
from riskpilot.study import open_study
from riskpilot.study.storages.sql import check_tables
from riskpilot.study.workers import work

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    x = trial.suggest_float("x", 0, 1)
    return rp.Evaluation({"error": [x, 0, 0, 0], "cost": 1 - x}, {"error": [0, x, 0, 0]})


OPENINGS: dict[str, Callable[[str], object]] = {
    "create_study": lambda place: rp.create_study(PROBLEM, storage=place, study_name="n"),
    "load_study": lambda place: rp.load_study(storage=place, study_name="n"),
    "open_study": open_study,
    "work": lambda place: work(evaluate, storage=place, study_name="n", n_trials=1),
}
TEXTS = [
    "hello my notes\n",
    "hello my notes",
    "two lines\nno newline at the end",
    '{"a": 1}\n',
    '{"my only copy": [1, 2, 3]}',
    '{"op_code": "of another machine"}',
    '{"op_code":0,"worker_id":7}\n',
    "[" * 100_000 + "\n",
]


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_is_no_journal_is_left_as_it_is(
    text: str, opening: str, tmp_path: Path
) -> None:
    place = tmp_path / "notes.log"
    place.write_text(text)
    with pytest.raises(rp.StudyError, match="is no journal"):
        OPENINGS[opening](str(place))
    assert place.read_text() == text


@pytest.mark.parametrize("begun", ["", "{", '{"op_code":0,"wor', '{"op_code":0,"worker_id":"8-1'])
def test_an_empty_file_and_half_of_a_first_line_are_used(begun: str, tmp_path: Path) -> None:
    place = tmp_path / "study.log"
    place.write_text(begun)
    rp.create_study(PROBLEM, storage=str(place), study_name="n")
    assert rp.load_study(storage=str(place), study_name="n").study_name == "n"


ABSENT = ["study.db", "sqlite:///study.db", "sqlite:///file:study.db?uri=true", "study.log"]


@pytest.mark.parametrize("opening", [name for name in OPENINGS if name != "create_study"])
@pytest.mark.parametrize("address", ABSENT)
def test_a_file_that_is_not_there_is_not_made_by_a_slip(
    address: str, opening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.StudyError, match=r"There is no study at .* does not exist"):
        OPENINGS[opening](address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("name", ["my study.db", "my%20study.db", "a#b.db", "file:s.db?uri=true"])
def test_an_address_that_a_study_was_made_with_opens_it(
    name: str, opening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"sqlite:///{name}"
    rp.create_study(PROBLEM, storage=address, study_name="n")
    if opening == "create_study":
        with pytest.raises(rp.StudyError, match="a study 'n' in this storage already"):
            OPENINGS[opening](address)
    else:
        OPENINGS[opening](address)


SAME_FILE = [
    ("50%.db", "50%.db", "sqlite:///50%25.db"),
    ("50%25.db", "50%25.db", "sqlite:///50%2525.db"),
    ("a%20b.db", "a%20b.db", "sqlite:///a%2520b.db"),
    ("a b.db", "sqlite:///a%20b.db", "a b.db"),
    ("a b.db", "sqlite:///file:a%2520b.db?uri=true", "a b.db"),
    ("50%25.log", "50%25.log", "./50%25.log"),
    ("y.db", "sqlite:///no/../y.db", "y.db"),
    ("y.db", "no/../y.db", "sqlite:///no/no/../../y.db"),
    ("y.log", "no/../y.log", "y.log"),
    ("y.log", "./y.log", "no/../y.log"),
]


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize(("file", "made", "read"), SAME_FILE)
def test_a_path_and_an_address_of_one_file_mean_the_same_study(
    file: str, made: str, read: str, opening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = rp.create_study(PROBLEM, storage=made, study_name="n", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    if opening == "create_study":
        with pytest.raises(rp.StudyError, match="a study 'n' in this storage already"):
            OPENINGS[opening](read)
    else:
        OPENINGS[opening](read)
    rp.select(rp.load_study(storage=read))  # which reads the losses
    assert all(path.name.startswith(file) for path in tmp_path.iterdir())
    assert (tmp_path / file).is_file()


def make_tables(place: Path, *names: str) -> None:
    with closing(sqlite3.connect(place)) as database, database:
        for name in names:
            database.execute(f"CREATE TABLE {name} (a)")
        database.execute("PRAGMA user_version = 1")  # so that the file is not empty


def gate(folder: Path, ledger: Path) -> object:
    table = folder / "change.csv"
    table.write_text("example,error\n" + "".join(f"{i},0\n" for i in range(50)))
    return check_change(table, risks=[rp.Risk("error", 0.3)], ledger=ledger)


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("tables", [["customers"], ["studies", "patients", "alembic_version"], []])
def test_a_database_of_others_gets_no_tables(
    opening: str, tables: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "foreign.db"
    make_tables(place, *tables)
    before = place.read_bytes()
    if opening == "create_study" and not tables:
        OPENINGS[opening](str(place))  # nobody's tables are in the way
        return
    with pytest.raises(rp.StudyError, match=r"no study in|keeps something else"):
        OPENINGS[opening](f"sqlite:///{place}")
    assert place.read_bytes() == before


@pytest.mark.parametrize("opening", OPENINGS)
def test_the_ledger_of_a_gate_gets_no_study(opening: str, tmp_path: Path) -> None:
    place = tmp_path / "gate.db"
    gate(tmp_path, place)
    before = place.read_bytes()
    with pytest.raises(rp.StudyError, match=r"no study in|'promise', 'questions'"):
        OPENINGS[opening](str(place))
    assert place.read_bytes() == before
    gate(tmp_path, place)


def test_a_study_gets_no_ledger_of_a_gate(tmp_path: Path) -> None:
    place = tmp_path / "study.db"
    OPENINGS["create_study"](str(place))
    before = place.read_bytes()
    with pytest.raises(rp.TableError, match="A ledger is a file of its own"):
        gate(tmp_path, place)
    assert place.read_bytes() == before


def test_tables_beside_those_of_a_study_do_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "study.db"
    OPENINGS["create_study"](str(place))
    make_tables(place, "customers")
    OPENINGS["load_study"](str(place))
    rp.create_study(PROBLEM, storage=str(place), study_name="another")


def test_on_a_server_a_new_study_may_go_beside_other_tables() -> None:
    # A server that is not there would be missed if its tables were read.
    check_tables("postgresql+psycopg://nobody@127.0.0.1:1/db", existing=False)


@pytest.mark.parametrize(
    ("name", "words"), [("q?x.db", "without '\\?'"), ("{x}.db", "braces"), ("}.db", "braces")]
)
def test_a_name_that_an_address_would_change_is_refused_before_a_file_is_made(
    tmp_path, name, words
):
    with pytest.raises(rp.StudyError, match=words):
        rp.create_study(rp.Problem([rp.Risk("error", 0.2)], "cost"), storage=tmp_path / name)
    assert not list(tmp_path.iterdir())
