"""Procedures, plans and certificates that cannot be used are refused."""

import pickle

import pytest

import riskpilot as rp
from tests.kits.bad_input import C, P, V, assert_refused, assert_rule_value_and_way_out, table

CERTIFICATE = rp.select_from_losses(P, validation=V, calibration=C).certificate


def file_with(tmp_path, content):
    path = tmp_path / "certificate.json"
    path.write_bytes(content)
    return path


def without_a_number(text):
    return text.replace('"n_configs": 3', '"n_configs": 4')


# name: (error class, what the message must say, the call)
CASES = {
    # procedures
    "a procedure by name": (rp.ProblemError, r"'holm'", lambda: table(procedure="holm")),
    "a procedure that returns numbers": (
        rp.LossError,
        r"float64",
        lambda: table(procedure=lambda log_p, delta: log_p),
    ),
    "a procedure that returns too few": (
        rp.LossError,
        r"\(1,\)",
        lambda: table(procedure=lambda log_p, delta: log_p[:1] < 0),
    ),
    "a graph for another number": (
        rp.ProblemError,
        r"made for 7",
        lambda: table(procedure=rp.chain(7)),
    ),
    "weights above one": (
        rp.ProblemError,
        r"1\.4",
        lambda: rp.Graphical((0.7, 0.7), ((0, 1), (1, 0))),
    ),
    "a negative weight": (
        rp.ProblemError,
        r"0\.5",
        lambda: rp.Graphical((-0.5, 1.0), ((0, 1), (1, 0))),
    ),
    "edges above one": (
        rp.ProblemError,
        r"2\.0",
        lambda: rp.Graphical((0.5, 0.5), ((0, 2), (1, 0))),
    ),
    "a loop": (rp.ProblemError, r"diagonal", lambda: rp.Graphical((0.5, 0.5), ((1, 0), (0, 0)))),
    "edges of the wrong shape": (
        rp.ProblemError,
        r"\(1, 2\)",
        lambda: rp.Graphical((0.5, 0.5), ((0, 1),)),
    ),
    "ragged edges": (
        rp.ProblemError,
        r"inhomogeneous",
        lambda: rp.Graphical((0.5, 0.5), ((0, 1), (1,))),
    ),
    "an empty chain": (rp.ProblemError, r"is 0", lambda: rp.chain(0)),
    # planner
    "a plan for no examples": (rp.ProblemError, r"is 0", lambda: rp.plan_calibration(P, 0)),
    "a plan for half an example": (rp.ProblemError, r"0\.5", lambda: rp.plan_calibration(P, 0.5)),
    "a plan for many examples": (
        rp.ProblemError,
        r"'many'",
        lambda: rp.plan_calibration(P, "many"),
    ),
    "a power of one": (
        rp.ProblemError,
        r"1\.0",
        lambda: rp.plan_calibration(P, 9, target_power=1.0),
    ),
    "a true risk above the limit": (
        rp.ProblemError,
        r"0\.3",
        lambda: rp.plan_calibration(P, 9, true_risks={"error": 0.3}),
    ),
    "a true risk of an unknown name": (
        rp.ProblemError,
        r"'harm'",
        lambda: rp.plan_calibration(P, 9, true_risks={"harm": 0.1}),
    ),
    # certificates
    "a certificate that is no JSON": (
        rp.CertificateError,
        r"not JSON",
        lambda: rp.Certificate.from_json("{oh"),
    ),
    "a certificate that is a list": (
        rp.CertificateError,
        r"no schema",
        lambda: rp.Certificate.from_json("[1, 2]"),
    ),
    "a certificate of another version": (
        rp.CertificateError,
        r"certificate/9",
        lambda: rp.Certificate.from_json('{"schema": "riskpilot-certificate/9"}'),
    ),
    "a certificate cut short": (
        rp.CertificateError,
        r"not JSON",
        lambda: rp.Certificate.from_json(CERTIFICATE.to_json()[:400]),
    ),
    "a certificate with one number changed": (
        rp.CertificateError,
        r"changed after it was written",
        lambda: rp.Certificate.from_json(without_a_number(CERTIFICATE.to_json())),
    ),
    "a certificate with a field too many": (
        rp.CertificateError,
        r"extra",
        lambda: rp.Certificate.from_json(CERTIFICATE.to_json().replace("{", '{"extra": 1,', 1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_in_its_own_words(name):
    assert_refused(CASES[name])


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02", b"\xff\xfe\xfa", pickle.dumps({"schema": 1}), b"PK\x03\x04zip"],
    ids=["empty", "zeros", "not text", "a pickle", "a zip"],
)
def test_a_file_that_is_no_certificate_is_refused(tmp_path, content):
    with pytest.raises(rp.CertificateError) as caught:
        rp.Certificate.load(file_with(tmp_path, content))
    assert_rule_value_and_way_out(str(caught.value))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rp.CertificateError, match=r"nowhere\.json"):
        rp.Certificate.load(tmp_path / "nowhere.json")
