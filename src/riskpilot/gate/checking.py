"""Checking a change: is it shown to keep its limits against the reference, at the level it has."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import Array, digest_of, finite_number
from riskpilot.errors import ProblemError, shown
from riskpilot.gate.gate_ledger import Entry, enter, note_answer
from riskpilot.guarantee import stamp, upper_bounds
from riskpilot.losses import in_range
from riskpilot.problem import Problem, Risk, column_of, parse_risk
from riskpilot.selection import Selection, select_from_losses
from riskpilot.statistics import Difference, Mean
from riskpilot.tables import OneRun, read_pair

_FREE = "nothing"  # a gate has no free objective: there is nothing to choose among


@dataclass(frozen=True)
class CheckedRisk:
    """One limit of a gate, and what the examples say of it.

    Attributes
    ----------
    risk : Risk
        The limit.
    passed : bool
        Whether it is shown to be kept, at the level of the question.
    value : float
        The value on the examples; of a difference the new mean loss less that of the reference.
    new, reference : float
        The mean loss of each of the two; ``reference`` is None where the limit is not against one.
    upper_bound : float
        The smallest limit that would have passed.
    p_value : float
        How likely such a good result is where the limit is broken, at most.
    test : str
        The test that was used.
    """

    risk: Risk
    passed: bool
    value: float
    new: float
    reference: float | None
    upper_bound: float
    p_value: float
    test: str


@dataclass(frozen=True)
class Gate:
    """The answer of a gate.

    Attributes
    ----------
    risks : tuple of CheckedRisk
        Every limit, in the order in which it was asked.
    n_examples : int
        How many examples both runs have.
    delta : float
        How often, at most, a change that breaks its limits passes, over all questions of a ledger.
    entry : Entry or None
        The number of the question and the share of delta that it spends; None without a ledger.
    seed : int
        The seed of the order in which bets see the examples.
    new, reference : dict
        What the files say of the two configurations; ``reference`` is None without one.
    made : dict
        When it was made, and by which versions.
    digest : str
        The digest of all that was asked: limits, delta and losses.
    """

    risks: tuple[CheckedRisk, ...]
    n_examples: int
    delta: float
    entry: Entry | None
    seed: int
    new: Mapping[str, Any]
    reference: Mapping[str, Any] | None
    made: Mapping[str, Any]
    digest: str

    @property
    def passed(self) -> bool:
        """Whether every limit is shown to be kept."""
        return all(checked.passed for checked in self.risks)

    @property
    def level(self) -> float:
        """The level at which the question was tested: all of delta without a ledger."""
        return self.delta if self.entry is None else self.delta * self.entry.share


def check_change(
    new: str | Path,
    *,
    reference: str | Path | None = None,
    risks: Sequence[Risk | str],
    delta: float = 0.05,
    ledger: str | Path | None = None,
    spend: float | None = None,
) -> Gate:
    """Check whether a change is shown to keep its limits; all examples are used for the test.

    Parameters
    ----------
    new : str or Path
        The evaluation log of the change, or a table with the columns "example" and those of the
        risks, and one row for each example.
    reference : str or Path, optional
        The same of the reference, on the same examples. Limits on a drop need it.
    risks : sequence of Risk or str
        The limits, such as "accuracy_drop<=0.03" or "error<=0.1".
    delta : float, default 0.05
        How often, at most, a change that breaks its limits may pass: over all questions of the
        ledger together, or of this question alone where there is none.
    ledger : str or Path, optional
        The file that counts the questions. It is made where there is none.
    spend : float, optional
        The share of delta that a new question of the ledger may spend; by default 6 / (pi^2 k^2)
        for the k-th one. A question that was asked before keeps the share it had.

    Returns
    -------
    Gate
        Whether the change passed, and what the examples say of each limit.

    Raises
    ------
    TableError
        If a file or the ledger cannot be read, or the two runs have different examples.
    LossRangeError
        If a loss, or one of the reference, is outside the range of its limit, or infinite.
    ProblemError
        If a limit cannot be meant, or the ledger has nothing left to spend.
    """
    limits = tuple(parse_risk(risk) if isinstance(risk, str) else risk for risk in risks)
    _check(limits, reference)
    _check_spend(spend, ledger)
    columns = {risk.name: column_of(risk) for risk in limits}
    one, other = read_pair(new, reference, sorted({name for name, _ in columns.values()}))
    repeated = one.repeated or (other is not None and other.repeated)
    limits = tuple(_with_test(risk, repeated) for risk in limits)
    losses = {risk.name: _losses(one, *columns[risk.name]) for risk in limits}
    against = {
        risk.name: _losses(other, *columns[risk.name])
        for risk in limits
        if other is not None and isinstance(risk.statistic, Difference)
    }
    for risk in limits:  # what has no valid test is refused before anything is spent on it
        in_range(risk, losses[risk.name], repr(Path(new).name))
        if reference is not None and risk.name in against:
            in_range(risk, against[risk.name], repr(Path(reference).name))
    Problem(limits, _FREE, delta)  # so is a delta that cannot be meant
    digest = digest_of(
        {
            "risks": [risk.to_dict() for risk in limits],
            "delta": delta,
            "examples": one.ids,
            "losses": {name: values.astype(float).tolist() for name, values in losses.items()},
            "reference": {name: values.astype(float).tolist() for name, values in against.items()},
        }
    )
    seed, entry = 1 + secrets.randbits(52), None
    if ledger is not None:
        entry = enter(Path(ledger), digest, delta, spend, seed)
        seed = entry.seed
    level = delta if entry is None else delta * entry.share
    checked = tuple(
        _tested(risk, losses[risk.name], against.get(risk.name), level, seed) for risk in limits
    )
    config = None if other is None else other.config
    gate = Gate(checked, len(one.ids), delta, entry, seed, one.config, config, stamp(), digest)
    if ledger is not None and entry is not None:
        note_answer(Path(ledger), entry.number, passed=gate.passed)
    return gate


def _check(limits: Sequence[Risk], reference: object) -> None:
    """Refuse limits that a gate cannot check."""
    if not limits:
        raise ProblemError('A gate needs a limit, but there is none. Write "accuracy_drop<=0.03".')
    for risk in limits:
        if not isinstance(risk.statistic, Mean | Difference) or risk.weights is not None:
            raise ProblemError(
                f"A gate checks means of losses and their differences from a reference, but "
                f"{risk.name!r} limits something else. Use riskpilot select for it."
            )
        if risk.conditional:
            raise ProblemError(
                f"A gate takes no conditional means: every example counts, but {risk.name!r} is a "
                f"mean of some of them. Limit a mean of all, or use riskpilot select for it."
            )
        if isinstance(risk.statistic, Difference) and reference is None:
            raise ProblemError(
                f"{risk.name!r} is a difference from a reference, but none is given. Name the log "
                f"of the reference: --reference main.eval."
            )


def _check_spend(spend: object, ledger: object) -> None:
    """Refuse a share that cannot be meant."""
    if spend is None:
        return
    if ledger is None:
        raise ProblemError(
            "spend is a share of what a ledger has, but no ledger is given. Name one (--ledger "
            "gate.db), or leave spend out: a question on its own has all of delta."
        )
    number = finite_number(spend)
    if number is None or not 0 < number <= 1:
        raise ProblemError(
            f"spend is the share of delta that a question may use and lies in (0, 1], but it is "
            f"{shown(spend)}. Leave it out, or write spend=0.1."
        )


def _with_test(risk: Risk, repeated: bool) -> Risk:
    """Bet on losses that are averages over repeats: an exact test would round each of them up."""
    return replace(risk, p_value="betting") if repeated and risk.p_value == "auto" else risk


def _losses(run: OneRun, column: str, turned: bool) -> Array:
    """Read the losses of a run, shape (m,); integers say by their type that they are 0/1."""
    values = run.numbers[column]
    return 1 - values if turned else values


def _tested(
    risk: Risk, losses: Array, reference: Array | None, level: float, seed: int
) -> CheckedRisk:
    """Test one limit on all examples: with one configuration there is nothing to choose, and no
    validation data is needed."""
    beside = {}
    if reference is not None:
        assert isinstance(risk.statistic, Difference)
        beside = {risk.statistic.reference: reference}
        if losses.dtype != reference.dtype:  # 0/1 losses are those of both runs
            losses = losses.astype(np.float64)
    selection: Selection = select_from_losses(
        Problem([risk], _FREE, level),
        validation={_FREE: np.zeros(1)},
        calibration={risk.name: losses[None, :], **beside},
        order=[0],
        seed=seed,
    )
    return CheckedRisk(
        risk=risk,
        passed=bool(selection.result.passed[0]),
        value=float(selection.result.means[0, 0]),
        new=float(losses.mean()),
        reference=None if reference is None else float(reference.mean()),
        upper_bound=float(upper_bounds(selection.plan, selection.result, [0])[0, 0]),
        p_value=float(selection.p_values[0]),
        test=selection.plan.families[risk.name],
    )
