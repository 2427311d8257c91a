"""JSON files that carry a digest of themselves: written strictly, read where they are whole."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from riskpilot.common.json_shapes import Shape, ShapeError
from riskpilot.common.kept_files import check_replaceable
from riskpilot.common.passwords import shown_safely
from riskpilot.common.size_limits import read_json_file
from riskpilot.common.strict_json import digest_of, parse
from riskpilot.common.whole_files import reason_of, write_whole
from riskpilot.errors import CertificateError, RiskpilotError, raise_alone, shown


def signed(data: Mapping[str, Any]) -> str:
    """Write plain JSON values with their digest, for people to read."""
    return json.dumps({**data, "digest": digest_of(data)}, indent=2, allow_nan=False)


def read_signed(
    text: str,
    kind: str,
    schema: str,
    names: Collection[str],
    form: Shape,
    absent: Collection[str] = (),
) -> dict[str, Any]:
    """Read what `signed` wrote: an object of these names whose digest fits.

    ``kind``: what it is called in messages; ``schema``: what its field of that name must say;
    ``form``: what its fields must be; ``absent``: which of the names may be absent.
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
    family = schema.partition("/")[0]
    if not str(data["schema"]).startswith(f"{family}/"):
        raise CertificateError(
            f"A {kind} was asked for, but this file has the schema {shown(data['schema'])}. "
            f"Give the file that {kind}.save() wrote."
        )
    if data["schema"] != schema:
        raise CertificateError(
            f"This {kind} has the schema {shown(data['schema'])}, and this version reads "
            f"{schema!r}. Verify it with the version it names: {shown(data.get('versions'))}."
        )
    stored = data.pop("digest", None)
    odd = sorted((data.keys() ^ set(names)) - (set(absent) - data.keys()))
    if odd:
        raise CertificateError(
            f"The {kind} is incomplete or has been edited: see {shown(odd)[1:-1]}. "
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


def save(path: str | Path, text: str, kind: str, renewed: str | None = None) -> Path:
    """Write a text to a file, whole or not at all, and return where it is.

    ``renewed``: the kind of file whose place it may take, of those that cannot be made again.
    """
    check_replaceable(path, kind, CertificateError, renewed)
    try:
        return write_whole(path, text + "\n")
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            CertificateError(
                f"The {kind} cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def load(path: str | Path, kind: str) -> str:
    """Read a text from a file, if it is not too large."""
    try:
        return read_json_file(path, f"The {kind}", CertificateError)
    except RiskpilotError:
        raise
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            CertificateError(
                f"The {kind} {shown_safely(path)} cannot be read: {reason_of(error)}. "
                f"Give the path of a file that {kind}.save() wrote."
            )
        )
