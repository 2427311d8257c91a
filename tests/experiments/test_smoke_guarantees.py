"""The experiments on guarantees run in small: the power of tests, groups, a drop in accuracy."""

from experiments import drop, groups, power


def test_tests_of_a_gap_pass_often_where_there_is_none_and_rarely_at_the_limit():
    without, at_limit = (power.power(80, 120, 0.05, gap, 150) for gap in (0.0, power.LIMIT))
    assert without.keys() == at_limit.keys() == power.TESTS.keys()
    assert all(share < 0.2 for share in at_limit.values())
    assert without["differences, betting (used)"] > 0.8


def test_the_exact_test_of_a_difference_is_the_most_powerful_and_holds_delta():
    at_limit, better = (power.paired_power(300, 0.05, 0.1, mean, 400) for mean in (0.05, 0.0125))
    used = "exact, by score (used)"
    assert at_limit[used] < power.DELTA + 0.05
    assert better[used] > max(share for name, share in better.items() if name != used) - 0.02


def test_the_selections_of_groups_are_timed():
    assert set(groups.speed(300, repeats=1)) == {"mean", "worst group", "gap"}


def test_a_drop_in_accuracy_is_replayed(monkeypatch, tmp_path):
    monkeypatch.setattr(drop, "N_CONFIGS", 20)
    whole = drop.population()
    found = drop.replay(whole, 0.03, 1000, splits=2)
    assert found["exact"]["answers"] == 1
    assert found["exact"]["cost"] < 1
    drop.draw(whole, tmp_path / "drop.svg")
    assert (tmp_path / "drop.svg").stat().st_size > 1000
