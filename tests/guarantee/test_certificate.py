"""A certificate comes back from its file, and verify finds every kind of change."""

import copy
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.guarantee.promise_words import p_in_words

PROBLEM = rp.Problem([rp.Risk("error", 0.2), rp.Risk("gap", 0.3, low=-1)], "cost")
RISKS = ((0.02, 0.05, 0.08, 0.4), (-0.5, -0.2, 0.0, 0.2))


def tables(seed, m=400):
    rng = np.random.default_rng(seed)
    error = rng.random((4, m)) < np.array(RISKS[0])[:, None]
    gap = np.clip(np.array(RISKS[1])[:, None] + rng.uniform(-0.4, 0.4, (4, m)), -1, 1)
    return {"error": error, "gap": gap}


@pytest.fixture
def validation():
    return {**tables(0), "cost": np.array([4.0, 3.0, 2.0, 1.0])}


@pytest.fixture
def calibration():
    return tables(1)


@pytest.fixture
def certificate(validation, calibration):
    selection = rp.select_from_losses(
        PROBLEM,
        validation=validation,
        calibration=calibration,
        configs=[{"threshold": t} for t in (0.1, 0.2, 0.3, 0.4)],
    )
    assert selection.config == {"threshold": 0.3}
    return selection.certificate


def test_an_untouched_certificate_holds(certificate, validation, calibration):
    found = rp.verify(certificate, validation=validation, calibration=calibration)
    assert found.ok
    assert found.differences == ()
    assert "holds" in str(found)


def test_a_certificate_comes_back_from_its_file(certificate, tmp_path):
    path = certificate.save(tmp_path / "certificate.json")
    assert rp.Certificate.load(path) == certificate
    assert json.loads(path.read_text())["schema"] == "riskpilot-certificate/3"


def leaves(value, path=()):
    """Every number, string and null of nested JSON, with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def edited(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "edited" if value is None else value + "x"


def test_every_edit_of_the_file_is_found_when_it_is_read(certificate):
    data = json.loads(certificate.to_json())
    places = list(leaves(data))
    assert len(places) > 60
    for path, value in places:
        changed = copy.deepcopy(data)
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = edited(value)
        with pytest.raises(rp.CertificateError):
            rp.Certificate.from_json(json.dumps(changed))


def test_every_field_that_is_taken_out_is_missed(certificate):
    data = json.loads(certificate.to_json())
    for field in data:
        with pytest.raises(rp.CertificateError):
            rp.Certificate.from_json(json.dumps({k: v for k, v in data.items() if k != field}))


# Edits by someone who also writes a new digest: verify recomputes what the losses determine.
def with_candidate(certificate, **changes):
    first, *others = certificate.candidates
    return dataclasses.replace(certificate, candidates=[{**first, **changes}, *others])


FORGERIES = {
    "problem: limit": lambda c: dataclasses.replace(
        c, problem=PROBLEM.with_limits(error=0.1).to_dict()
    ),
    "problem: delta": lambda c: dataclasses.replace(c, problem={**c.problem, "delta": 0.01}),
    "problem: test": lambda c: dataclasses.replace(
        c,
        problem={
            **c.problem,
            "risks": [{**risk, "p_value": "hoeffding"} for risk in c.problem["risks"]],
        },
    ),
    "level": lambda c: dataclasses.replace(c, level=0.01),
    "promise": lambda c: dataclasses.replace(c, promise=c.promise.replace("90%", "99%")),
    "n_validation": lambda c: dataclasses.replace(c, n_validation=4000),
    "n_calibration": lambda c: dataclasses.replace(c, n_calibration=4000),
    "n_configs": lambda c: dataclasses.replace(c, n_configs=40),
    "candidate: row": lambda c: with_candidate(c, row=3),
    "candidate: validation": lambda c: with_candidate(
        c, validation_loss={"error": 0.0, "gap": -1.0}
    ),
    "candidate: free": lambda c: with_candidate(c, free=0.0),
    "candidate: p on validation": lambda c: with_candidate(c, log_p_validation=-99.0),
    "order": lambda c: dataclasses.replace(c, candidates=c.candidates[::-1]),
    "a candidate less": lambda c: dataclasses.replace(
        c, candidates=c.candidates[:-1], log_p=c.log_p[:-1], passed=c.passed[:-1]
    ),
    "procedure": lambda c: dataclasses.replace(
        c, procedure={"name": "graphical", "weights": [0, 0, 0, 1], "edges": [[0] * 4] * 4}
    ),
    "families": lambda c: dataclasses.replace(c, families={"error": "betting", "gap": "betting"}),
    "log_p": lambda c: dataclasses.replace(
        c, log_p=[{**c.log_p[0], "error": c.log_p[0]["error"] - 1}, *c.log_p[1:]]
    ),
    "calibration_loss": lambda c: dataclasses.replace(
        c, calibration_loss=[{"error": 0.0, "gap": -1.0}, *c.calibration_loss[1:]]
    ),
    "passed": lambda c: dataclasses.replace(c, passed=[True] * 4),
    "chosen": lambda c: dataclasses.replace(c, chosen=3),
    "chosen: nothing": lambda c: dataclasses.replace(c, chosen=None),
    "validation_digest": lambda c: dataclasses.replace(c, validation_digest="0" * 64),
    "calibration_digest": lambda c: dataclasses.replace(c, calibration_digest="0" * 64),
    "plan_digest": lambda c: dataclasses.replace(c, plan_digest="0" * 64),
    "seed of the test": lambda c: dataclasses.replace(c, seeds={**c.seeds, "test": 7}),
    "use: number": lambda c: dataclasses.replace(c, use={**c.use, "number": 2}),
    "use: spend": lambda c: dataclasses.replace(c, use={**c.use, "spend": 0.5}),
}


def test_a_card_shows_the_beginning_of_the_digest(certificate):
    card = certificate._repr_html_()
    assert certificate.digest[:16] in card
    assert certificate.digest[:17] not in card


def test_differences_name_the_candidate_and_are_cut_where_they_are_long(
    certificate, validation, calibration
):
    changed = dataclasses.replace(
        certificate,
        log_p=[certificate.log_p[0], {**certificate.log_p[1], "gap": -2.0}, *certificate.log_p[2:]],
        created="2020-01-31T12:00:00+00:00",
        promise="x" * 201,
    )
    found = rp.verify(changed, validation=validation, calibration=calibration)
    (p_value,) = (words for words in found.differences if "p-value" in words)
    assert p_value.startswith("candidate 2: p-value of gap is ")
    (promise,) = (words for words in found.differences if "promise" in words)
    assert promise.endswith("the certificate has " + "x" * 197 + "...")
    whole = dataclasses.replace(certificate, promise="x" * 200)
    found = rp.verify(whole, validation=validation, calibration=calibration)
    assert found.differences[0].endswith("the certificate has " + "x" * 200)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_certificate_does_not_hold(forgery, certificate, validation, calibration):
    forged = rp.Certificate.from_json(FORGERIES[forgery](certificate).to_json())
    found = rp.verify(forged, validation=validation, calibration=calibration)
    assert not found.ok
    assert "does not hold" in str(found)


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ("validation", "error"),
        ("validation", "gap"),
        ("validation", "cost"),
        ("calibration", "error"),
        ("calibration", "gap"),
    ],
)
def test_one_bit_of_one_loss_is_found(split, name, certificate, validation, calibration):
    given = {"validation": validation, "calibration": calibration}
    table = given[split][name].copy()
    bits = table.reshape(-1).view(np.uint8)
    bits[8 if table.dtype != bool else 0] ^= 1
    given[split] = {**given[split], name: table}
    found = rp.verify(certificate, **given)
    assert any(f"the {split} losses are not the ones" in d for d in found.differences)


def test_exchanged_examples_are_found(certificate, validation, calibration):
    swapped = {name: table[:, ::-1] for name, table in calibration.items()}
    assert not rp.verify(certificate, validation=validation, calibration=swapped).ok


def test_exchanged_configurations_are_found(certificate, validation, calibration):
    swapped = {name: table[::-1] for name, table in validation.items()}
    found = rp.verify(certificate, validation=swapped, calibration=calibration)
    assert any("testing order" in d for d in found.differences)


def test_the_wrong_number_of_configurations_is_told(certificate, validation, calibration):
    three = {name: table[:3] for name, table in calibration.items()}
    found = rp.verify(certificate, validation=validation, calibration=three)
    assert "calibration has 3 configurations" in str(found)


def test_losses_that_cannot_be_used_are_a_difference_not_a_crash(
    certificate, validation, calibration
):
    broken = {**calibration, "error": calibration["error"] * 7.0}
    found = rp.verify(certificate, validation=validation, calibration=broken)
    assert not found.ok
    assert "cannot be used" in str(found)


def test_the_calibration_losses_of_the_candidates_alone_are_enough(
    certificate, validation, calibration
):
    rows = [candidate["row"] for candidate in certificate.candidates]
    alone = {name: table[rows] for name, table in calibration.items()}
    assert rp.verify(certificate, validation=validation, calibration=alone).ok


def test_candidates_alone_are_understood_where_every_configuration_is_one():
    rng = np.random.default_rng(5)
    problem = rp.Problem([rp.Risk("error", 0.3)], "cost")
    means = np.array([0.2, 0.1, 0.05])  # the safest comes last
    parts = [rng.random((3, 300)) < means[:, None] for _ in range(2)]
    validation = {"error": parts[0], "cost": [1.0, 2.0, 3.0]}
    selection = rp.select_from_losses(
        problem, validation=validation, calibration={"error": parts[1]}
    )
    assert selection.plan.order == (2, 1, 0)
    for table in (parts[1], parts[1][[2, 1, 0]]):
        found = rp.verify(
            selection.certificate, validation=validation, calibration={"error": table}
        )
        assert found.ok, str(found)


def test_a_procedure_of_ones_own_must_be_brought_along(validation, calibration):
    def mine(log_p, delta):
        return rp.holm(log_p, delta / 2)

    made = rp.select_from_losses(
        PROBLEM, validation=validation, calibration=calibration, procedure=mine
    ).certificate
    with pytest.raises(rp.CertificateError, match="custom: mine"):
        rp.verify(made, validation=validation, calibration=calibration)
    found = rp.verify(made, validation=validation, calibration=calibration, procedure=mine)
    assert found.ok
    assert any("that the procedure 'mine' keeps" in trusted for trusted in found.trusted)
    assert "rests on the procedure 'mine', which riskpilot cannot check" in made.promise


def test_a_promise_with_a_procedure_of_riskpilot_rests_on_no_other(
    certificate, validation, calibration
):
    found = rp.verify(certificate, validation=validation, calibration=calibration)
    assert "procedure" not in certificate.promise
    assert not any("procedure" in trusted for trusted in found.trusted)


@pytest.mark.parametrize("procedure", [rp.bonferroni, rp.holm, rp.chain(4)])
def test_certificates_of_every_procedure_verify_after_a_file(
    procedure, validation, calibration, tmp_path
):
    made = rp.select_from_losses(
        PROBLEM, validation=validation, calibration=calibration, procedure=procedure
    ).certificate
    read = rp.Certificate.load(made.save(tmp_path / "c.json"))
    assert rp.verify(read, validation=validation, calibration=calibration).ok


def test_a_certificate_of_nothing_verifies(validation, calibration):
    tight = PROBLEM.with_limits(error=0.001)
    made = rp.select_from_losses(tight, validation=validation, calibration=calibration)
    assert made.config is None
    assert rp.verify(made.certificate, validation=validation, calibration=calibration).ok


def test_configurations_of_numpy_numbers_are_written_as_plain_ones(validation, calibration):
    made = rp.select_from_losses(
        PROBLEM,
        validation=validation,
        calibration=calibration,
        configs=[{"t": np.float64(t), "n": np.int64(3)} for t in (0.1, 0.2, 0.3, 0.4)],
    ).certificate
    assert json.loads(made.to_json())["candidates"][0]["config"] == {"t": 0.1, "n": 3}
    assert rp.verify(made, validation=validation, calibration=calibration).ok


# --- strict JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda text: text.replace('"level": 0.1', '"level": NaN'), "NaN is not a number"),
        (lambda text: text.replace('"level": 0.1', '"level": Infinity'), "Infinity is not"),
        (lambda text: text.replace('"level": 0.1', '"level": 1e999'), "1e999 is larger"),
        (lambda text: text.replace('"level": 0.1', '"level": 0.1, "level": 0.01'), "twice"),
        (lambda text: text.replace('"level": 0.1', f'"level": {"9" * 5000}'), "not JSON"),
        (lambda text: "[" * 100_000, "not JSON"),
        (lambda text: text + text, "not JSON"),
    ],
)
def test_json_that_could_be_read_in_two_ways_is_refused(certificate, edit, says):
    with pytest.raises(rp.CertificateError, match=says):
        rp.Certificate.from_json(edit(certificate.to_json()))


@pytest.mark.parametrize("text", [None, 5, b"\xff", ["{}"]])
def test_what_is_no_text_is_no_certificate(text):
    with pytest.raises(rp.CertificateError):
        rp.Certificate.from_json(text)


@pytest.mark.parametrize("path", [5, None, ["c.json"], "no/such/folder/c.json", ".", "a\0b"])
def test_paths_that_cannot_be_used_get_one_sentence(certificate, path):
    for use in (certificate.save, rp.Certificate.load):
        with pytest.raises(
            rp.CertificateError, match=r"cannot be (written|read)|must be an ordinary"
        ):
            use(path)


def test_reports_that_cannot_be_written_get_one_sentence(validation, calibration):
    selection = rp.select_from_losses(PROBLEM, validation=validation, calibration=calibration)
    for path in (5, "no/such/folder/page.html"):
        with pytest.raises(rp.RiskpilotError, match="The report cannot be written"):
            selection.report(path)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"validation": {}}, {"calibration": {}}, {"study": "s.db"}, {"configs": []}, {"seal": 1}],
)
def test_verify_says_what_it_needs(certificate, arguments):
    with pytest.raises(rp.CertificateError):
        rp.verify(certificate, **arguments)
    with pytest.raises(rp.CertificateError, match="verify takes a Certificate"):
        rp.verify("certificate.json", **arguments)


def test_a_certificate_that_was_put_together_by_hand_is_checked_too(
    certificate, validation, calibration
):
    for change in ({"level": "0.1"}, {"passed": None}, {"chosen": 99}, {"seeds": {}}):
        made_up = dataclasses.replace(certificate, **change)
        with pytest.raises(rp.CertificateError, match="malformed"):
            rp.verify(made_up, validation=validation, calibration=calibration)


# --- names of configurations ---------------------------------------------------------------------

NAMES = [{"threshold": t} for t in (0.1, 0.2, 0.3, 0.4)]


def test_a_configuration_that_was_given_another_name_is_found(certificate, validation, calibration):
    """Whoever brings the configurations sees it, even where every digest was made to fit."""
    others = [{"threshold": t} for t in (0.1, 0.2, 0.9, 0.4)]
    given = {"validation": validation, "calibration": calibration}
    relabelled = rp.select_from_losses(PROBLEM, **given, configs=others).certificate
    assert relabelled.config == {"threshold": 0.9}
    found = rp.verify(relabelled, **given, configs=NAMES)
    assert "row 2 of the losses is the configuration {'threshold': 0.3}" in str(found)
    trusting = rp.verify(relabelled, **given)
    assert trusting.ok
    assert "which configuration each row of the losses stands for" in str(trusting)
    assert rp.verify(certificate, **given, configs=NAMES).ok
    assert not rp.verify(certificate, **given, configs=NAMES[:3]).ok


def test_rows_without_names_go_by_their_index(validation, calibration):
    given = {"validation": validation, "calibration": calibration}
    made = rp.select_from_losses(PROBLEM, **given).certificate
    assert made.configs is None
    assert rp.verify(made, **given).ok
    assert rp.verify(made, **given, configs=[{"index": row} for row in range(4)]).ok
    assert not rp.verify(made, **given, configs=NAMES).ok


def cyclic():
    config = {}
    config["itself"] = config
    return config


@pytest.mark.parametrize(
    "config",
    [
        {(1, 2): 3},
        {1: "a"},
        {None: 1},
        {"x": float("nan")},
        {"x": np.float32("inf")},
        {"x": {1, 2}},
        {"path": Path("model.bin")},
        {"x": b"bytes"},
        {"x": np.arange(3)},
        {"x": object()},
        {"x": {"y": {2: 1}}},
        {"x": 10**5000},
        {"x": 1j},
        cyclic(),
    ],
)
def test_configurations_that_json_cannot_keep_are_refused(config, validation, calibration):
    with pytest.raises(rp.LossError, match=r"Configuration 2 cannot be kept.*Write it"):
        rp.select_from_losses(
            PROBLEM, validation=validation, calibration=calibration, configs=[{}, {}, config, {}]
        )


def test_configurations_come_back_as_they_are(validation, calibration, tmp_path):
    configs = [
        {"n": np.int64(3), "t": np.float32(0.1), "on": np.True_, "kind": np.str_("a")},
        {"layers": (32, (16, 8)), "nested": {"a": [1, None]}, "": "empty name"},
        {"rate": 0.1, "n": 2**60, "text": "ü\U0001f600", "negative": -0.0},
        {},
    ]
    selection = rp.select_from_losses(
        PROBLEM, validation=validation, calibration=calibration, configs=configs
    )
    read = rp.Certificate.load(selection.certificate.save(tmp_path / "c.json"))
    assert read.configs[0] == {"n": 3, "t": float(np.float32(0.1)), "on": True, "kind": "a"}
    assert read.configs[1]["layers"] == [32, [16, 8]]
    assert read.config == selection.config == configs[2]
    assert rp.verify(read, validation=validation, calibration=calibration, configs=configs).ok


def test_another_procedure_than_the_one_of_the_certificate_is_told(
    certificate, validation, calibration
):
    given = {"validation": validation, "calibration": calibration}
    found = rp.verify(certificate, **given, procedure=rp.chain(4))
    assert any(told.startswith("procedure: computed") for told in found.differences)
    with pytest.raises(rp.ProblemError, match="A procedure is a function"):
        rp.verify(certificate, **given, procedure=5)


# --- groups --------------------------------------------------------------------------------------


def grouped(n_groups):
    rng = np.random.default_rng(0)
    names = np.array([f"g{i % n_groups:02d}" for i in range(100 * n_groups)])
    risk = rp.Risk("error", 0.3, statistic=rp.WorstGroup(), groups="site")
    splits = [{"error": rng.random((1, len(names))) < 0.02, "site": names.copy()} for _ in range(2)]
    return rp.select_from_losses(
        rp.Problem([risk], "cost"),
        validation={**splits[0], "cost": [1.0]},
        calibration=splits[1],
    )


def test_the_promise_names_its_groups_and_the_certificate_lists_all_of_them(tmp_path):
    few, many = grouped(3), grouped(42)
    assert "these groups: g00, g01, g02; it says nothing of any other group" in few.message
    assert few.certificate.groups == {"error": ["g00", "g01", "g02"]}
    told = "these groups: g00, g01, g02, g03, g04 and 37 more, listed in the certificate"
    assert told in many.message
    assert len(many.certificate.groups["error"]) == 42
    assert told in many.report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_p_values_are_shown_however_small():
    for log_p in (0.0, -1.0, -700.0, -1e4, -1e300, -math.inf):
        assert p_in_words(log_p)
    assert p_in_words(-1e4) == "1.1e-4343"


@pytest.mark.parametrize("level", [math.nan, math.inf, {1, 2}])
def test_a_field_that_json_cannot_hold_is_refused_in_words(certificate, level):
    with pytest.raises(rp.CertificateError, match="cannot be written"):
        dataclasses.replace(certificate, level=level).to_json()


def test_a_difference_names_its_field(certificate, validation, calibration):
    changed = dataclasses.replace(
        certificate, calibration_loss=[{}] * len(certificate.log_p), n_calibration=9
    )
    found = rp.verify(changed, validation=validation, calibration=calibration).differences
    assert any(words.startswith("calibration loss: computed") for words in found)
    assert any(words.startswith("number of calibration: computed") for words in found)


def test_the_promise_is_about_the_choice_and_not_about_a_configuration(certificate):
    assert f", the configuration that is chosen, here {certificate.config}, has error <= " in (
        certificate.promise
    )


def test_a_certificate_in_earlier_words_still_holds(certificate, validation, calibration):
    words = certificate.promise.replace("that is chosen, here ", "").replace("}, has ", "} has ")
    assert words.startswith(
        f"With probability at least 90% over the draw of validation and calibration data, the "
        f"configuration {certificate.config} has error <= "
    )
    earlier = dataclasses.replace(certificate, promise=words)
    earlier = rp.Certificate.from_json(earlier.to_json())
    assert rp.verify(earlier, validation=validation, calibration=calibration).ok
    assert certificate.has_fingerprint(earlier.fingerprint)
    other = dataclasses.replace(earlier, promise=words.replace("90%", "99%"))
    assert not rp.verify(other, validation=validation, calibration=calibration).ok
    assert not certificate.has_fingerprint(other.fingerprint)
