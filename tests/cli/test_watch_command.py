"""``riskpilot watch`` and ``riskpilot recertify``: what they print and write, how they exit."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.study import open_study
from riskpilot.watch import metrics
from tests.kits.watched import CASES

runner = CliRunner()


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


@pytest.fixture
def certificate(tmp_path):
    return CASES["mean"].certificate().save(tmp_path / "certificate.json")


def write_day(folder, day, rate, n=300, **more):
    rng = np.random.default_rng(day)
    frame = pd.DataFrame({"error": rng.random(n) < rate, **more})
    path = folder / f"2026-03-{day:02d}.parquet"
    frame.to_parquet(path)
    return path


def test_no_alarm_exits_with_0_and_an_alarm_with_1(certificate, tmp_path):
    state = tmp_path / "watch.json"
    write_day(tmp_path, 1, 0.05)
    said = run("watch", certificate, "--losses", tmp_path / "*.parquet", "--state", state)
    assert "300 new labels from 1 file\n" in said
    assert "no alarm" in said
    write_day(tmp_path, 2, 0.4)
    said = run("watch", certificate, "--losses", tmp_path / "*.parquet", "--state", state, code=1)
    assert "300 new labels from 2 files" in said  # the first file was counted before
    assert "alarm. error <= 0.1 was shown to be broken" in said
    assert "2026-03-02" in said
    assert rp.Watch.load(state).n_labels == 600
    run("watch", certificate, "--state", state, code=1)  # an alarm stays


def test_examples_with_ids_are_counted_once(certificate, tmp_path):
    state = tmp_path / "watch.json"
    for name, first in (("a.csv", 0), ("b.csv", 50)):
        ids = [f"r{i}" for i in range(first, first + 100)]
        pd.DataFrame({"error": 0, "request": ids, "note": "x"}).to_csv(tmp_path / name, index=False)
    options = ("--state", state, "--ids", "request", "--json")
    found = json.loads(run("watch", certificate, "--losses", tmp_path / "?.csv", *options))
    assert (found["new_labels"], found["labels"], found["alarm"]) == (150, 150, False)
    assert found["risks"]["error"]["estimate"] == 0


def test_repeated_ids_are_told(certificate, tmp_path):
    first, other = tmp_path / "a.csv", tmp_path / "b.csv"
    ids = [f"r{i}" for i in range(300)]
    pd.DataFrame({"error": 0, "example": ids}).to_csv(first, index=False)
    pd.DataFrame({"error": 1, "example": ids}).to_csv(other, index=False)
    asked = ("watch", certificate, "--state", tmp_path / "watch.json", "--losses")
    assert "passed over" not in run(*asked, first)
    said = " ".join(run(*asked, other).split())
    assert "0 new labels from 1 file " in said
    assert "300 labels were passed over, because their ids had been counted" in said
    third = tmp_path / "c.csv"
    pd.DataFrame({"error": 0, "example": ["new", *ids[:2]]}).to_csv(third, index=False)
    found = json.loads(run(*asked, third, "--json"))
    assert (found["new_labels"], found["repeated_labels"], found["labels"]) == (1, 2, 301)


def test_a_watch_goes_on_with_what_it_was_begun_with(certificate, tmp_path):
    asked = ("watch", certificate, "--state", tmp_path / "watch.json")
    assert "at most 20% over" in " ".join(run(*asked, "--delta", 0.2).split())
    assert "at least 80%" in " ".join(run(*asked).split())
    assert "at most 20% over" in " ".join(run(*asked, "--delta", 0.2).split())
    for option in (("--delta", 0.05), ("--largest-weight", 3)):
        said = " ".join(run(*asked, *option, code=2).split())
        assert "that it was begun with" in said
        assert "Leave it out" in said


def test_a_judge_s_file_belongs_to_the_labels_of_its_name(certificate, tmp_path):
    rng, days = np.random.default_rng(0), (1, 2)
    (tmp_path / "scores").mkdir()
    for day in days:
        u = rng.random(2200)
        ids = [f"{day}-{i}" for i in range(2200)]
        frame = pd.DataFrame({"error": u < 0.14, "example": ids, "fresh": np.arange(2200) >= 200})
        frame[:200].drop(columns="fresh").to_parquet(tmp_path / f"{day}.parquet")
        frame.assign(error=u < 0.13).to_parquet(tmp_path / "scores" / f"{day}.parquet")
    losses, scores = tmp_path / "*.parquet", tmp_path / "scores" / "*.parquet"
    asked = ("watch", certificate, "--losses", losses, "--json")
    alone = json.loads(run(*asked))
    assert not alone["alarm"]
    helped = json.loads(run(*asked, "--judge", scores, "--state", tmp_path / "w.json", code=1))
    assert helped["alarm"]
    assert helped["labels"] == 400
    assert rp.Watch.load(tmp_path / "w.json").record.subject.judged == ["error"]
    (tmp_path / "scores" / "2.parquet").rename(tmp_path / "scores" / "3.parquet")
    assert "of the same name" in run(*asked, "--judge", scores, code=2).replace("\n", " ")


def test_a_column_named_example_is_taken_for_ids(certificate, tmp_path):
    path = write_day(tmp_path, 1, 0.05, n=4, example=["a", "b", "a", "c"])
    assert "3 new labels" in run("watch", certificate, "--losses", path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_groups_and_losses_are_read_from_files_of_every_kind(ending, tmp_path):
    case = CASES["worst group"]
    certificate = case.certificate().save(tmp_path / "certificate.json")
    frame = pd.DataFrame(case.draw(np.random.default_rng(0), 2_000, True))
    path = tmp_path / f"labels.{ending}"
    match ending:
        case "csv":
            frame.to_csv(path, index=False)
        case "parquet":
            frame.to_parquet(path)
        case _:
            frame.to_json(path, orient="records", lines=True)
    found = json.loads(run("watch", certificate, "--losses", path, "--json", code=1))
    assert found["alarms"][0]["group"] == "b"
    expected = rp.Watch(certificate)
    expected.update({name: frame[name].to_numpy() for name in frame})
    assert found["alarms"][0]["label"] == expected.alarms[0].label


def test_losses_that_do_not_count_are_empty_cells(tmp_path):
    certificate = CASES["conditional"].certificate().save(tmp_path / "certificate.json")
    path = tmp_path / "labels.csv"
    path.write_text('miss\n0\n\n1\n""\n0\n')
    found = json.loads(run("watch", certificate, "--losses", path, "--json"))
    assert found["risks"]["miss"]["count"] == 3


def test_weights_of_sampled_labels_are_a_column(certificate, tmp_path):
    path = write_day(tmp_path, 1, 0.1, n=100, w=np.repeat([1.0, 4.0], 50))
    options = ("--weights", "w", "--largest-weight", "4", "--json")
    losses = pd.read_parquet(path)["error"].to_numpy()
    found = json.loads(run("watch", certificate, "--losses", path, *options))
    expected = (losses[:50].sum() + 4 * losses[50:].sum()) / 250
    assert found["risks"]["error"]["estimate"] == pytest.approx(expected)


def test_metrics_are_in_the_text_format_of_prometheus(certificate, tmp_path):
    write_day(tmp_path, 1, 0.4)
    out, page = tmp_path / "watch.prom", tmp_path / "watch.html"
    options = ("--metrics", out, "--report", page)
    run("watch", certificate, "--losses", tmp_path / "*.parquet", *options, code=1)
    text = out.read_text()
    line = re.compile(r'riskpilot_watch_\w+(\{risk="[^"]*",group="[^"]*"\})? [-+.\de]+')
    assert all(line.fullmatch(each) for each in text.splitlines() if not each.startswith("#"))
    assert 'riskpilot_watch_alarm{risk="error",group=""} 1.0' in text
    assert "riskpilot_watch_labels 300" in text
    assert text.endswith("\n")
    assert "✗ Alarm" in page.read_text()


def test_metrics_of_groups_have_a_line_for_each(tmp_path):
    watch = rp.Watch(CASES["worst group"].certificate())
    lines = [
        line for line in metrics(watch).splitlines() if line.startswith("riskpilot_watch_limit")
    ]
    assert len(lines) == 4
    assert "riskpilot_watch_risk{" not in metrics(watch)  # no number before the first label


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("error\n2\n", "must lie in"),
        ("error\nwrong\n", "must be numbers"),
        ("misses\n1\n", "has no column 'error'"),
    ],
)
def test_labels_that_cannot_be_used_exit_with_2_and_leave_the_watch(
    content, words, certificate, tmp_path
):
    state, good, bad = (tmp_path / name for name in ("watch.json", "a.csv", "b.csv"))
    good.write_text("error\n0\n1\n")
    run("watch", certificate, "--losses", good, "--state", state)
    bad.write_text(content)
    assert words in run("watch", certificate, "--losses", bad, "--state", state, code=2)
    assert rp.Watch.load(state).n_labels == 2


def test_what_is_not_there_exits_with_2(certificate, tmp_path):
    assert "no file" in run("watch", certificate, "--losses", tmp_path / "*.csv", code=2)
    assert "cannot be read" in run("watch", tmp_path / "no.json", code=2)
    path = tmp_path / "labels.csv"
    path.write_text("error\n0\n")
    assert "cannot be written" in run(
        "watch", certificate, "--losses", path, "--metrics", tmp_path / "no" / "x.prom", code=2
    )


@pytest.fixture
def storage(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db"
    problem = rp.Problem([rp.Risk("error", 0.18)], "cost")
    study = rp.create_study(problem, storage=address, study_name="income", seed=0)
    for rate in (0.05, 0.1, 0.15):
        study.enqueue_trial({"rate": rate})
    rng = np.random.default_rng(0)

    def evaluate(trial):
        rate = trial.suggest_float("rate", 0, 1)
        errors = rng.random((2, 1_000)) < rate
        return rp.Evaluation({"error": errors[0], "cost": -rate}, {"error": errors[1]})

    study.optimize(rp.objective(study, evaluate), n_trials=3)
    return address


def fresh(path, rates=(0.07, 0.12, 0.25), n=1_500):
    rng = np.random.default_rng(1)
    frames = [
        pd.DataFrame({"trial": number, "error": rng.random(n) < rate})
        for number, rate in enumerate(rates)
    ]
    pd.concat(frames).to_parquet(path)
    return path


def test_recertify_writes_a_certificate_that_is_verified(storage, tmp_path):
    losses, out = fresh(tmp_path / "fresh.parquet"), tmp_path / "new.json"
    said = run("recertify", storage, "--losses", losses, "--out", out)
    assert "{'rate': 0.1}" in said
    name = "income, recertified 1"
    assert "holds" in run("verify", out, "--losses", storage, "--study-name", name)
    assert rp.ledger(open_study(storage, name))[0]["use"] == 1


def test_recertify_takes_another_limit_and_one_configuration(storage, tmp_path):
    losses = fresh(tmp_path / "fresh.parquet")
    options = ("--losses", losses, "--study-name", "income", "--config", '{"rate": 0.15}')
    run("recertify", storage, *options, code=3)
    said = run("recertify", storage, *options, "--risk", "error<=0.3", "--json")
    assert json.loads(said)["config"] == {"rate": 0.15}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--config": "rate"}, "JSON of a configuration"),
        ({"--config": "[1]"}, "JSON object"),
        ({"--config": '{"rate": 7}'}, "nothing to certify again"),
        ({"--risk": "misses<=0.1"}, "no column 'misses'"),
    ],
)
def test_recertify_refuses_what_cannot_be_meant(change, words, storage, tmp_path):
    losses = fresh(tmp_path / "fresh.parquet")
    arguments = [part for pair in change.items() for part in pair]
    assert words in run("recertify", storage, "--losses", losses, *arguments, code=2)


def test_recertify_needs_the_numbers_of_trials(storage, tmp_path):
    path = tmp_path / "fresh.csv"
    path.write_text("trial,error\nfirst,0\n")
    assert "numbers of the study's trials" in run("recertify", storage, "--losses", path, code=2)
    path.write_text("error\n0\n")
    said = " ".join(run("recertify", storage, "--losses", path, code=2).split())
    assert "'trial' is missing" in said
    assert "Add it, or rename the one that plays its part." in said


@pytest.mark.parametrize("judged", [False, True], ids=["labels", "judge"])
def test_advice_names_options_that_the_watch_has(judged, certificate, tmp_path):
    """Neither labels nor a judge's scores have --config-columns or --split."""
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    labels.write_text("request,error\nq1,0\n" if judged else "id,error\nq1,0\n")
    scores.write_text("id,error,fresh\nq1,0,false\n")
    asked = ("watch", certificate, "--losses", labels, "--ids", "request")
    asked = (*asked, "--judge", scores) if judged else asked
    said = " ".join(run(*asked, code=2).split())
    assert "'request' is missing" in said
    assert said.endswith("play these parts: --ids, or ids=.")


def test_advice_on_a_cell_speaks_of_what_the_command_reads(certificate, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("error\n0\nwrong\n")
    said = " ".join(run("watch", certificate, "--losses", labels, code=2).split())
    assert said.endswith("line 3 has 'wrong'. Correct or remove it.")


def test_days_with_equal_labels_count_each(certificate, tmp_path):
    for day in range(1, 5):  # four good days, byte by byte the same
        pd.DataFrame({"error": [0, 0, 0]}).to_csv(tmp_path / f"day-{day}.csv", index=False)
    state = tmp_path / "watch.json"
    options = ("--losses", tmp_path / "day-*.csv", "--state", state)
    assert "12 new labels from 4 files" in run("watch", certificate, *options)
    assert "0 new labels from 4 files" in run("watch", certificate, *options)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_without_an_id_are_refused(certificate, tmp_path, ending):
    frame = pd.DataFrame({"error": [1, 1, 0], "example": ["a", None, None]})
    path = tmp_path / f"labels.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    assert "every row needs an id" in run("watch", certificate, "--losses", path, code=2)


def test_recertify_goes_by_the_ids_of_the_examples(storage, tmp_path):
    frame = pd.read_parquet(fresh(tmp_path / "fresh.parquet"))
    frame["example"] = [f"e{i}" for _ in range(3) for i in range(1_500)]
    plain, shuffled = tmp_path / "plain.csv", tmp_path / "shuffled.csv"
    frame.to_csv(plain, index=False)
    frame.sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    run("recertify", storage, "--losses", plain, "--study-name", "income")
    said = run("recertify", storage, "--losses", shuffled, "--study-name", "income")
    assert "question 2" in said  # the same losses, whatever the order of the rows
    twice, empty = tmp_path / "twice.csv", tmp_path / "empty.csv"
    pd.concat([frame, frame]).to_csv(twice, index=False)
    frame.assign(example=None).to_csv(empty, index=False)
    for path, says in ((twice, "each once"), (empty, "needs an id in the column example")):
        said = run("recertify", storage, "--losses", path, "--study-name", "income", code=2)
        assert says in " ".join(said.split())
