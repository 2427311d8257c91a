"""A column of a file holds what its name says: every command reads the same hits alike."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.tables import read_losses, save_losses

runner = CliRunner()
N = 600
LOGS = Path(__file__).parents[1] / "tables" / "logs" / "fixtures" / "inspect_ai"
LIMITS = {"correct": "correct>=0.85", "wrong": "wrong<=0.15"}
PROBLEMS = {
    "correct": rp.Problem([rp.Risk("correct", at_least=0.85)], minimize="cost"),
    "wrong": rp.Problem([rp.Risk("wrong", limit=0.15)], minimize="cost"),
}


def run(*arguments):
    """The exit code of a command, and what it said."""
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code in (0, 1, 3), f"{result.output}\n{result.exception!r}"
    return result.exit_code, result.output


@dataclass(frozen=True)
class Place:
    """A folder with a study and a certificate that are good, and the name of the one risk."""

    folder: Path
    name: str

    @property
    def problem(self) -> rp.Problem:
        return PROBLEMS[self.name]

    @property
    def storage(self) -> Path:
        """A study whose one trial, number 0, kept the limit in validation."""
        path = self.folder / "study.log"
        study = rp.create_study(self.problem, storage=str(path), seed=0)
        losses = np.arange(400) % 20 == 0
        study.optimize(
            rp.objective(study, lambda trial: rp.Evaluation({self.name: losses, "cost": 1.0})),
            n_trials=1,
        )
        return path

    @property
    def certificate(self) -> Path:
        losses = {self.name: [np.arange(400) % 20 == 0], "cost": [1.0]}
        more = {self.name: [np.arange(400) % 20 == 1]}
        selection = rp.select_from_losses(self.problem, validation=losses, calibration=more)
        return selection.certificate.save(self.folder / "certificate.json")

    def table(self, right: float) -> Path:
        """Rows of one configuration that is right in a share of them, in the words of the risk."""
        hits = np.random.default_rng(0).random(N) < right
        path = self.folder / "table.csv"
        pd.DataFrame(
            {
                "config": "a",
                "trial": 0,
                "example": [f"q{i}" for i in range(N)],
                "split": np.where(np.arange(N) % 3 == 0, "validation", "calibration"),
                self.name: (hits if self.name == "correct" else ~hits).astype(int),
                "cost": 1.0,
            }
        ).to_csv(path, index=False)
        return path


def select(place, table):
    options = ("-r", LIMITS[place.name], "-m", "cost", "--json", "--out", place.folder / "c.json")
    code, said = run("select", table, *options)
    assert run("verify", place.folder / "c.json", "--losses", table)[0] == 0
    return code, certified(said, place)


def frame(place, table):
    selection = rp.select_from_frame(
        place.problem, pd.read_csv(table), config="config", example="example"
    )
    return 0 if selection.config else 3, selection.certificate.log_p[0][place.name]


def whole(place, table):
    read = read_losses(table, problem=place.problem)
    selection = rp.select_from_losses(
        place.problem,
        validation=read.validation,
        calibration=read.calibration,
        configs=read.configs,
        validation_ids=read.validation_ids,
        calibration_ids=read.calibration_ids,
    )
    selection.certificate.save(place.folder / "c.json")
    assert run("verify", place.folder / "c.json", "--losses", table)[0] == 0
    return 0 if selection.config else 3, selection.certificate.log_p[0][place.name]


def gate(place, table):
    code, said = run("gate", table, "-r", LIMITS[place.name], "--json")
    return code, json.loads(said)["risks"][0]["value"]


def calibrate(place, table):
    asked = ("calibrate", place.storage, "--labels", table, "--horizon", N, "--json")
    code, said = run(*asked)
    assert run(*asked)[0] == code  # the labels that were added before are these ones
    return code, certified(said, place)


def recertify(place, table):
    code, said = run("recertify", place.storage, "--losses", table, "--json")
    return code, certified(said, place)


def watch(place, table):
    code, said = run("watch", place.certificate, "--losses", table, "--json")
    return code, json.loads(said)["risks"][place.name]["upper"]


def calibrate_judged(place, table):
    options = ("--labels", table, "--judge", judged(place, table), "--horizon", N, "--json")
    code, said = run("calibrate", place.storage, *options)
    return code, certified(said, place)


def watch_judged(place, table):
    options = ("--losses", table, "--judge", judged(place, table), "--json")
    code, said = run("watch", place.certificate, *options)
    return code, json.loads(said)["risks"][place.name]["lower"]


def certified(said, place):
    return json.loads(said)["certificate"]["log_p"][0][place.name]


def judged(place, table):
    """Scores of a judge that is always right, and of as many fresh examples that are alike."""
    labels = pd.read_csv(table)
    fresh = labels.assign(example="f" + labels["example"], fresh=True)
    path = place.folder / "scores.csv"
    pd.concat([labels.assign(fresh=False), fresh]).to_csv(path, index=False)
    return path


ROADS = [
    select, frame, whole, gate, calibrate, calibrate_judged, recertify, watch, watch_judged
]  # fmt: skip


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
def test_the_same_hits_have_the_same_verdict_everywhere(road, tmp_path):
    found = {}
    for name, right in (("correct", 0.95), ("correct", 0.05), ("wrong", 0.95)):
        folder = tmp_path / f"{name}-{right}"
        folder.mkdir()
        place = Place(folder, name)
        found[name, right] = road(place, place.table(right))
    assert found["correct", 0.95][0] == 0
    assert found["correct", 0.05][0] == (1 if road in (gate, watch, watch_judged) else 3)
    assert found["correct", 0.95] == found["wrong", 0.95]


@pytest.mark.parametrize(("log", "code"), [("terse-large.eval", 0), ("terse-small.eval", 1)])
def test_logs_are_read_in_the_words_of_their_columns(log, code):
    answers = [run("gate", LOGS / log, "-r", limit) for limit in ("accuracy>=0.7", "error<=0.3")]
    assert [answer[0] for answer in answers] == [code, code]
    options = ("-m", "tokens", "--split", "0.5", "--seed", 1, "--no-ledger", "--json")
    chosen = [
        run("select", LOGS / log, "-r", limit, *options)
        for limit in ("accuracy>=0.7", "error<=0.3")
    ]
    values = [list(json.loads(said)["certificate"]["log_p"][0].values()) for _, said in chosen]
    assert values[0] == values[1]


@pytest.fixture
def archive(tmp_path):
    """Hits that somebody took for losses: right in 5 % of the examples."""
    hits = np.random.default_rng(0).random((1, N)) < 0.05
    return save_losses(
        tmp_path / "hits.npz",
        validation={"correct": hits[:, :200], "cost": [1.0]},
        calibration={"correct": hits[:, 200:]},
    )


def test_an_archive_is_refused_where_it_cannot_be_known_whether_1_is_good(archive, tmp_path):
    problem = PROBLEMS["correct"]
    result = runner.invoke(app, ["select", str(archive), "-r", "correct>=0.85", "-m", "cost"])
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "nobody can tell which of the two 'hits.npz' has" in said
    assert '"wrong<=0.15"' in said
    with pytest.raises(rp.RiskpilotError, match=r"Give a \.csv or \.parquet file"):
        read_losses(archive, problem=problem)
    read = read_losses(archive)  # as losses, on the word of who made them
    selection = rp.select_from_losses(
        problem, validation=read.validation, calibration=read.calibration
    )
    certificate = selection.certificate.save(tmp_path / "certificate.json")
    assert run("verify", certificate, "--losses", archive)[0] == 0


def test_without_a_problem_columns_are_read_as_they_are_written(tmp_path):
    table = Place(tmp_path, "correct").table(0.05)
    written = pd.read_csv(table).query("split == 'calibration'")["correct"].to_numpy()
    as_written = read_losses(table).calibration["correct"]
    np.testing.assert_array_equal(np.sort(as_written[0]), np.sort(written))
    turned = read_losses(table, problem=PROBLEMS["correct"]).calibration["correct"]
    np.testing.assert_array_equal(turned, 1 - as_written)
    with pytest.raises(rp.RiskpilotError, match="problem is the Problem that the table is read"):
        read_losses(table, problem="correct>=0.85")


def test_a_problem_says_what_is_read_of_a_table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        f"a,{split},{i},{i // part % 2},{'f' if i % 3 else 'm'},text,{i % 5},1\n"
        for part, split in enumerate(("validation", "calibration"), 1)
        for i in range(60)
    ]
    path.write_text("config,split,example,correct,sex,answer,w,cost\n" + "".join(rows))
    path.write_text(path.read_text().replace("calibration,", "calibration,c"))
    worst = rp.Risk("correct", at_least=0.2, statistic=rp.WorstGroup(), groups="sex")
    weighted = rp.Risk("correct", at_least=0.1, weights="w", largest_weight=4)
    for risk, beside in ((worst, "sex"), (weighted, "w")):
        problem = rp.Problem([risk], minimize="cost")
        read = read_losses(path, problem=problem)
        assert set(read.calibration) == {"correct", "cost", beside}
        by_arrays = rp.select_from_losses(
            problem,
            validation=read.validation,
            calibration=read.calibration,
            configs=read.configs,
        )
        by_rows = rp.select_from_frame(problem, path, config="config", example="example")
        assert by_arrays.certificate.log_p == by_rows.certificate.log_p


ASKED = {
    "select": lambda place: ("--no-ledger", "-r", LIMITS["correct"], "-m", "cost"),
    "gate": lambda place: ("-r", LIMITS["correct"]),
    "calibrate": lambda place: (place.storage, "--horizon", N, "--labels"),
    "recertify": lambda place: (place.storage, "--losses"),
    "watch": lambda place: (place.certificate, "--losses"),
}


@pytest.mark.parametrize("command", ASKED)
def test_a_value_out_of_range_is_told_as_the_file_shows_it(command, tmp_path):
    """What the file holds is 100, and no file holds the loss of -99 that follows from it."""
    place = Place(tmp_path, "correct")
    table = place.table(right=0.95)
    table.write_text(table.read_text().replace(",1,1.0", ",100,1.0", 1))
    asked = [str(argument) for argument in (*ASKED[command](place), table)]
    result = runner.invoke(app, [command, *asked])
    assert result.exit_code == 2, result.output
    said = " ".join(result.output.split())
    assert "'correct' must lie in [0, 1]" in said
    assert "but one is 100, whose loss is -99. Write shares" in said
    assert "low=" not in said


def test_a_difference_from_a_reference_tells_the_value_of_the_column(tmp_path):
    for name, first in (("main.csv", 1), ("new.csv", 100)):
        pd.DataFrame({"example": range(9), "accuracy": [first, *[1] * 8]}).to_csv(
            tmp_path / name, index=False
        )
    asked = ["gate", tmp_path / "new.csv", "--reference", tmp_path / "main.csv"]
    result = runner.invoke(app, [*map(str, asked), "-r", "accuracy_drop<=0.1"])
    assert result.exit_code == 2
    assert "'accuracy' must lie in [0, 1]" in " ".join(result.output.split())
