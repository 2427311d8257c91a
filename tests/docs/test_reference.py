"""The reference: every public name is on a page, with every parameter and what it returns."""

import importlib
import inspect
import re
import runpy
from dataclasses import is_dataclass
from functools import cache
from types import FunctionType

import pytest
import yaml
from pages import ROOT

import riskpilot

PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
HOOKS = runpy.run_path(str(ROOT / "docs" / "mkdocs_hooks.py"))
_ENTRY = re.compile(r"^::: (?P<path>[\w.]+)$(?:\n    options: (?P<options>\{.*\})$)?", re.M)
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", re.M | re.S)
_LABEL = re.compile(r"\b(?:alg|eq|thm|lem|sec|fig|tab|app):\w")


@cache
def entries() -> dict[str, tuple[str, ...]]:
    """The dotted names that the pages show, and the members that they show of each."""
    found = {}
    for page in PAGES:
        text = HOOKS["on_page_markdown"](page.read_text(encoding="utf-8"))
        for entry in _ENTRY.finditer(text):
            options = yaml.safe_load(entry["options"] or "{}")
            found[entry["path"]] = tuple(options.get("members", ()))
    return found


def public() -> dict[str, object]:
    """Every public name, by the path under which it is imported."""
    paths = [f"riskpilot.{name}" for name in riskpilot.__all__]
    for module in ("plots", "sklearn", "tables"):
        exported = importlib.import_module(f"riskpilot.{module}").__all__
        paths += [f"riskpilot.{module}.{name}" for name in exported]
    return {path: resolve(path) for path in [*paths, "riskpilot.study.work"]}


def resolve(path: str) -> object:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def documented() -> dict[str, object]:
    """Public classes and functions, and the members of classes that the pages show."""
    found = {
        path: thing
        for path, thing in public().items()
        if isinstance(thing, type | FunctionType)
        and not (isinstance(thing, type) and issubclass(thing, Exception))
    }
    for path, members in entries().items():
        found |= {f"{path}.{member}": member_of(resolve(path), member) for member in members}
    return found


def member_of(owner: object, name: str) -> object:
    member = inspect.getattr_static(owner, name)
    return member if isinstance(member, property) else getattr(owner, name)


def sections(thing: object) -> dict[str, str]:
    return dict(_SECTION.findall(inspect.getdoc(thing) or ""))


def described(thing: object) -> set[str]:
    """The names that the sections of parameters and attributes describe."""
    known = sections(thing)
    text = known.get("Parameters", "") + known.get("Attributes", "")
    heads = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", text, re.M)
    return {name.lstrip("*") for head in heads for name in head.split(", ")}


def parameters(thing: object) -> list[str]:
    if isinstance(thing, property):
        return []
    own_constructor = (
        not isinstance(thing, type) or is_dataclass(thing) or "__init__" in vars(thing)
    )
    return [name for name in inspect.signature(thing).parameters if name != "self"] * (
        own_constructor
    )


def test_every_public_name_is_on_a_page_of_the_reference():
    shown = {id(resolve(path)) for path in entries()}
    assert not [path for path, thing in public().items() if id(thing) not in shown]


def test_the_pages_show_nothing_twice():
    shown = [id(resolve(path)) for path in entries()]
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("path", documented())
def test_a_public_name_describes_its_parameters_and_what_it_returns(path):
    thing = documented()[path]
    known = sections(thing)
    missing = [name for name in parameters(thing) if name not in described(thing)]
    function = not isinstance(thing, type | property)
    returns = inspect.signature(thing).return_annotation if function else None
    if returns not in (None, "None") and not {"Returns", "Yields"} & known.keys():
        missing.append("Returns")
    assert not missing, f"{path}: its docstring does not describe {', '.join(missing)}"


@pytest.mark.parametrize("path", documented())
def test_a_public_name_does_not_describe_what_it_does_not_take(path):
    thing = documented()[path]
    if not isinstance(thing, type):
        assert described(thing) <= set(parameters(thing))


@pytest.mark.parametrize("path", {**documented(), **dict.fromkeys(entries())})
def test_a_docstring_reads_well_on_a_page(path):
    """Examples stand in their section, and the paper's labels in comments."""
    thing = documented().get(path) or resolve(path)
    text = inspect.getdoc(thing) or ""
    assert text, f"{path} has no docstring"
    assert not _LABEL.search(text), f"{path} shows a raw label of the paper"
    before = text.split("Examples\n--------")[0]
    assert ">>> " not in before, f"{path}: examples go into a section Examples"
