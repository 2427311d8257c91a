"""Data that ships with riskpilot. Needs numpy alone, so that training machines can use it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_ADULT = Path(__file__).parent / "adult.npz"
_CASCADE = Path(__file__).parent / "cascade.npz"
_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_CATEGORICAL = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "native-country",
)


@dataclass(frozen=True)
class Adult:
    """The complete rows of UCI Adult: does a person earn more than 50,000 dollars a year?

    Rows are in the order of the source, which nobody promises to be random: split them by a
    permutation drawn from a seed.

    Attributes
    ----------
    features : array of shape (n, d)
        Six numbers as they are (not scaled), then 0/1 columns for each category.
    feature_names : tuple of str
        The d names, ``"age"`` or ``"race_White"``; sex is among them.
    label : array of bool, shape (n,)
        Whether a person earns more than 50,000 dollars.
    male : array of bool, shape (n,)
        The sensitive attribute.
    """

    features: npt.NDArray[np.float32]
    feature_names: tuple[str, ...]
    label: npt.NDArray[np.bool_]
    male: npt.NDArray[np.bool_]


def load_adult() -> Adult:
    """Load the bundled copy of Adult (UCI, CC BY 4.0; see the README beside the file).

    Returns
    -------
    Adult
        Features, labels and the sensitive attribute of 45,222 people.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.features.shape, round(float(adult.label.mean()), 4)
    ((45222, 104), 0.2478)
    """
    with np.load(_ADULT, allow_pickle=False) as archive:
        columns = [archive[name].astype(np.float32)[:, np.newaxis] for name in _NUMERIC]
        names = list(_NUMERIC)
        for name in _CATEGORICAL:
            categories = archive[f"{name}_categories"]
            columns.append(np.eye(len(categories), dtype=np.float32)[archive[name]])
            names += [f"{name}_{category}" for category in categories]
        label, male = archive["label"], archive["male"]
    columns.append(np.stack([~male, male], axis=1).astype(np.float32))
    names += ["sex_Female", "sex_Male"]
    return Adult(np.concatenate(columns, axis=1), tuple(names), label, male)


@dataclass(frozen=True)
class Cascade:
    """What two models say of 41,342 news texts of AG News that neither has seen, in random order.

    The small model is linear in the words of a text; the large one is an encoder of 12 layers.

    Attributes
    ----------
    confidence : array of shape (n,)
        The chance that the small model gives its own answer.
    small_right, large_right : array of bool, shape (n,)
        Whether a model names the right class of four.
    judged_wrong : array of shape (n,)
        The chance that the large model gives to all other answers than the small one's.
    """

    confidence: npt.NDArray[np.float64]
    small_right: npt.NDArray[np.bool_]
    large_right: npt.NDArray[np.bool_]
    judged_wrong: npt.NDArray[np.float64]


def load_cascade() -> Cascade:
    """Load the bundled answers of a small and a large model on AG News.

    Returns
    -------
    Cascade
        Confidences, right answers, and what the large model thinks of the small one's.

    Examples
    --------
    >>> cascade = load_cascade()
    >>> round(float(cascade.small_right.mean()), 3), round(float(cascade.large_right.mean()), 3)
    (0.853, 0.936)
    """
    with np.load(_CASCADE, allow_pickle=False) as archive:
        n = int(archive["n"])
        right = {
            name: np.unpackbits(archive[name], count=n).astype(np.bool_)
            for name in ("small_right", "large_right")
        }
        return Cascade(
            archive["confidence"].astype(np.float64),
            right["small_right"],
            right["large_right"],
            archive["judged_wrong"].astype(np.float64),
        )
