"""Passwords in addresses: shown nowhere, however the address is spelled or mistyped."""

import logging
import traceback
from itertools import cycle, islice
from urllib.parse import quote

import pytest
from cases import PROBLEM, evaluate
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import hide_password, shown_safely
from riskpilot.study import export_losses, work
from riskpilot.study.storages import open_storage
from riskpilot.tables import read_losses

HOST = "127.0.0.1:1"  # nothing listens there, and that is known at once
# Each password is made of syllables that occur in no message, apart by what addresses are made of.
SYLLABLES = ("qzxw", "wvkq")
PASSWORDS = [
    "qzxw",
    *(f"qzxw{sign}wvkq" for sign in "@:/?#&=+, ;%'\"\\[]"),
    *(f"qzxw{quote(sign, safe='')}wvkq" for sign in "@:/?% "),
    "qzxw%2540wvkq",
    "qzxw@wvkq@",
    "@qzxw",
    "qzxw\nwvkq",
]
PLACES = [
    "postgresql://ann:{}@{}/db",
    "postgresql+psycopg://ann:{}@{}/db",
    "postgres://ann:{}@{}/db",
    "mysql://ann:{}@{}/db",
    "nonsense://ann:{}@{}/db",
    "postgresql://ann@{1}/db?password={0}",
    "postgresql://{1}/db?user=ann&password={0}",
    "postgresql+psycopg://{1}/db?user=ann&password={0}&sslmode=disable",
    "postgresql+psycopg://ann@{1}/db?sslpassword={0}",
    "postgresql+psycopg://ann@{1}/db?passfile=/home/{0}",
    "postgresql+psycopg://ann:{0}@{1},127.0.0.1:2/db",
    "postgresql+psycopg://ann:{}@{}/db?connect_timeout=much",
    "postgresql+psycopg://ann:{}@127.0.0.1:port/db",
    "ann:{}@{}/db",
    "ann/{}@{}/db",
    "{}@{}/db",
    "postgresql:/ann:{}@{}/db",
    "postgresql:ann:{}@{}/db",
    "postgresql//ann:{}@{}/db",
    "postgresql;//ann:{}@{}/db",
    " postgresql://ann:{}@{}/db",
    "postgresql ://ann:{}@{}/db",
    "postgresql:///ann:{}@{}/db",
    "postgresql://ann {}@{}/db",
    "postgresql://ann,{}@{}/db",
    "postgresql://ann%3A{}@{}/db",
    "postgresql%3A//ann%3A{}%40{}/db",
    "sqlite:///ann:{}@{}/db",
    "sqlite://ann:{}@{}/db",
    "sqlite+pysqlcipher://:{}@/study.db?cipher=aes-256-cfb",
    "sqlite:///absent/study.db?key={}",
    "host={1} user=ann password={0}",
    "host={1} user=ann password = {0} dbname=db",
    "redis://:{}@{}/0",
]
ADDRESSES = [place.format(word, HOST) for place in PLACES for word in PASSWORDS[:2]] + [
    place.format(word, HOST)
    for place, word in zip(cycle(PLACES), islice(cycle(PASSWORDS), 5 * len(PLACES)), strict=False)
]


def gives_away(text):
    return any(syllable in text for syllable in SYLLABLES)


def said_by(error):
    """All that an error says: itself, what it was raised from, and what it was raised beside."""
    seen = [error]
    for one in seen:
        seen += [e for e in (one.__cause__, one.__context__) if e is not None and e not in seen]
    assert len(seen) < 20
    texts = [text for one in seen for text in (str(one), repr(one), repr(one.args))]
    lines = traceback.format_exception_only(error)
    chain = traceback.TracebackException.from_exception(error, lookup_lines=False)
    return "\n".join([*texts, *lines, *(line for line in chain.format_exception_only())])


API = {
    "load_study": lambda address: rp.load_study(storage=address, study_name="s"),
    "create_study": lambda address: rp.create_study(
        PROBLEM, storage=address, artifact_store="losses"
    ),
    "open_storage": open_storage,
    "work": lambda address: work(evaluate, storage=address, n_trials=1, patience=0),
    "certificate": rp.Certificate.load,
    "seal": rp.Seal.load,
    "losses": read_losses,
    "study_name": lambda address: rp.load_study(storage="study.db", study_name=address),
}
COMMANDS = {
    "status": ["status", "ADDRESS"],
    "select": ["select", "ADDRESS"],
    "select a table": ["select", "ADDRESS", "--risk", "error<=0.1", "--minimize", "cost"],
    "seal": ["seal", "ADDRESS"],
    "report": ["report", "ADDRESS"],
    "dashboard": ["dashboard", "ADDRESS"],
    "live": ["live", "ADDRESS"],
    "verify": ["verify", "certificate.json", "--losses", "ADDRESS"],
    "verify=": ["verify", "certificate.json", "--losses=ADDRESS"],
    "verify the wrong way round": ["verify", "ADDRESS", "--losses", "study.db"],
    "the name of a study": ["status", "study.db", "--study-name", "ADDRESS"],
    "one word too many": ["status", "study.db", "ADDRESS"],
    "no command": ["ADDRESS"],
    "a limit": ["plan", "--risk", "ADDRESS", "--samples", "100"],
    "a number": ["plan", "--risk", "error<=0.1", "--samples", "ADDRESS"],
    "an output": ["seal", "study.db", "--out", "ADDRESS/absent/seal.json"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a study, its certificate and its losses."""
    place = tmp_path_factory.mktemp("passwords")
    study = rp.create_study(PROBLEM, storage=place / "study.db", study_name="s", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=3)
    rp.select(study).certificate.save(place / "certificate.json")
    export_losses(study, place / "losses.npz")
    return place


@pytest.fixture
def folder(made, monkeypatch):
    """The folder in which the commands run."""
    monkeypatch.chdir(made)
    return made


def test_there_are_more_than_a_hundred_spellings():
    assert len(set(ADDRESSES)) > 200
    assert all(gives_away(address) for address in ADDRESSES)


@pytest.mark.parametrize("place", PLACES)
def test_no_spelling_is_shown(place):
    for password in PASSWORDS:
        address = place.format(password, HOST)
        assert not gives_away(hide_password(address)), address
        assert not gives_away(shown_safely(address)), address


@pytest.mark.parametrize("door", API)
def test_no_error_of_the_library_shows_a_password(folder, caplog, door):
    caplog.set_level(logging.DEBUG)
    for address in ADDRESSES if door == "load_study" else ADDRESSES[list(API).index(door) :: 7]:
        with pytest.raises(rp.RiskpilotError) as caught:
            API[door](address)
        assert not gives_away(said_by(caught.value)), (address, said_by(caught.value))
    assert not gives_away(caplog.text)


@pytest.mark.parametrize("door", COMMANDS)
def test_no_command_shows_a_password(folder, door):
    for address in ADDRESSES[list(COMMANDS).index(door) :: 11]:
        words = [word.replace("ADDRESS", address) for word in COMMANDS[door]]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2, (address, result.output, result.exception)
        squeezed = "".join(result.output.split())  # a panel may fold a long line
        assert not gives_away(result.output), (address, result.output)
        assert not gives_away(squeezed.replace("│", "")), (address, result.output)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:secret@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("postgresql://ann:se@cret@one:1,two:2/db", "postgresql://ann:***@one:1,two:2/db"),
        ("postgresql://ann:secret@[::1]/db?sslmode=off", "postgresql://ann:***@[::1]/db?***"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("sqlite:////data/ann@lab/study.db", "sqlite:////data/ann@lab/study.db"),
        ("sqlite:///study.db?timeout=3", "sqlite:///study.db?***"),
        ("data/ann@lab.db", "data/ann@lab.db"),
        ("C:\\data\\study.db", "C:\\data\\study.db"),
        ("runs/lr=0.1/losses.npz", "runs/lr=0.1/losses.npz"),
    ],
)
def test_what_is_certain_stays_legible(address, shown):
    assert hide_password(address) == shown


def test_the_chain_of_an_error_ends_where_a_password_could_be(tmp_path):
    with pytest.raises(rp.StudyError) as caught:
        rp.load_study(storage=f"postgresql+psycopg://ann:qzxw@{HOST}/db", study_name="s")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "cannot be opened" in str(caught.value)
    assert "ann:***@127.0.0.1:1/db" in str(caught.value)
