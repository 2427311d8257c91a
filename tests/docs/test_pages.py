"""The pages against the repository: named tests exist, and pictures are as they are drawn."""

import ast
import csv
import json
import re
import tomllib

import pytest
from pages import PAGES, ROOT, blocks_of, name_of

from docs import pictures, rooms
from experiments import edges


def test_pitfalls_page_names_every_pitfall_test_and_no_other():
    page = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    source = (ROOT / "tests" / "guarantees" / "test_pitfalls.py").read_text(encoding="utf-8")
    tests = [n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    assert re.findall(r"`(test_\d\d_\w+)`", page) == [t for t in tests if t.startswith("test_")]


def test_the_readme_says_what_every_extra_is_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Install\n")[1]
    cells = re.findall(r"^\| (`.*?`) \|", section.split("\n## ")[0], re.M)
    explained = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert explained == set(project["optional-dependencies"])
    needed = next(line for line in project["dependencies"] if line.startswith("optuna"))
    assert f"`{needed}`" in section


def test_the_readme_counts_wins_and_losses_as_the_claims_do():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    with (ROOT / "experiments/results/claims.csv").open(encoding="utf-8") as file:
        figures = {row["claim"]: row["figure"] for row in csv.DictReader(file)}
    against_single = figures["The default is superior in almost all cells"].split(";")[1]
    wins, ties, losses = map(int, re.findall(r"\d+", against_single))
    assert losses == 0
    assert f"in {wins} of {wins + ties} comparisons and a larger one in none" in readme
    against_paper = figures["Default at least ties the paper's preset, same N and p-values"]
    assert against_paper.split(", ")[2] == "1 loss"
    wins, ties = map(int, re.findall(r"\d+", against_paper)[:2])
    assert f"it won at {wins} limits, tied at {ties} and lost at one" in readme


@pytest.mark.parametrize(
    ("page", "blocks"),
    [("thresholds", 2), ("finished-studies", 1), ("tables", 1), ("ask-and-tell", 2)],
)
def test_the_jobs_take_as_many_lines_as_the_start_page_says(page, blocks):
    first = [b for b in blocks_of(ROOT / "docs/guides" / f"{page}.md") if b.language != "setup"]
    lines = [line for block in first[:blocks] for line in block.code.splitlines() if line.strip()]
    table = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert re.search(rf"\| {len(lines)} \| \[[^]]+\]\(guides/{page}\.md\)", table)


def test_figures_of_the_edges_are_those_of_the_scenes():
    stored = json.loads(edges.OUT.read_text(encoding="utf-8"))
    for kind, scenes in edges.SCENES.items():
        rows = [(row["mistake"], row["before"]) for row in stored[kind]]
        expected = [scene[:2] for scene in scenes]
        assert rows == expected, "edges.json is out of date: python -m experiments.edges"


def test_pictures_are_as_the_script_draws_them():
    for name, draw in pictures.PICTURES.items():
        stored = (pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == draw().svg(), f"{name}.svg is out of date: python -m docs.pictures"


def test_the_page_of_the_architecture_is_as_the_script_writes_it():
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page(), (
        "docs/architecture.md is out of date: python -m docs.rooms"
    )


def test_the_page_of_the_architecture_names_every_module():
    page = rooms.PAGE.read_text(encoding="utf-8")
    for path in sorted(rooms.PACKAGE.rglob("*.py")):
        room, *inner = path.relative_to(rooms.PACKAGE).with_suffix("").parts
        name = ".".join(part for part in inner if part != "__init__")
        if room.startswith("__"):
            continue  # the package itself, and what starts it
        section = page.split(f"### {room}\n")[1].split("\n### ")[0]
        assert not name or f"| `{name}` |" in section, f"{room}.{name} is not on the page"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_shows_no_absolute_path(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.:/])/(work|home|root|Users)/", text)
