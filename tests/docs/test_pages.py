"""The pages against the repository: named tests exist, and pictures are as they are drawn."""

import ast
import importlib.util
import re

import pytest
from pages import PAGES, ROOT, name_of


def test_pitfalls_page_names_every_pitfall_test_and_no_other():
    page = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    source = (ROOT / "tests" / "guarantees" / "test_pitfalls.py").read_text(encoding="utf-8")
    tests = [n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    assert re.findall(r"`(test_\d\d_\w+)`", page) == [t for t in tests if t.startswith("test_")]


def test_pictures_are_as_the_script_draws_them():
    path = ROOT / "docs" / "pictures.py"
    spec = importlib.util.spec_from_file_location("pictures", path)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    for name, draw in pictures.PICTURES.items():
        stored = (pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == draw().svg(), f"{name}.svg is out of date: python docs/pictures.py"


def test_reference_has_every_public_name():
    import riskpilot

    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    errors = {name for name in riskpilot.__all__ if name.endswith("Error")}
    missing = (
        set(riskpilot.__all__)
        - errors
        - set(re.findall(r"::: riskpilot\.(?:\w+\.)*(\w+)$", page, re.M))
    )
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_shows_no_absolute_path(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.:/])/(work|home|root|Users)/", text)
