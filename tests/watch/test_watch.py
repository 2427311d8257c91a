"""`Watch`: every kind of certificate is watched, in people's units; bad labels are refused."""

import json
from datetime import date

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.watch import (
    Block,
    begin,
    fill_blocks,
    gap,
    group_shares,
    group_values,
    make_rule,
    quantile_values,
    tail_values,
    update,
    wealth,
)
from tests.kits.watched import CASES, certificate_of


@pytest.fixture(scope="module")
def certificates():
    return {name: case.certificate() for name, case in CASES.items()}


@pytest.fixture
def mean(certificates):
    return certificates["mean"]


@pytest.mark.parametrize("name", CASES)
def test_a_broken_limit_raises_an_alarm_soon_after_the_change(name, certificates):
    case, rng = CASES[name], np.random.default_rng(1)
    watch = rp.Watch(certificates[name])
    watch.update(case.safe(rng, 1_000), at="before")
    assert not watch.alarm
    watch.update(case.draw(rng, 1_000, True), at="after")
    assert watch.alarm
    first = watch.alarms[0]
    assert first.risk == case.risk.name
    assert 800 <= first.change <= first.label <= 1_600
    assert first.time == "after"
    assert first.lower <= first.estimate <= first.upper
    assert first.estimate > first.limit
    assert str(first) in str(watch)


def test_what_an_alarm_says_of_its_moment_stays_and_is_said_to_be_of_then(mean):
    rng = np.random.default_rng(0)
    watch, said = rp.Watch(mean), set()
    watch.update({"error": rng.random(1_000) < 0.05}, at="before")
    for _ in range(6):
        watch.update({"error": rng.random(300) < 0.5}, at="after")
        said.update(map(str, watch.alarms))
    (words,) = said
    alarm = watch.alarms[0]
    assert f"When it was noticed, the mean since then was {alarm.estimate:.4g}, between" in words


@pytest.mark.parametrize("name", CASES)
def test_estimates_are_in_the_units_of_the_risk_and_between_their_bounds(name, certificates):
    case, rng = CASES[name], np.random.default_rng(2)
    watch = rp.Watch(certificates[name])
    before = watch.risks[case.risk.name]
    assert before.estimate is None
    watch.update(case.draw(rng, 3_000, False))
    risk = watch.risks[case.risk.name]
    assert list(watch.risks) == [case.risk.name]
    assert risk.lower <= risk.estimate <= risk.upper
    # The labels are drawn at the limit, in whichever units; a tail has room below it.
    assert risk.lower <= risk.limit <= (1 if name == "tail" else risk.upper)
    assert len(risk.groups) == (case.streams if case.streams > 1 or risk.group else 0)
    assert f"limit {risk.limit:g}" in str(risk)


def test_the_group_that_breaks_its_limit_is_named(certificates):
    case, rng = CASES["worst group"], np.random.default_rng(3)
    watch = rp.Watch(certificates["worst group"])
    watch.update(case.draw(rng, 2_000, True))
    assert watch.alarms[0].group == "b"
    assert watch.risks["error"].group == "b"
    assert {part.group for part in watch.risks["error"].groups if part.alarm} >= {"b"}
    assert "'a'" not in watch.headline


def test_groups_that_the_promise_does_not_name_count_nowhere(certificates):
    watch = rp.Watch(certificates["worst group"])
    watch.update({"error": np.ones(500)}, groups=["another"] * 500)
    assert not watch.alarm
    assert watch.risks["error"].estimate is None
    assert watch.n_labels == 500


def expected_values(name, labels):
    """The values of the streams by the functions whose validity is tested, and the rule."""
    losses = np.asarray(labels[CASES[name].risk.name], dtype=float)
    match name:
        case "worst group":
            names = ("a", "b", "c")
            rule = make_rule([0.1] * 4, shares=group_shares(3))
            return rule, group_values(losses, labels["sex"].tolist(), names)
        case "gap":
            contrast = gap("a", "b", 0.1)
            values, _ = fill_blocks([contrast], [Block()], losses, labels["groups"].tolist())
            return make_rule([claim.limit for claim in contrast.claims]), values
        case "quantile":
            return make_rule([0.05]), quantile_values(losses, 8.0)[:, None]
        case "tail":
            return make_rule([0.1 * 0.6]), tail_values(losses, 0.6)[:, None]
        case "difference":
            return make_rule([1.05 / 2]), ((losses - labels["dense"] + 1) / 2)[:, None]
        case "mean in a range":
            return make_rule([0.1]), (losses / 50)[:, None]
    return make_rule([0.1]), losses[:, None]


@pytest.mark.parametrize(
    "name", sorted(CASES.keys() - {"directed gap", "gap within labels", "ratio", "weights"})
)
def test_the_watch_bets_on_exactly_the_values_whose_false_alarms_are_bounded(name, certificates):
    # What tests/guarantees shows of these values then holds for the watch.
    labels = CASES[name].draw(np.random.default_rng(4), 700, True)
    rule, values = expected_values(name, labels)
    state = update(rule, begin(rule), values)
    watch = rp.Watch(certificates[name])
    watch.update(labels)
    np.testing.assert_allclose(
        wealth(watch.record.rule, watch.record.state), wealth(rule, state), rtol=1e-9
    )
    assert [alarm.row for alarm in watch.record.state.alarms] == [a.row for a in state.alarms]


@pytest.mark.parametrize("name", CASES)
def test_batches_of_any_size_give_the_same_watch_to_the_last_bit(name, certificates):
    labels = CASES[name].draw(np.random.default_rng(5), 400, True)
    watches = []
    for step in (400, 37, 1):
        watch = rp.Watch(certificates[name])
        for start in range(0, 400, step):
            part = {key: values[start : start + step] for key, values in labels.items()}
            watch.update(part, at="then")
        watches.append(json.loads(watch.record.to_json()[0]))
    assert watches[0] == watches[1] == watches[2]


def test_false_alarms_are_shared_by_all_risks():
    cases = [CASES["mean"], CASES["quantile"]]
    watch = rp.Watch(certificate_of(cases), delta=0.1)
    assert watch.record.rule.threshold_array.tolist() == [20, 20]
    rng = np.random.default_rng(6)
    watch.update({**cases[0].draw(rng, 900, False), **cases[1].draw(rng, 900, True)})
    assert [alarm.risk for alarm in watch.alarms] == ["latency"]
    assert list(watch.risks) == ["error", "latency"]


def test_ids_are_counted_once(mean):
    watch = rp.Watch(mean)
    assert watch.update({"error": [1, 0, 1]}, ids=["x", "y", "x"]) == 2
    assert watch.update({"error": [1, 0]}, ids=["y", "z"]) == 1
    assert (watch.n_labels, watch.n_repeated) == (3, 2)
    assert watch.risks["error"].estimate == pytest.approx(1 / 3)


def test_a_refused_update_changes_nothing(mean):
    watch = rp.Watch(mean)
    watch.update({"error": [0, 1]}, ids=[1, 2], at="then")
    before = watch.record.to_json()
    with pytest.raises(rp.LossRangeError):
        watch.update({"error": [0, 2]}, ids=[3, 4], at="then")
    with pytest.raises(rp.LossError):
        watch.update({"error": [0, 1]}, ids=[3, 4, 5], at="then")
    assert watch.record.to_json() == before
    assert watch.update({"error": [0, 0]}, ids=[3, 4]) == 2


def test_no_labels_are_no_harm(mean):
    watch = rp.Watch(mean)
    assert watch.update({"error": []}) == 0
    assert "no label yet" in str(watch)


def test_dates_are_shown_where_the_change_was(mean):
    watch, rng = rp.Watch(mean), np.random.default_rng(7)
    for day in range(1, 11):
        rate = 0.05 if day < 6 else 0.4
        watch.update({"error": rng.random(100) < rate}, at=date(2026, 3, day))
    alarm = watch.alarms[0]
    assert alarm.change_time in ("2026-03-05", "2026-03-06")
    assert alarm.time == "2026-03-06"


def test_labels_that_were_sampled_with_different_probabilities_take_weights(mean):
    rng, n = np.random.default_rng(8), 6_000
    hard = rng.random(n) < 0.3
    p = np.where(hard, 0.5, 0.1)
    losses = rng.random(n) < np.where(hard, 0.2, 0.04)  # 0.088 over the traffic
    labelled = rng.random(n) < p
    naive, fair = rp.Watch(mean), rp.Watch(mean, largest_weight=10)
    naive.update({"error": losses[labelled]})
    fair.update({"error": losses[labelled]}, weights=1 / p[labelled])
    assert naive.alarm
    assert not fair.alarm
    assert fair.risks["error"].estimate == pytest.approx(0.088, abs=0.02)
    with pytest.raises(rp.LossError, match="largest_weight"):
        naive.update({"error": [0]}, weights=[2.0])
    with pytest.raises(rp.LossError, match=r"in \[0, 10\]"):
        fair.update({"error": [0]}, weights=[11.0])


def test_sampling_weights_join_those_of_the_certificate(certificates):
    watch = rp.Watch(certificates["weights"], largest_weight=2)
    watch.update({"error": [1, 0], "w": [4.0, 1.0]}, weights=[2.0, 1.0])
    assert watch.risks["error"].estimate == pytest.approx(8 / 9)


def test_a_gap_of_labels_with_different_probabilities_is_refused(certificates):
    with pytest.raises(rp.ProblemError, match="no valid watch is known"):
        rp.Watch(certificates["gap"], largest_weight=2)


def test_a_certificate_may_be_given_by_its_path(mean, tmp_path):
    path = mean.save(tmp_path / "certificate.json")
    assert rp.Watch(path).config == rp.Watch(str(path)).config == {"model": "deployed"}


@pytest.mark.parametrize("name", ["", "notes.txt", "study.db.losses/one"])
def test_no_lock_is_left_beside_what_is_no_watch(name, mean, tmp_path):
    folder = tmp_path / "folder"
    (folder / "study.db.losses").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "study.db").write_text("")
    before = sorted(tmp_path.rglob("*"))
    watch = rp.Watch(mean)
    with pytest.raises(rp.CertificateError):
        watch.save(folder / name)
    with pytest.raises(rp.CertificateError), rp.Watch.open(folder / name, mean):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_a_certificate_that_promises_nothing_is_refused():
    losses = np.ones((1, 50))
    nothing = rp.select_from_losses(
        rp.Problem([rp.Risk("error", 0.1)], "cost"),
        validation={"error": losses, "cost": [1.0]},
        calibration={"error": losses[:, :40].copy()},
    )
    with pytest.raises(rp.CertificateError, match="promises nothing"):
        rp.Watch(nothing.certificate)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, "delta is the probability"),
        ({"delta": "small"}, "delta is the probability"),
        ({"delta": 0.9}, "delta is the probability"),
        ({"largest_weight": -1}, "largest_weight is one over"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options, words, mean):
    with pytest.raises(rp.ProblemError, match=words):
        rp.Watch(mean, **options)


@pytest.mark.parametrize("thing", [None, 3, {"error": 1}])
def test_what_is_no_certificate_is_refused(thing):
    with pytest.raises(rp.CertificateError, match="takes a Certificate"):
        rp.Watch(thing)


@pytest.mark.parametrize(
    ("losses", "options", "words"),
    [
        ([0, 1], {}, "must map names to losses"),
        ({}, {}, "are missing"),
        ({"error": [0], "more": [1]}, {}, "neither a risk nor the free objective"),
        ({"error": [[0, 1]]}, {}, "one number per example"),
        ({"error": 1}, {}, "one number per example"),
        ({"error": ["a"]}, {}, "must be numbers"),
        ({"error": [np.nan]}, {}, "is NaN"),
        ({"error": [1.5]}, {}, r"must lie in \[0, 1\]"),
        ({"error": [0]}, {"groups": ["a"]}, "groups= is for a certificate"),
        ({"error": [0]}, {"at": ""}, "at says when"),
        ({"error": [0]}, {"at": 5}, "at says when"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(losses, options, words, mean):
    with pytest.raises(rp.LossError, match=words):
        rp.Watch(mean).update(losses, **options)


def test_risks_of_different_numbers_of_examples_are_refused():
    watch = rp.Watch(certificate_of([CASES["mean"], CASES["quantile"]]))
    with pytest.raises(rp.LossError, match="numbers differ"):
        watch.update({"error": [0], "latency": [1.0, 2.0]})


def test_the_free_objective_may_stand_beside_the_losses(mean):
    assert rp.Watch(mean).update({"error": [0, 1], "cost": [1.0, 1.0]}) == 2


def test_the_card_shows_every_group_and_the_verdict(certificates):
    watch = rp.Watch(certificates["worst group"])
    assert "#009E73" in watch._repr_html_()
    watch.update(CASES["worst group"].draw(np.random.default_rng(9), 2_000, True))
    shown = watch._repr_html_()
    assert "#D55E00" in shown
    assert "all groups together" in shown
    assert "all together at least 95%" in shown
    assert repr(watch) == "Watch({'model': 'deployed'}, 2,000 labels, alarm)"


def test_memory_does_not_grow_with_the_labels(mean):
    sizes = []
    watch, rng = rp.Watch(mean), np.random.default_rng(10)
    for n in (4_000, 60_000):
        watch.update({"error": rng.random(n) < 0.05})
        sizes.append(len(watch.record.to_json()[0]))
    assert sizes[1] < 1.5 * sizes[0]
    assert len(watch.record.history.rows) < 128
