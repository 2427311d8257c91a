"""Where a study lies: spellings of its file, and the folders of losses of earlier versions."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

import riskpilot as rp
from riskpilot.common import kept_in
from riskpilot.study import open_study

PROBLEM = rp.Problem([rp.Risk("error", 0.3)], "cost")


def evaluate(trial: optuna.Trial) -> rp.Evaluation:
    x = trial.suggest_float("x", 0, 1)
    return rp.Evaluation({"error": [x, 0, 0, 0], "cost": 1 - x}, {"error": [0, x, 0, 0]})


OPENINGS: dict[str, Callable[[str], object]] = {
    "create_study": lambda place: rp.create_study(PROBLEM, storage=place, study_name="n"),
    "load_study": lambda place: rp.load_study(storage=place, study_name="n"),
    "open_study": open_study,
}


@pytest.mark.parametrize("name", ["y.db", "y.log"])
def test_two_dots_behind_a_link_mean_the_same_to_all_who_open_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("link").symlink_to(tmp_path / "elsewhere" / "deep")
    study = rp.create_study(PROBLEM, storage=f"link/../{name}", study_name="n", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    for place in (f"link/../{name}", name):
        rp.select(rp.load_study(storage=place))
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["deep"]


def test_a_folder_that_is_not_there_is_named_before_a_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.StudyError, match=r"in a folder that exists, .*\. Make it"):
        rp.create_study(PROBLEM, storage="sqlite:///file:no/../y.db?uri=true")
    assert list(tmp_path.iterdir()) == []


SLIPS = ["sqlite:study.db", "sqlite:/study.db", "sqlite://study.db", "sqlite+pysqlite://study.db"]


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize(
    ("address", "words"),
    [
        *((slip, "three slashes") for slip in SLIPS),
        ("", "but '' is a name"),
        ("a\0.db", "no system"),
    ],
)
def test_a_slip_in_an_address_is_named(
    address: str, words: str, opening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.StudyError, match=words) as error:
        OPENINGS[opening](address)
    assert "***" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def made_before(address: str, folder: str, now: str) -> None:
    """Make a study whose losses lie where earlier versions put them, by the address as written."""
    study = rp.create_study(PROBLEM, storage=address, study_name="n", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    Path(now).rename(folder)


EARLIER = [
    ("sqlite:///my%20study.db", "my study.db", "my%20study.db"),
    ("sqlite:///50%25.db", "50%.db", "50%25.db"),
    ("sqlite:///file:study.db?uri=true", "study.db", "file:study.db"),
    ("sqlite:///a%20b/study.db", "a b/study.db", "a%20b/study.db"),
]


@pytest.mark.parametrize(("address", "file", "before"), EARLIER)
def test_losses_are_found_under_the_name_that_an_earlier_version_gave_their_folder(
    address: str, file: str, before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).parent.mkdir(exist_ok=True)
    made_before(address, f"{before}.losses", f"{file}.losses")
    addresses = [address] if "file:" in address else [address, file]  # by its path as well
    for place in addresses:
        study = rp.load_study(storage=place)
        study.optimize(rp.objective(study, evaluate), n_trials=1)
        rp.select(study)
    # They stay together where they are.
    assert Path(f"{before}.losses").is_dir()
    assert not Path(f"{file}.losses").exists()
    if "file:" not in address:
        assert kept_in(f"{before}.losses/new.html") == "in the folder of a study's losses"


def test_losses_under_both_names_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_before("sqlite:///my%20study.db", "my%20study.db.losses", "my study.db.losses")
    Path("my study.db.losses").mkdir()  # as a version in between left it, which saw no old losses
    study = rp.load_study(storage="my study.db")
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    rp.select(study)
    assert list(Path("my study.db.losses").iterdir())


def test_the_losses_of_another_study_are_not_taken_for_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = rp.create_study(PROBLEM, storage="my%20study.db", study_name="n", seed=0)
    other.optimize(rp.objective(other, evaluate), n_trials=1)
    n_files = len(list(Path("my%20study.db.losses").iterdir()))
    study = rp.create_study(PROBLEM, storage="sqlite:///my%20study.db", study_name="n", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=1)
    assert len(list(Path("my%20study.db.losses").iterdir())) == n_files
    assert Path("my study.db.losses").is_dir()


@pytest.mark.parametrize("ending", ["db", "log"])
def test_a_link_to_the_file_of_a_study_leads_to_its_losses_and_locks(tmp_path, ending):
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / f"study.{ending}", tmp_path / f"link.{ending}"
    study = rp.create_study(PROBLEM, storage=str(file), study_name="s", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    link.symlink_to(file)
    again = rp.load_study(storage=str(link), study_name="s")
    again.optimize(rp.objective(again, evaluate), n_trials=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [link.name, "real"]
    assert rp.select(again).config == rp.select(study).config


def test_losses_that_lie_beside_a_link_are_found(tmp_path):
    """Versions before did not follow links."""
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / "study.db", tmp_path / "link.db"
    study = rp.create_study(PROBLEM, storage=str(file), study_name="s", seed=0)
    study.optimize(rp.objective(study, evaluate), n_trials=2)
    link.symlink_to(file)
    (tmp_path / "real" / "study.db.losses").rename(tmp_path / "link.db.losses")
    rp.select(rp.load_study(storage=str(link), study_name="s"))
