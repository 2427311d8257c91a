"""Estimates, comparisons and claims say what the numbers say."""

from pathlib import Path

import numpy as np
import pytest

from riskpilot.bench.jobs import Scope
from riskpilot.bench.methods import PIECES
from riskpilot.bench.results import Entry, Results, Runs
from riskpilot.bench.shown.claims import paper_claims
from riskpilot.bench.shown.estimate import two_way
from riskpilot.bench.shown.page import trust_note
from riskpilot.bench.shown.summary import cell_rows, compare, ratio
from riskpilot.bench.shown.targets import piece_rows, targets
from riskpilot.search import GUIDED

CELL = (0.1,)


def runs(free: float, *, nothing: float = 0.0, violated: float = 0.0, noise: float = 0.0) -> Runs:
    shape = (4, 10)
    wobble = noise * np.random.default_rng(0).standard_normal(shape)
    share = np.arange(40).reshape(shape) / 40
    return Runs(
        free=free + wobble,
        nothing=share < nothing,
        violated=share < violated,
        risks=np.full((*shape, 1), 0.09),
        seconds=0.1,
        n_configs=10,
        n_candidates=5,
    )


def results(**by_method: Runs) -> Results:
    named = {Entry("pruning", CELL, name, "auto"): each for name, each in by_method.items()}
    scope = Scope(["pruning"], list(by_method), 4, 10)
    return Results(scope, named, {"pruning": ("risk", "cost")}, {"pruning": [CELL]}, [])


def test_interval_covers_the_mean_of_a_crossed_design() -> None:
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(400):
        seeds, splits = rng.normal(size=(10, 1)), 0.5 * rng.normal(size=(1, 50))
        found = two_way(seeds + splits + 0.3 * rng.normal(size=(10, 50)))
        covered.append(found.low <= 0 <= found.high)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_interval_of_a_method_without_randomness_is_that_of_the_splits() -> None:
    splits = np.random.default_rng(0).normal(size=50)
    found = two_way(np.tile(splits, (10, 1)))
    half = 2.0096 * splits.std(ddof=1) / np.sqrt(50)  # Student's t with 49 degrees of freedom
    assert found.high - found.mean == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize(("shift", "verdict"), [(-0.1, "win"), (0.0, "tie"), (0.1, "loss")])
def test_smaller_free_objective_wins(shift: float, verdict: str) -> None:
    mine = runs(0.5 + shift)
    both = results(guided=mine, uniform=runs(0.5, noise=0.01))
    found = compare(both, "pruning", CELL, "guided", "uniform")
    assert found is not None
    assert found.verdict == verdict


def test_ratio_is_to_the_dense_grid_under_the_same_p_values() -> None:
    both = results(guided=runs(0.6), dense=runs(0.5))
    assert ratio(both, Entry("pruning", CELL, "guided", "auto")) == pytest.approx(1.2)
    without = results(guided=runs(0.6))
    assert ratio(without, Entry("pruning", CELL, "guided", "auto")) is None


def test_claims_turn_with_the_numbers() -> None:
    good = results(
        paper=runs(0.5),
        guided=runs(0.5),
        dense=runs(0.5),
        parego=runs(0.7, nothing=0.2),
        one_sided=runs(0.6),
    )
    bad = results(
        paper=runs(0.9, violated=0.3),
        guided=runs(0.9),
        dense=runs(0.5),
        parego=runs(0.7),
        one_sided=runs(0.6),
    )
    for claim, contrary in zip(paper_claims(good), paper_claims(bad), strict=True):
        if "delta'" in claim.claim:
            assert claim.verdict == contrary.verdict == "not run"
        else:
            assert claim.verdict == "holds", claim
            assert contrary.verdict == "does not hold here", contrary


def test_claims_call_methods_by_their_labels_and_changes_by_one_unit() -> None:
    found = results(paper=runs(0.5), guided=runs(0.5), **{"guided_delta_prime_0.1": runs(0.5)})
    hoeffding = Entry("pruning", CELL, "paper", "hoeffding_bentkus")
    found.runs[hoeffding] = runs(0.8)
    found.runs[Entry("pruning", CELL, "guided_delta_prime_0.1", "auto")].violated[:, 0] = True
    figures = [claim.figure for claim in (*paper_claims(found), *targets(found))]
    assert "at most 10.0 % (guided, delta' = 0.1, pruning at 0.1)" in figures
    assert "-37.5 % on average, -37.5 to -37.5 % over cells" in figures


def test_targets_turn_with_the_numbers_and_name_the_cells_that_miss() -> None:
    good = targets(results(guided=runs(0.5), paper=runs(0.6), dense=runs(0.5, nothing=0.1)))
    bad = targets(
        results(guided=runs(0.7, nothing=0.3), paper=runs(0.6), dense=runs(0.5, nothing=0.1))
    )
    judged = 0
    for claim, contrary in zip(good, bad, strict=True):
        assert claim.holds is None or (claim.holds and claim.missed == ()), claim
        if claim.holds:
            judged += 1
            assert contrary.holds is False, contrary
            if "distance" not in claim.claim:
                assert contrary.missed[0].startswith("pruning at"), contrary
    assert judged == 4


def test_a_piece_is_what_is_lost_without_it() -> None:
    name = PIECES[0].method.name
    (row,) = piece_rows(results(**{"guided": runs(0.5), name: runs(0.6, nothing=0.2)}))
    assert row["what the default does"] == PIECES[0].brings
    assert row["free objective without it"].startswith("+20.0 %")
    assert row["with against without"] == "1 win, 0 ties, 0 losses"


def test_targets_without_their_runs_are_not_judged() -> None:
    verdicts = {claim.verdict for claim in targets(results(uniform=runs(0.5)))}
    assert verdicts == {"not run"}


def test_both_figures_are_kept_where_some_runs_certify_nothing() -> None:
    one = runs(0.5, nothing=0.5)
    free = np.where(one.nothing, 0.9, 0.5)
    row = cell_rows(results(guided=Runs(**{**vars(one), "free": free})))[0]
    assert row["free"] == pytest.approx(0.7)
    assert row["free_where_certified"] == pytest.approx(0.5)
    assert row["nothing_certified"] == pytest.approx(0.5)


def test_the_overview_says_whether_the_default_that_was_replayed_hedges() -> None:
    stored = Path(__file__).parents[2] / "experiments" / "results" / "README.md"
    assert trust_note(GUIDED.trust) in stored.read_text(encoding="utf-8")
    assert "trusts validation" in trust_note(1.0)
    assert "hedges" in trust_note(0.7)
    assert "`trust=0.7`" in trust_note(0.7)
