"""JSON files that carry a digest of themselves: written strictly, read where they are whole."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from riskpilot.common.json_shapes import Shape, ShapeError
from riskpilot.common.strict_json import digest_of, parse
from riskpilot.errors import CertificateError, shown


def signed(data: Mapping[str, Any]) -> str:
    """Write plain JSON values with their digest, for people to read."""
    return json.dumps({**data, "digest": digest_of(data)}, indent=2, allow_nan=False)


def read_signed(
    text: str, kind: str, schema: str, names: Collection[str], form: Shape
) -> dict[str, Any]:
    """Read what `signed` wrote: an object of these names whose digest fits.

    ``kind``: what it is called in messages; ``schema``: what its field of that name must say;
    ``form``: what its fields must be.
    """
    try:
        data = parse(text)
    except (TypeError, ValueError) as error:
        raise CertificateError(
            f"A {kind} is a JSON file, but this is not JSON: {error}. "
            f"Give the file that {kind}.save() wrote."
        ) from error
    if not isinstance(data, dict) or "schema" not in data:
        raise CertificateError(
            f"This JSON is not a riskpilot {kind}: it has no schema. "
            f"Give the file that {kind}.save() wrote."
        )
    if data["schema"] != schema:
        raise CertificateError(
            f"This {kind} has the schema {data['schema']!r}, and this version reads {schema!r}. "
            f"Verify it with the version it names: {data.get('versions')}."
        )
    stored = data.pop("digest", None)
    odd = sorted(data.keys() ^ set(names))
    if odd:
        raise CertificateError(
            f"The {kind} is incomplete or has been edited: see {', '.join(odd)}. "
            f"Take an untouched copy."
        )
    if stored != digest_of(data):
        raise CertificateError(
            f"The {kind} was changed after it was written: its digest does not match its "
            f"content. Take an untouched copy."
        )
    check_form(data, kind, form)
    return data


def check_form(data: Mapping[str, Any], kind: str, form: Shape) -> None:
    """Raise one sentence where a field is not what it must be."""
    try:
        form(data, "")
    except ShapeError as error:
        raise CertificateError(
            f"The {kind} is malformed: {error}. Take an untouched copy."
        ) from None


def save(path: str | Path, text: str, kind: str) -> Path:
    """Write a text to a file and return where it is."""
    try:
        place = Path(path)
        place.write_text(text + "\n", encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        raise CertificateError(
            f"The {kind} cannot be written to {_named(path)}: {error}. "
            f"Check that the folder exists and can be written."
        ) from error
    return place


def load(path: str | Path, kind: str) -> str:
    """Read a text from a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        raise CertificateError(
            f"The {kind} {_named(path)} cannot be read: {error}. "
            f"Give the path of a file that {kind}.save() wrote."
        ) from error


def _named(path: object) -> str:
    """Write a path for an error message."""
    return shown(str(path) if isinstance(path, Path) else path)
