"""The points of a figure: their values on validation data, their labels, and their numbers."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import visible
from riskpilot.guarantee import Background, config_in_words
from riskpilot.losses import ValidationLosses

# Pixels: the width of a digit and the height of a line of small letters, how far from the middle of
# a point its number begins.
_DIGIT, _LINE, _AWAY = 7.0, 12.0, 5.0
# Places in the words of plotly, and the directions in which they lie: right and up are positive.
_PLACES = {
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
    "top center": (0, 1),
    "bottom center": (0, -1),
}


def validation_points(validation: ValidationLosses) -> FloatArray:
    """Compute where configurations lie on validation data.

    Parameters
    ----------
    validation : ValidationLosses
        The validation losses of n configurations, ``selection.validation``.

    Returns
    -------
    array of shape (n, c + 1)
        The values of the c risks, in the units of their losses, then the free objective.
    """
    return validation.objectives


def escaped(text: object) -> str:
    """Escape a user's words for a figure, where plotly would read some of them as markup."""
    return html.escape(visible(str(text)), quote=False)


def config_label(
    configs: Sequence[Mapping[str, Any]], row: int, before: str, longest: int = 60
) -> str:
    """Write a configuration after ``before``; an empty text where configurations are not known."""
    return f"{before}{escaped(config_in_words(configs[row], longest))}" if len(configs) else ""


def hover_labels(background: Background, n: int) -> list[str]:
    """Write the trial number and the configuration of each of n points."""
    numbers = background.numbers if len(background.numbers) else range(n)
    return [
        f"<b>{numbers[row]}</b>{config_label(background.configs, row, '<br>')}" for row in range(n)
    ]


def kept(labels: Sequence[str], mask: BoolArray) -> list[str]:
    """Pick the labels of the points that a mask keeps."""
    return [label for label, keep in zip(labels, mask, strict=True) if keep]


def places_of_numbers(
    points: FloatArray, rows: Mapping[int, int], size: tuple[float, float], reach: FloatArray
) -> dict[int, str]:
    """Find a place for each number beside its point; where there is no room it is left out.

    ``points``: where all points lie, as shares of the width and height of a panel, shape (n, 2);
    ``rows``: the point of each number, the most important numbers first; ``size``: the width and
    height of the panel in pixels; ``reach``: how far each point reaches, in pixels, (n,).
    """
    middle = points * np.array(size)
    marks = np.hstack([middle - reach[:, None], middle + reach[:, None]])
    numbers = np.empty((0, 4))
    found: dict[int, str] = {}
    for number, row in rows.items():
        is_apart = np.abs(middle - middle[row]).max(axis=1) > reach
        for place, direction in _PLACES.items():
            box = _box(middle[row], direction, _DIGIT * len(str(number)))
            if _is_free(box, marks[is_apart]) and _is_free(box, numbers):
                found[number] = place
                numbers = np.vstack([numbers, box])
                break
    return found


def _box(middle: FloatArray, direction: tuple[int, int], width: float) -> FloatArray:
    """Compute what a number takes beside a point: left, bottom, right and top, shape (4,)."""
    half = np.array([width, _LINE]) / 2
    centre = middle + np.array(direction) * (_AWAY + half)
    return np.concatenate([centre - half, centre + half])


def _is_free(box: FloatArray, others: FloatArray) -> bool:
    """Tell whether a box overlaps with none of others, shape (n, 4)."""
    meets = (others[:, :2] < box[2:]) & (box[:2] < others[:, 2:])
    return not bool(meets.all(axis=1).any())
