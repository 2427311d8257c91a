"""Data that ships with riskpilot. Needs numpy alone, so that training machines can use it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_ADULT = Path(__file__).parent / "adult.npz"
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
    """

    features: npt.NDArray[np.float32]
    """Shape (n, d): six numbers as they are (not scaled), then 0/1 columns for each category."""
    feature_names: tuple[str, ...]
    """The d names, ``"age"`` or ``"race_White"``; sex is among them."""
    label: npt.NDArray[np.bool_]
    """Shape (n,): more than 50,000 dollars."""
    male: npt.NDArray[np.bool_]
    """Shape (n,): the sensitive attribute."""


def load_adult() -> Adult:
    """The bundled copy of Adult (UCI, CC BY 4.0; see the README beside the file).

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
