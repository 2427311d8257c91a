"""Validation and calibration must not share examples: what is refused, and where."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

import numpy as np
from scipy.special import gammaln

from riskpilot.common import FloatArray, Places
from riskpilot.errors import LeakageError, shown
from riskpilot.losses.beside import digest_of_bytes
from riskpilot.losses.evaluation import LossMapping
from riskpilot.losses.example_ids import ExampleIds, read_example_ids
from riskpilot.losses.intake import TextArray, number_array
from riskpilot.losses.judges import JudgeMapping
from riskpilot.losses.risk_losses import RiskLosses
from riskpilot.losses.same_sample import (
    NO_PATTERN,
    Patterns,
    Sketch,
    counts_tell,
    found_in,
    order_tells,
    orders_of,
    overlap_tells,
    patterns_of,
    sketch_of,
    with_row,
)
from riskpilot.losses.splits import CalibrationLosses, ValidationLosses
from riskpilot.statistics import GroupSummary

_ROWS_COMPARED = 50  # configurations; more of them hardly make an example's losses more telling
_DEPTHS = 4  # numbers of first examples at which the trials of a race are compared


def check_disjoint(
    validation: ValidationLosses,
    calibration: CalibrationLosses,
    rows: Sequence[int] | None = None,
    ids: ExampleIds | None = None,
) -> None:
    """Refuse calibration losses that are the validation losses, in whatever order, or many of them.

    ``rows``: where the configurations of the calibration losses stand in the validation losses; as
    they are by default. ``ids``: of the examples, where the losses stand in an order of theirs.
    """
    for name, losses in validation.risks.items():
        other = calibration.risks[name]
        digests = losses.row_digests
        if rows is not None:
            digests = tuple(digests[row] for row in rows)
        if digests == other.row_digests and not _could_coincide(other):
            raise LeakageError(
                f"Validation and calibration must not share examples, but the losses of {name!r} "
                f"are the same {losses.n_examples} numbers in both. Split the data once, before "
                f"anything is trained or chosen, and pass each part where it belongs."
            )
    chosen = range(calibration.n_configs) if rows is None else rows
    if same_sums(validation, calibration, chosen):
        _check_reordered(validation, calibration, chosen, ids or ExampleIds())
    _check_overlap(validation, calibration, chosen)


def same_sums(
    validation: ValidationLosses, calibration: CalibrationLosses, rows: Sequence[int]
) -> bool:
    """Tell whether both splits have the same sums, without which they are not the same examples.

    ``rows``: where the configurations of the calibration losses stand in the validation losses.
    """
    if validation.n_examples != calibration.n_examples:
        return False
    return all(
        np.array_equal(losses.summary.n[list(rows)], calibration.risks[name].summary.n)
        and np.allclose(
            losses.summary.mean[list(rows)], calibration.risks[name].summary.mean, rtol=1e-5
        )
        for name, losses in validation.risks.items()
    )


def _check_reordered(
    validation: ValidationLosses,
    calibration: CalibrationLosses,
    rows: Sequence[int],
    ids: ExampleIds,
) -> None:
    """Refuse calibration losses that are the validation losses in another order."""
    orders: list[tuple[Places, Places]] = []
    if ids.validation is not None and ids.calibration is not None:
        orders = list(product(orders_of(ids.validation), orders_of(ids.calibration)))
    for names, mine, theirs in _patterns(validation, calibration, rows):
        in_an_order = any(np.array_equal(mine[v], theirs[c]) for v, c in orders)
        if (in_an_order and order_tells(mine)) or _same_in_any_order(mine, theirs):
            raise _reordered(mine, names)


def _same_in_any_order(mine: Patterns, theirs: Patterns) -> bool:
    """Tell whether two samples show the same patterns, which others hardly would."""
    return np.array_equal(np.sort(mine), np.sort(theirs)) and counts_tell(mine)


def _reordered(mine: Patterns, names: str) -> LeakageError:
    """Make the error that the losses of risks are those of validation examples, reordered."""
    return LeakageError(
        f"Validation and calibration must not share examples, but the losses of {names} "
        f"are the same {len(mine)} in both, in another order. Split the data once, before "
        f"anything is trained or chosen, and pass each part where it belongs."
    )


def _check_overlap(
    validation: ValidationLosses, calibration: CalibrationLosses, rows: Sequence[int]
) -> None:
    """Refuse calibration losses half of which are validation losses, with others or without some.

    Of many configurations the first are compared.
    """
    for names, mine, theirs in _patterns(validation, calibration, rows[:_ROWS_COMPARED]):
        refuse_shared(mine, theirs, names)


def check_overlap_by_row(seen: Iterable[ValidationLosses], calibration: CalibrationLosses) -> None:
    """Do the same for all risks at once, where the validation losses of one configuration after the
    other are read."""
    mine = theirs = NO_PATTERN
    for place, losses in enumerate(islice(seen, _ROWS_COMPARED)):
        for name, part in losses.risks.items():
            mine = with_row(mine, part.unit_rows([0])[0], by_range=False)
            other = calibration.risks[name].unit_rows([place])[0]
            theirs = with_row(theirs, other, by_range=False)
    refuse_shared(mine, theirs, " and ".join(map(repr, calibration.risks)))


def depths_of(evaluated: Iterable[int]) -> list[int]:
    """Choose the numbers of first examples at which trials are compared, with the fewest and most.

    ``evaluated``: on how many of its first examples each trial was evaluated.
    """
    every = sorted(set(evaluated))
    chosen = np.linspace(0, len(every) - 1, min(len(every), _DEPTHS)).round().astype(int)
    return [every[place] for place in chosen]


def check_evaluated_by_row(
    seen: Iterable[ValidationLosses], evaluated: Sequence[int], calibration: CalibrationLosses
) -> None:
    """Refuse calibration losses that are those of examples on which trials were evaluated.

    ``seen``: the validation losses of one configuration after the other, of which the first
    ``evaluated`` are not foretold. All that were evaluated on n examples form a table of n.
    """
    names = " and ".join(map(repr, calibration.risks))
    depths = depths_of(evaluated)
    mine, theirs = ([NO_PATTERN] * len(depths) for _ in range(2))
    n_rows, n_in_all = [0] * len(depths), 0
    for place, (losses, known) in enumerate(zip(seen, evaluated, strict=True)):
        n_in_all = losses.n_examples
        fits = [i for i, n in enumerate(depths) if n <= known and n_rows[i] < _ROWS_COMPARED]
        for name, part in losses.risks.items():
            row, other = part.unit_rows([0])[0], calibration.risks[name].unit_rows([place])[0]
            check_order(*(patterns_of([each], by_range=False) for each in (row[:known], other)))
            for i in fits:
                mine[i] = with_row(mine[i], row[: depths[i]], by_range=False)
                theirs[i] = with_row(theirs[i], other, by_range=False)
        for i in fits:
            n_rows[i] += 1
    for one, other in zip(mine, theirs, strict=True):
        check_evaluated(one, other, n_in_all, names)


def check_evaluated(seen: Patterns, fresh: Patterns, n_in_all: int, names: str) -> None:
    """Refuse examples that are, or half of which are, those of which a search saw the first ones.

    ``seen``: the patterns of the first of ``n_in_all`` examples; ``names``: of the risks.
    """
    check_order(seen, fresh)
    if _same_in_any_order(seen, fresh):
        raise _reordered(seen, names)
    refuse_shared(seen, fresh, names, n_in_all)


def _patterns(
    validation: ValidationLosses, calibration: CalibrationLosses, rows: Sequence[int]
) -> Iterator[tuple[str, Patterns, Patterns]]:
    """Put the losses of each example together, of some configurations, for each risk and for all
    risks at once: the names of these, and the patterns of both splits.

    There are none where losses are known by their sums alone. ``rows``: where the first
    configurations of the calibration losses stand in the validation losses.
    """
    seen, sealed = list(validation.risks.values()), list(calibration.risks.values())
    if any(losses.values is None for losses in (*seen, *sealed)):
        return
    parts = [([one], [other]) for one, other in zip(seen, sealed, strict=True)]
    for one, other in parts if len(parts) == 1 else [*parts, (seen, sealed)]:
        yield (
            " and ".join(repr(losses.risk.name) for losses in one),
            patterns_of(_each_row(one, rows), by_range=False),
            patterns_of(_each_row(other, range(len(rows))), by_range=False),
        )


def check_order(seen: Patterns, fresh: Patterns) -> None:
    """Refuse labels that come with the patterns of losses of validation examples, in their order.

    As labels are drawn at random, any order of their losses is as likely as any other.
    """
    n = min(len(seen), len(fresh))
    if np.array_equal(seen[:n], fresh[:n]) and order_tells(fresh[:n]):
        raise LeakageError(
            f"Labelled examples must not have been seen by the search, but the losses of the first "
            f"{n:,} are those of the first validation examples. Label other examples."
        )


def refuse_shared(seen: Patterns, fresh: Patterns, names: str, n_in_all: int | None = None) -> None:
    """Refuse examples half of which show the patterns of losses of examples that a search saw.

    ``names``: of the risks, for the message; ``n_in_all``: see `overlap_tells`.
    """
    if overlap_tells(seen, fresh, n_in_all):
        shared = found_in(seen, fresh)
        raise LeakageError(
            f"Calibration examples must not have been seen by the search, but {shared:,} of "
            f"{len(fresh):,} have the losses of validation examples in {names}, which other "
            f"examples hardly would. Split the data once, before anything is trained or chosen, "
            f"and calibrate on the other part."
        )


def _each_row(tables: Sequence[RiskLosses], rows: Sequence[int]) -> Iterator[FloatArray]:
    """Return the losses of one configuration and risk after the other, on the unit scale."""
    return (losses.unit_rows([row])[0] for losses in tables for row in rows)


def digest_in_any_order(losses: RiskLosses, row: int) -> str | None:
    """Compute the digest of one configuration's losses, whatever the order of the examples; None
    where another sample could well show the same ones, as 0/1 losses always could."""
    if losses.values is None or losses.summary.binary:
        return None
    patterns = patterns_of(_each_row([losses], [row]))
    if not counts_tell(patterns):
        return None
    return digest_of_bytes(b"in any order", np.sort(patterns).astype("<u8").tobytes()).hex()


def sketch_of_row(losses: RiskLosses, n_evaluated: int) -> Sketch:
    """Keep what tells the first losses of one configuration, those that were evaluated."""
    evaluated = losses.unit_rows([0])[0][:n_evaluated]
    return sketch_of(patterns_of([evaluated], by_range=False), losses.n_examples)


def check_unseen(
    calibration: CalibrationLosses,
    seen: Mapping[str, Collection[str]],
    evaluated: Mapping[str, Sequence[Sketch]],
) -> None:
    """Refuse calibration losses that an earlier study searched by, in whatever order.

    ``seen``: by risk, the digests of the validation losses of the earlier study's configurations,
    in their order and, as `digest_in_any_order` computes them, in any; ``evaluated``: by risk, what
    is kept of configurations whose evaluation was ended.
    """
    for name, digests in seen.items():
        losses = calibration.risks[name]
        in_order = any(row.hex() in digests for row in losses.row_digests)
        in_any = (digest_in_any_order(losses, i) for i in range(len(losses.row_digests)))
        if (
            (in_order and not _could_coincide(losses))
            or any(one in digests for one in in_any)
            or _is_sketched(losses, evaluated.get(name, ()))
        ):
            raise LeakageError(
                f"Calibration examples must not have been seen by the search, but the losses of "
                f"{name!r} are validation losses of the study that this one was started from, or "
                f"of a study before it. Calibrate on other examples, or leave warm_start out."
            )


def _is_sketched(losses: RiskLosses, evaluated: Sequence[Sketch]) -> bool:
    """Say whether the losses of some configuration are those that were evaluated of another one."""
    if not evaluated or losses.values is None:
        return False
    rows = _each_row([losses], range(len(losses.row_digests)))
    patterns = (patterns_of([row], by_range=False) for row in rows)
    return any(sketch.shows(fresh) for fresh in patterns for sketch in evaluated)


def check_unseen_ids(ids: TextArray | None, seen: TextArray | None, what: str) -> None:
    """Refuse examples that a search looked at, by their ids.

    ``seen``: the ids of validation examples of the search, and of what it was started from;
    ``what``: whose ids are checked, in the plural.
    """
    if ids is None or seen is None:
        return
    shared = np.intersect1d(ids, seen)
    if len(shared):
        raise LeakageError(
            f"{what} must not have been seen by the search, but {len(shared):,} are validation "
            f"examples of this search, or of the study that it was started from, or of a study "
            f"before it, such as {shown(str(shared[0]))}. Take other examples."
        )


def check_memory(validation: LossMapping, calibration: LossMapping, free: str) -> None:
    """Refuse calibration arrays that overlap the validation arrays in memory.

    The free objective, named ``free``, may be one number for each configuration, such as a price:
    that speaks of no example, and may be the same array in both.
    """
    if not isinstance(calibration, Mapping):
        return  # refused in words when it is read
    for name in validation.keys() & calibration.keys():
        one, other = validation[name], calibration[name]
        if name == free and np.ndim(one) < 2:
            continue
        if _overlap(one, other):
            raise LeakageError(
                f"Validation and calibration must not share examples, but the arrays of {name!r} "
                f"overlap in memory. Slice them without overlap: losses[:, :k] and losses[:, k:]."
            )


def _overlap(one: object, other: object) -> bool:
    """Tell whether two arrays overlap in memory."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    try:
        return np.ndim(one) > 0 and np.shares_memory(one, other, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False  # slices too intricate to compare; digests and ids still are


def check_fresh(
    judge: JudgeMapping | None,
    validation: LossMapping,
    seen: ValidationLosses,
    ids: ExampleIds,
    earlier: TextArray | None = None,
) -> None:
    """Refuse fresh examples of a judge that are labelled, or that the search looked at.

    They are told by their ids, and by scores that are the validation losses themselves.
    ``judge``: scores that were checked; ``validation``: the losses as they were given, and
    ``seen`` as they were read; ``earlier``: the ids of what the studies before looked at.
    """
    if judge is None:
        return
    fresh = read_example_ids(judge.get("ids"), "judge, ids")
    for known in (ids.validation, earlier):
        check_unseen_ids(fresh, known, "Fresh examples of a judge")
    if fresh is not None and ids.calibration is not None:
        shared = np.intersect1d(fresh, ids.calibration)
        if len(shared):
            raise LeakageError(
                f"Fresh examples of a judge are not labelled, but {len(shared):,} of them are "
                f"calibration examples, such as {shown(str(shared[0]))}. Score other examples."
            )
    for name, scores in judge["unlabelled"].items():
        own = validation.get(name)
        if own is None:
            continue  # where the order was known, there need be no losses
        one, other = (
            np.atleast_2d(number_array(each, name, missing_as_nan=True)) for each in (scores, own)
        )
        same = np.array_equal(one, other) and not _could_coincide(seen.risks[name])
        if same or _overlap(scores, own):
            raise LeakageError(
                f"Fresh examples of a judge must not have been seen by the search, but its scores "
                f"of {name!r} are the validation losses. Score examples that are neither labelled "
                f"nor for validation."
            )


def _could_coincide(losses: RiskLosses) -> bool:
    """Whether two different samples could well show these same numbers in this same order."""
    summary = losses.summary
    if summary.binary:
        parts = summary.sums if isinstance(summary, GroupSummary) else (summary,)
        count, n = (sum(p.above_zero for p in parts), sum(p.n for p in parts))
        log_orders = gammaln(n + 1) - gammaln(count + 1) - gammaln(n - count + 1)
        return bool(log_orders.max() < np.log(1e9))
    return losses.values is None or len(np.unique(losses.values[0])) < 12
