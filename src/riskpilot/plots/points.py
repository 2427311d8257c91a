"""The points of a figure: their values on validation data, and their labels."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.errors import visible
from riskpilot.guarantee import Background, config_in_words
from riskpilot.losses import ValidationLosses


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
