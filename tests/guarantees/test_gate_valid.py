"""A gate lets changes through that break their limits at most delta of the time: over a ledger."""

import numpy as np
from exact import assert_rate_at_most, shows_rate_above

from riskpilot.gate import check_change

N, LIMIT, DELTA, QUESTIONS = 60, 0.1, 0.3, 4


def write_pair(folder, rng):
    """Write answers of a reference, and of a change whose true drop sits exactly at the limit."""
    draw = rng.random(N)
    worse, better = draw < 0.2, (draw >= 0.2) & (draw < 0.3)
    reference = np.where(worse, 1, np.where(better, 0, rng.random(N) < 0.9))
    new = np.where(worse, 0, np.where(better, 1, reference))
    for name, answers in (("new.csv", new), ("main.csv", reference)):
        rows = "".join(f"e{i},{int(answer)}\n" for i, answer in enumerate(answers))
        (folder / name).write_text(f"example,accuracy\n{rows}")


def test_changes_at_the_limit_pass_at_most_delta_of_the_time_over_a_whole_ledger(tmp_path, effort):
    """Each ledger sees several pull requests, all with a true drop at the limit. The last assertion
    says that the spending is what keeps the promise: with all of delta for every question, a
    change gets through far more often."""
    rng, ledgers = np.random.default_rng(0), 50 * effort
    passed = whole_delta = 0
    for ledger in range(ledgers):
        answers = []
        for _ in range(QUESTIONS):
            write_pair(tmp_path, rng)
            answers.append(
                check_change(
                    tmp_path / "new.csv",
                    reference=tmp_path / "main.csv",
                    risks=[f"accuracy_drop<={LIMIT}"],
                    delta=DELTA,
                    ledger=tmp_path / f"{ledger}.db",
                )
            )
        assert [answer.entry.number for answer in answers] == list(range(1, QUESTIONS + 1))
        passed += any(answer.passed for answer in answers)
        whole_delta += any(answer.risks[0].p_value < DELTA for answer in answers)
    assert passed > 0
    assert_rate_at_most(DELTA, passed, ledgers)
    assert shows_rate_above(DELTA, whole_delta, ledgers)
