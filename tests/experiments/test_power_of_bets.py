"""The figures of the bets come from a command that runs."""

import sys

from experiments import power_of_bets
from experiments.power_of_bets import OTHERS, TUNED


def test_what_bets_know_costs_no_power_and_gains_much_where_losses_are_rare(monkeypatch):
    monkeypatch.setattr(power_of_bets, "SIZES", (500,))
    rows = list(power_of_bets.beginnings(150))
    assert len(rows) == len(power_of_bets.LIMITS) * (len(TUNED) + len(OTHERS))
    assert all(row["used"] > row["nothing"] - 0.03 for row in rows)
    rare = next(row for row in rows if row["losses"] == "0 or 1" and row["limit"] == 0.03)
    assert rare["used"] > rare["nothing"] + 0.15


def test_every_kind_of_losses_has_the_mean_that_it_is_asked_for():
    rng = power_of_bets.np.random.default_rng(0)
    for name, draw in (TUNED | OTHERS).items():
        losses = draw(rng, 0.05, (1, 400_000))
        assert 0.048 < losses.mean() < 0.052, name
        assert losses.min() >= 0, name
        assert losses.max() <= 1, name


def test_the_command_prints_four_tables(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["power_of_bets", "--replications", "20"])
    monkeypatch.setattr(power_of_bets, "SIZES", (100,))
    power_of_bets.main()
    printed = capsys.readouterr().out
    for columns in (
        "nothing | ceiling | used",
        "share that counts | used",
        "aimed at delta | used",
        "one shuffle | average of 16",
    ):
        assert columns in printed
