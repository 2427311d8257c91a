"""The forms of JSON that riskpilot writes, as tables, from their schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parent / "reference" / "schemas"


def table() -> str:
    """Write a section for every form: its fields, what each is, and what it says."""
    paths = sorted(path for path in SCHEMAS.glob("*.json") if path.stem != "shared")
    return "\n".join(line for path in paths for line in _section(path))


def _section(path: Path) -> Iterator[str]:
    form = json.loads(path.read_text(encoding="utf-8"))
    yield f"## {form['title']}\n\n{form['description']}"
    yield f"The schema: [`{path.name}`](schemas/{path.name}).\n"
    yield "| field | is | says |\n|---|---|---|"
    for name, value in form["properties"].items():
        yield f"| `{name}` | {_kind(value)} | {_words(value)} |"
    yield ""


def _kind(value: dict[str, Any]) -> str:
    """Name the type of a field; a field that may be absent is null."""
    if "const" in value:
        return f'`"{value["const"]}"`'
    if "anyOf" in value:
        return ", ".join(_kind(one) for one in value["anyOf"])
    if "$ref" in value:
        return _kind(_target(value)) if "#" in value["$ref"] else "object"
    kinds = value["type"]
    return kinds if isinstance(kinds, str) else ", ".join(kinds)


def _words(value: dict[str, Any]) -> str:
    """Say what a field holds, in its own words or in those of what it refers to."""
    if "const" in value:
        return "The name and the version of the form."
    return str(value.get("description") or _target(value)["description"])


def _target(value: dict[str, Any]) -> dict[str, Any]:
    """Find what a field refers to."""
    file, _, place = value["$ref"].partition("#/$defs/")
    form: dict[str, Any] = json.loads((SCHEMAS / file).read_text(encoding="utf-8"))
    found: dict[str, Any] = form["$defs"][place] if place else form
    return found
