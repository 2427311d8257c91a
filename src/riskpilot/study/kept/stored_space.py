"""A search space as plain JSON, as certificates keep it."""

import json
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution

from riskpilot.common import parse
from riskpilot.errors import StudyError


def space_as_json(space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Write a search space as plain JSON; `space_from_json` reads it back."""
    try:
        return {name: parse(distribution_to_json(dist)) for name, dist in sorted(space.items())}
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"A certificate keeps the search space as JSON, but it cannot be written: {error}. "
            f"Give finite numbers, texts, truth values or None as choices."
        ) from None


def space_from_json(space: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """Read what `space_as_json` wrote."""
    return {
        name: json_to_distribution(json.dumps(stored)) for name, stored in sorted(space.items())
    }
