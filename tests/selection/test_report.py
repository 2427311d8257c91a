"""The page of a selection: whole, self-contained, and without markup of the user."""

import re

import numpy as np
import pytest

import riskpilot as rp

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'


def page(tmp_path, *, risk="error", free="cost", limit=0.2, config="threshold"):
    problem = rp.Problem([rp.Risk(risk, limit)], free)
    rng = np.random.default_rng(0)
    means = np.array([0.02, 0.1, 0.4])[:, None]
    selection = rp.select_from_losses(
        problem,
        validation={risk: rng.random((3, 400)) < means, free: [3.0, 2.0, 1.0]},
        calibration={risk: rng.random((3, 400)) < means},
        configs=[{config: f"{config}{i}"} for i in range(3)],
    )
    path = selection.report(tmp_path / "report.html")
    return selection, path.read_text(encoding="utf-8")


def test_the_page_says_what_the_certificate_promises(tmp_path):
    selection, text = page(tmp_path)
    assert selection.config == {"threshold": "threshold1"}
    assert text.lower().startswith("<!doctype html>")
    assert "threshold1" in text
    assert selection.certificate.calibration_digest in text
    assert "0.2" in text


def test_the_page_of_nothing_says_so(tmp_path):
    selection, text = page(tmp_path, limit=0.001)
    assert selection.config is None
    assert re.search(r"nothing (could be|is|was) (certified|promised)", text, re.IGNORECASE)


def test_the_page_needs_no_network(tmp_path):
    _, text = page(tmp_path)
    assert not re.findall(r"<(?:script|img|iframe)[^>]+src\s*=\s*[\"']?(?:https?:)?//", text)
    assert not re.findall(r"<link[^>]+href\s*=\s*[\"']?(?:https?:)?//[^>]*stylesheet", text)


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE], ids=["script", "image"])
@pytest.mark.parametrize("place", ["risk", "free", "config"])
def test_names_with_markup_are_shown_not_run(tmp_path, place, markup):
    _, text = page(tmp_path, **{place: markup})
    assert markup not in text
    assert "alert(1)" in text  # it is there, escaped
    for found in re.finditer(r"alert\(1\)", text):
        before = text[max(0, found.start() - 60) : found.start()]
        assert "<script>" not in before
        assert "<img src=x" not in before
