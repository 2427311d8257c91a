"""What stands beside losses, one for each example: groups, labels, weights, a reference."""

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from riskpilot.common import exact, how_many
from riskpilot.common.arrays import Array, FloatArray, Places
from riskpilot.errors import LossError
from riskpilot.losses.intake import in_double, number_array, outside
from riskpilot.losses.texts import text_array
from riskpilot.problem import Risk
from riskpilot.statistics import Grouped, Groups, name_in_words


def digest_of_groups(groups: Groups) -> bytes:
    """Compute the digest of the names of groups and of who belongs to which."""
    parts = [(name,) if isinstance(name, str) else name for name in groups.names]
    texts = [b"%d" % len(part) for part in parts] + [t.encode() for p in parts for t in p]
    return digest_of_bytes(*texts, groups.codes.astype("<i8").tobytes())


def digest_of_bytes(*parts: bytes) -> bytes:
    """Compute the SHA-256 digest of parts, each with its length: other parts never look alike."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def digest_of_numbers(values: npt.ArrayLike) -> bytes:
    """Compute the SHA-256 digest of numbers in double precision, in their order."""
    numbers = np.array(values, dtype="<f8") + 0.0  # the zero below zero is zero
    numbers[np.isnan(numbers)] = np.nan  # one bit pattern for every NaN
    return hashlib.sha256(numbers.tobytes()).digest()


def read_groups(risk: Risk, beside: Mapping[str, npt.ArrayLike], m: int, split: str) -> Groups:
    """The groups of one split, checked. ``beside``: by name, shape (m,), or equal rows of it."""
    statistic = risk.statistic
    assert isinstance(statistic, Grouped)
    where = f"{split}: the groups {risk.groups!r} of {risk.name!r}"
    known, codes = read_texts(risk, beside, risk.groups, "groups", m, split)
    wanted = statistic.groups or known
    for name in wanted:
        if name not in known:
            raise LossError(
                f"{where}: group {name!r} has no example; there are {_listed(known)}. "
                f"A group without examples cannot be judged: bring some, or leave it out."
            )
    if len(wanted) < statistic.least_groups:
        raise LossError(
            f"{where}: a comparison needs two groups, but all examples are of {known[0]!r}. "
            f"Check the column that the groups were taken from."
        )
    places = {name: place for place, name in enumerate(wanted)}
    place = np.array([places.get(name, -1) for name in known])
    groups = Groups(wanted, place[codes])
    if statistic.label_name is not None:
        labels = read_texts(risk, beside, statistic.label_name, "labels", m, split)
        return _parted(groups, *labels, where)
    return groups


def read_texts(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], name: str, what: str, m: int, split: str
) -> tuple[tuple[str, ...], Places]:
    """The different texts of an array beside the losses, and which of them each example has."""
    where = f"{split}: the {what} {name!r} of {risk.name!r}"
    given = _given(risk, beside, name, what[:-1], where, split)
    texts = one_per_example(text_array(given, where), what[:-1], m, where)
    found, codes = np.unique(texts, return_inverse=True)
    names = tuple(map(str, found))
    for name in names:
        if not _is_unicode(name):
            raise LossError(
                f"{where} must be texts that can be written, but {name!r} is no Unicode. Decode it "
                f"with the encoding that it was written in."
            )
    return names, codes.reshape(-1)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (
        f" and {how_many(len(names) - 20, 'other')}" if len(names) > 20 else ""
    )


def _is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8, unlike one with half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parted(groups: Groups, labels: tuple[str, ...], codes: Places, where: str) -> Groups:
    """Every group parted by label: each part is a group of its own, and all must have examples."""
    unsorted = [(str(group), label) for group in groups.names for label in labels]
    names = tuple(sorted(unsorted))  # as they come back from a record
    places = {name: place for place, name in enumerate(names)}
    place = np.array([places[name] for name in unsorted])
    joint = np.where(groups.codes < 0, -1, place[groups.codes * len(labels) + codes])
    sizes = np.bincount(joint[joint >= 0], minlength=len(names))
    if (sizes == 0).any():
        empty = names[int(np.argmin(sizes))]
        raise LossError(
            f"{where}: group {name_in_words(empty)} has no example. Groups are compared within "
            f"each label: bring some examples, or leave the group out."
        )
    return Groups(names, joint.astype(np.int64))


def read_numbers(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], name: str, what: str, m: int, split: str
) -> Array:
    """Numbers that stand beside the losses, in the type that they have: shape (m,), or a table of
    equal rows."""
    where = f"{split}: the {what} {name!r} of {risk.name!r}"
    given = _given(risk, beside, name, "number", where, split)
    return one_per_example(number_array(given, where), "number", m, where)


def _given(
    risk: Risk,
    beside: Mapping[str, npt.ArrayLike],
    name: str,
    each: str,
    where: str,
    split: str,
) -> npt.ArrayLike:
    """What stands beside the losses under a name. ``each``: what one entry of it is."""
    values = beside.get(name)
    if values is None:
        raise LossError(
            f"{where} are missing. Pass one {each} per example beside the losses: "
            f'{split}={{"{risk.name}": losses, "{name}": array}}.'
        )
    return values


def one_per_example(entries: Array, each: str, m: int, where: str) -> Array:
    """One entry for each example, shape (m,), from such an array or from a table of equal rows."""
    if entries.ndim == 2 and len(entries):
        same = np.broadcast_to(entries[0], entries.shape)
        if np.array_equal(entries, same, equal_nan=entries.dtype.kind == "f"):
            entries = entries[0]
    if entries.shape != (m,):
        raise LossError(
            f"{where} must be one {each} per example, shape ({m},), but their shape is "
            f"{entries.shape}. They are the same for every configuration."
        )
    return entries


def read_weights(
    risk: Risk, beside: Mapping[str, npt.ArrayLike], m: int, split: str
) -> FloatArray | None:
    """The weights of the examples as shares of the largest that there can be; shape (m,)."""
    largest = risk.largest_weight
    if risk.weights is None or largest is None:
        return None
    weights = read_numbers(risk, beside, risk.weights, "weights", m, split)
    bad = weights[outside(weights, 0.0, largest) | np.isnan(weights)]
    if bad.size:
        raise LossError(
            f"{split}: the weights {risk.weights!r} of {risk.name!r} must lie in "
            f"[0, {largest:g}], the bound that was declared, but one is {exact(float(bad[0]))}. "
            f"Declare a bound that holds for all examples there can be: a bound read off the "
            f"sample proves nothing."
        )
    return np.asarray(in_double(weights, largest) / largest)
