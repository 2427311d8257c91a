"""The rooms of the package, read from the import contract and from what each module says it is for.

``python -m docs.rooms`` writes them into docs/architecture.md.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "riskpilot"
PAGE = ROOT / "docs" / "architecture.md"
_BEGIN, _END = "<!-- rooms: begin (python -m docs.rooms) -->", "<!-- rooms: end -->"


@dataclass(frozen=True)
class Room:
    """A part of the package with its modules; a single file is a room without modules.

    ``purpose``: the first sentence of its docstring; ``modules``: dotted names inside the room and
    their first sentences; ``knows_optuna``: whether the contract allows it to import Optuna.
    """

    name: str
    purpose: str
    modules: tuple[tuple[str, str], ...]
    knows_optuna: bool


def layers() -> list[list[Room]]:
    """Read the layers of the import contract in pyproject.toml, from the top down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    core = next(c for c in contracts if "optuna" in c.get("forbidden_modules", []))
    without_optuna = {name.removeprefix("riskpilot.") for name in core["source_modules"]}
    return [
        [_room(name.strip(" ()"), name.strip(" ()") not in without_optuna) for name in row]
        for row in (layer.split("|") for layer in rows)
    ]


def _room(name: str, knows_optuna: bool) -> Room:
    folder = PACKAGE / name
    if not folder.is_dir():
        return Room(name, _first_sentence(PACKAGE / f"{name}.py"), (), knows_optuna)
    modules = tuple(
        (_dotted(path.relative_to(folder)), _first_sentence(path))
        for path in sorted(folder.rglob("*.py"))
        if path != folder / "__init__.py"
    )
    return Room(name, _first_sentence(folder / "__init__.py"), modules, knows_optuna)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _first_sentence(path: Path) -> str:
    """Read what a module is for; every module must say it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise ValueError(f"{path} opens with no sentence that says what it is for. Write one.")
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".") + "."


def table() -> str:
    """Write every room and every module as Markdown, in the order of the layers."""
    return "\n".join(line for layer in layers() for room in layer for line in _section(room))


def _section(room: Room) -> Iterator[str]:
    yield f"### {room.name}\n\n{room.purpose}\n"
    if room.modules:
        yield "| module | what it is for |\n|---|---|"
        for name, purpose in room.modules:
            yield f"| `{name}` | {purpose} |"
        yield ""


def page() -> str:
    """Put the rooms between the two comments of the page and leave the rest as it is."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    return f"{before}{_BEGIN}\n\n{table()}\n{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
