"""A judge beside the labels of a watch: what it saves, what survives, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import riskpilot as rp
from tests.kits.watched import CASES

LIMIT = 0.1


@pytest.fixture(scope="module")
def certificate():
    rng = np.random.default_rng(0)
    return rp.select_from_losses(
        rp.Problem([rp.Risk("error", limit=LIMIT)], minimize="cost"),
        validation={"error": rng.random((1, 2000)) < 0.05, "cost": np.ones(1)},
        calibration={"error": rng.random((1, 2000)) < 0.05},
    ).certificate


def labelled(rng, risk, n, per_label=10):
    """Losses, and the scores of a judge that sees nine losses in ten."""
    u, fresh = rng.random(n), rng.random(per_label * n)
    judge = {"labelled": {"error": u < 0.9 * risk}, "unlabelled": {"error": fresh < 0.9 * risk}}
    return {"error": u < risk}, judge


def label_of_alarm(watch, rng, risk, helped):
    while not watch.alarm:
        losses, judge = labelled(rng, risk, 10)
        watch.update(losses, judge=judge if helped else None)
    return watch.alarms[0].label


def test_an_alarm_comes_sooner_with_a_judge(certificate):
    found = np.zeros((2, 15))
    for seed in range(15):
        for helped in (0, 1):
            watch = rp.Watch(certificate, judge="error" if helped else None)
            rng = np.random.default_rng(seed)
            found[helped, seed] = label_of_alarm(watch, rng, 0.15, helped)
    assert np.median(found[1]) < 0.75 * np.median(found[0])


def test_a_saved_watch_goes_on_with_its_judge(certificate, tmp_path):
    watch = rp.Watch(certificate, judge=["error"])
    place = watch.save(tmp_path / "watch.json")
    rng = np.random.default_rng(0)
    for _ in range(4):
        losses, judge = labelled(rng, 0.08, 30)
        loaded = rp.Watch.load(place)
        for each in (watch, loaded):
            each.update(losses, judge=judge, at="then")
        loaded.save(place)
    one, other = rp.Watch.load(place).record, watch.record
    assert one.state.capital.tolist() == other.state.capital.tolist()
    assert one.subject == other.subject


def test_labels_without_scores_count_as_they_are(certificate):
    """An update without the judge bets on the losses alone, with every weight."""
    watch = rp.Watch(certificate, judge="error")
    watch.update({"error": np.ones(30)})
    assert watch.alarm


def test_fresh_examples_are_used_once(certificate):
    losses, judge = labelled(np.random.default_rng(0), 0.08, 20, per_label=1)
    used = {**judge, "ids": [f"f{i}" for i in range(20)]}
    once, twice = (rp.Watch(certificate, judge="error") for _ in range(2))
    twice.record.subject.__dict__["entropy"] = once.record.subject.entropy
    once.update(losses, judge=used)
    twice.update(losses, judge=used)
    once.update(losses)
    twice.update(losses, judge=used)  # the same fresh examples again: nothing is left of them
    assert once.record.state.capital.tolist() == twice.record.state.capital.tolist()


def test_an_example_that_was_fresh_is_not_labelled_later(certificate, tmp_path):
    losses, judge = labelled(np.random.default_rng(0), 0.08, 20, per_label=1)
    watch = rp.Watch(certificate, judge="error")
    watch.update(losses, judge={**judge, "ids": range(100, 120)}, ids=range(20))
    watch.save(tmp_path / "watch.json")
    for one in (watch, rp.Watch.load(tmp_path / "watch.json")):
        before = one.record.to_json()
        ids = [*range(20, 38), "100.0", "101"]
        with pytest.raises(rp.LeakageError, match=r"2 of these labels .* in an earlier update"):
            one.update({"error": np.ones(20)}, ids=[str(each) for each in ids])
        assert one.record.to_json() == before
    watch.update(losses, judge={**judge, "ids": range(20)}, ids=range(200, 220))  # not used
    assert watch.update(losses, ids=range(20)) == 0  # labelled before, and never fresh
    assert watch.n_repeated == 20


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"labelled": {}}, rp.LossError, "judge holds the scores of the labelled examples"),
        ({"labelled": {"error": [0.5]}}, rp.LossError, "those of 20 examples"),
        ({"unlabelled": {"error": [0.5, np.nan]}}, rp.LossError, "is NaN"),
        ({"unlabelled": {"error": [0.5, 2.0]}}, rp.LossError, "must lie in"),
        ({"ids": [1]}, rp.LossError, "those of 1 example"),
        ({"ids": [0, *range(100, 119)]}, rp.LeakageError, "are not labelled, but 1 of them are"),
        ({"ids": [100, 100.0, *range(101, 119)]}, rp.LossError, "judge, ids tells every"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(certificate, change, error, says):
    watch = rp.Watch(certificate, judge="error")
    losses, judge = labelled(np.random.default_rng(0), 0.08, 20, per_label=1)
    with pytest.raises(error, match=says):
        watch.update(losses, judge={**judge, **change}, ids=range(20))
    assert watch.n_labels == 0


def test_a_judge_is_named_when_the_watch_begins(certificate):
    losses, judge = labelled(np.random.default_rng(0), 0.08, 20)
    with pytest.raises(rp.LossError, match="the watch began without a judge"):
        rp.Watch(certificate).update(losses, judge=judge)
    for names in ("eror", [], 3):
        with pytest.raises(rp.ProblemError, match="judge names the risks"):
            rp.Watch(certificate, judge=names)
    with pytest.raises(rp.ProblemError, match="labelled with the same probability"):
        rp.Watch(certificate, judge="error", largest_weight=4.0)
    quantile = CASES["quantile"].certificate()
    with pytest.raises(rp.ProblemError, match="a judge helps with the mean"):
        rp.Watch(quantile, judge=quantile.problem["risks"][0]["name"])


# Files.


def write(folder, name, n=40, risk=0.08, seed=0):
    rng = np.random.default_rng(seed)
    u, fresh = rng.random(n), rng.random(10 * n)
    folder.mkdir(exist_ok=True)
    labels, scores = folder / f"{name}.csv", folder / f"{name}-scores.csv"
    pd.DataFrame({"example": range(n), "error": (u < risk) + 0}).to_csv(labels, index=False)
    frame = pd.DataFrame(
        {
            "example": np.arange(11 * n) + 0.0,  # 7 and 7.0 are one id
            "fresh": [False] * n + [True] * 10 * n,
            "error": (np.concatenate([u, fresh]) < 0.9 * risk) + 0,
        }
    )
    frame.to_csv(scores, index=False)
    return labels, scores, frame


def test_labels_and_scores_of_files_meet_by_their_ids(certificate, tmp_path):
    labels, scores, frame = write(tmp_path / "a", "monday")
    watch = rp.Watch(certificate, judge="error")
    assert watch.update_from_file(labels, judge=scores) == 40
    plain = rp.Watch(certificate, judge="error")
    plain.update_from_file(labels)
    assert watch.record.state.capital.tolist() != plain.record.state.capital.tolist()
    for change, says in (
        (frame.assign(fresh=True), "fresh examples are never labelled"),
        (frame[frame.example != 3], "example '3' has no row"),
        (pd.concat([frame, frame[:1].assign(example=0)]), "one is empty or stands twice"),
        (frame.assign(fresh="perhaps"), "says true of examples that are never labelled"),
        (frame.drop(columns="fresh"), "no column 'fresh'"),
    ):
        change.to_csv(scores, index=False)
        with pytest.raises(rp.TableError, match=says):
            rp.Watch(certificate, judge="error").update_from_file(labels, judge=scores)
    empty = frame.astype({"error": float})
    empty.loc[100, "error"] = np.nan
    empty.to_csv(scores, index=False)
    with pytest.raises(rp.LossError, match="is NaN"):
        rp.Watch(certificate, judge="error").update_from_file(labels, judge=scores)


def test_a_file_is_known_by_where_it_lies(certificate, tmp_path, monkeypatch):
    """Equal days in different folders count each; one file counts once, however it is spelled."""
    first, _, _ = write(tmp_path / "a", "labels")
    second, _, _ = write(tmp_path / "b", "labels")
    for path in (first, second):
        frame = pd.read_csv(path).drop(columns="example")
        frame.to_csv(path, index=False)
    assert first.read_bytes() == second.read_bytes()
    watch = rp.Watch(certificate)
    assert [watch.update_from_file(path) for path in (first, second)] == [40, 40]
    (tmp_path / "link.csv").symlink_to(first)
    monkeypatch.chdir(tmp_path / "a")
    for spelling in ("labels.csv", "../a/labels.csv", tmp_path / "link.csv"):
        assert watch.update_from_file(spelling) == 0
