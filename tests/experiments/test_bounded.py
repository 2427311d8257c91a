"""The figures of bounded surrogates come from a command that runs."""

import json

import pytest

from experiments import bounded
from riskpilot.search import surrogate


def test_both_searches_are_compared(tmp_path, capsys):
    path = tmp_path / "bounded.json"
    small = ["--task", "fairness", "--seeds", "2", "--trials", "8", "--bound", "4"]
    bounded.main([*small, "--splits", "5", "--out", str(path)])
    found = json.loads(path.read_text())
    assert (found["trials"], found["bound"]) == (8, 4)
    run = found["tasks"]["fairness"]
    assert run["gap"][0] == pytest.approx(run["bounded"]["free"] - run["all"]["free"], abs=1e-12)


def test_a_bounded_search_fits_no_more_than_its_bound(monkeypatch):
    sizes = []
    fit = surrogate.fit

    def noting(x, *others, **named):
        sizes.append(len(x))
        return fit(x, *others, **named)

    monkeypatch.setattr(surrogate, "fit", noting)
    for bound in (12, 6):
        sizes.clear()
        bounded.outcome("fairness", 0, bound, 12, 5)
        assert max(sizes) == bound
