"""What publishing needs: workflows that name what there is, and versions that are pinned."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from riskpilot.cli.app import app
from tools import constraints, release_check

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
MADE_BY_TARGETS = {"dist/", "site"}


def steps_of(path: Path) -> list[dict]:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_there_are_workflows_for_tests_docs_and_releases() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_of_the_makefile_and_nothing_else(path: Path) -> None:
    commands = [step["run"].split() for step in steps_of(path) if "run" in step]
    assert commands
    for program, target, *_ in commands:
        assert program == "make"
        assert target in TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_files_that_there_are(path: Path) -> None:
    for step in steps_of(path):
        given = step.get("with", {})
        for name in (given.get("cache-dependency-path"), given.get("path")):
            assert name is None or name in MADE_BY_TARGETS or (ROOT / name).exists(), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_unless_a_job_needs_more(path: Path) -> None:
    assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_the_core_is_tested_on_every_python_that_is_named_and_on_three_systems() -> None:
    jobs = yaml.safe_load(text_of(".github/workflows/test.yml"))["jobs"]
    matrix = jobs["core"]["strategy"]["matrix"]
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text_of("pyproject.toml"))
    assert set(named) <= set(matrix["python"])
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_folders_that_the_makefile_names_are_there() -> None:
    core = re.search(r"^CORE := (.*)$", text_of("Makefile"), re.MULTILINE)
    assert core is not None
    assert all((ROOT / folder).is_dir() for folder in core[1].split())


def imported(path: Path, known: set[str]) -> set[str]:
    """Add what a file cannot be loaded without, and what those of it need that are our own."""
    for statement in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.With):
            continue
        for node in ast.walk(statement):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            for name in {*names} - known:
                known.add(name)
                place = ROOT / "src" / name.replace(".", "/")
                for file in (place.with_suffix(".py"), place / "__init__.py"):
                    if file.exists():
                        imported(file, known)
    return known


def test_the_tests_of_the_core_need_no_extra_but_that_of_tests() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    there = {line.partition("==")[0] for line in constraints.pinned(map(Requirement, lines))}
    packages = packages_distributions()
    core = re.search(r"^CORE := (.*)$", text_of("Makefile"), re.MULTILINE)
    assert core is not None
    known: set[str] = set()
    for file in (file for folder in core[1].split() for file in (ROOT / folder).rglob("*.py")):
        before = {*known}
        for name in imported(file, known) - before:
            owners = {canonicalize_name(one) for one in packages.get(name.partition(".")[0], ())}
            assert not owners or owners & {*there, "riskpilot"}, f"{file.name} imports {name}"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_has_a_name_and_questions(path: Path) -> None:
    form = yaml.safe_load(path.read_text("utf-8"))
    assert path.stem == "config" or {"name", "description", "body"} <= form.keys()


def test_hooks_before_commits_are_tools_that_the_tests_install() -> None:
    (repository,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    for hook in repository["hooks"]:
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/")
        assert (Path(sys.executable).parent / Path(program).name).exists()


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["version"] == tomllib.loads(text_of("pyproject.toml"))["project"]["version"]


def test_the_address_for_reports_is_left_to_fill_in_in_one_place() -> None:
    pages = (
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "README.md",
        "docs/policies.md",
    )
    assert [name for name in pages if "to be filled in" in text_of(name)] == ["SECURITY.md"]


def pins() -> dict[str, str]:
    lines = [line for line in text_of("constraints.txt").splitlines() if line[0] != "#"]
    return dict(line.split("==") for line in lines)


def test_constraints_pin_all_that_is_asked_for_in_versions_that_every_machine_has() -> None:
    asked = [one for one in constraints.requirements() if not one.marker or one.marker.evaluate()]
    assert {canonicalize_name(one.name) for one in asked} <= pins().keys()
    assert all(re.fullmatch(r"[\w.]+", version) for version in pins().values())
    assert "riskpilot" not in pins()
    assert pins()["torch"] == "2.13.0"


def test_constraints_follow_what_requirements_pull_with_their_extras() -> None:
    names = {line.partition("==")[0] for line in constraints.pinned([Requirement("optuna")])}
    assert {"optuna", "sqlalchemy", "numpy"} <= names
    assert "torch" not in names
    plain = constraints.pinned([Requirement("dask")])
    more = constraints.pinned([Requirement("dask"), Requirement("dask[distributed]")])
    assert not any(line.startswith("distributed==") for line in plain)
    assert any(line.startswith("distributed==") for line in more)


def test_the_lowest_versions_are_those_of_the_package() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert len(constraints.lowest()) == len(project["dependencies"])
    assert "numpy~=2.0.0" in constraints.lowest()


def test_a_release_is_tried_with_every_command() -> None:
    release_check.check_names(list(typer.main.get_command(app).commands))
    with pytest.raises(release_check.ReleaseError, match=r"differ in verify\."):
        release_check.check_names([name for name in release_check.CALLS if name != "verify"])


def test_a_release_is_tried_with_every_example() -> None:
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert release_check.EXTRAS_OF_EXAMPLES.keys() <= names


def test_a_release_is_complete_in_an_empty_environment(capfd: pytest.CaptureFixture[str]) -> None:
    ended = release_check.main(["--fast"])
    assert ended == 0, capfd.readouterr().err


def test_a_fast_check_installs_the_wheel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, str]] = []

    def build(folder: Path) -> None:
        folder.mkdir()
        for name in ("a.whl", "a.tar.gz"):
            (folder / name).touch()

    monkeypatch.setattr(release_check, "build", build)
    monkeypatch.setattr(release_check, "check_same", lambda *_: None)
    monkeypatch.setattr(
        release_check, "check", lambda package, extras, _: tried.append((package.name, extras))
    )
    assert release_check.main(["--fast"]) == 0
    assert tried == [("a.whl", "")]
    assert release_check.main([]) == 0
    assert tried[1:] == [("a.whl", ""), ("a.tar.gz", "[bench,mlflow]")]


def test_a_file_that_the_sdist_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def wheel(folder: Path, files: dict[str, str]) -> Path:
        folder.mkdir()
        with zipfile.ZipFile(folder / "a.whl", "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return folder / "a.whl"

    first = wheel(tmp_path / "dist", {"same.py": "1", "changed.py": "1", "lost.py": "1"})
    (tmp_path / "a-0.1").mkdir()
    with tarfile.open(tmp_path / "a.tar.gz", "w") as archive:
        archive.add(tmp_path / "a-0.1", "a-0.1")
    second = {"same.py": "1", "changed.py": "2"}
    monkeypatch.setattr(release_check, "build", lambda folder, *_: wheel(folder, second))
    with pytest.raises(release_check.ReleaseError, match=r"differ in changed\.py, lost\.py\."):
        release_check.check_same(first, tmp_path / "a.tar.gz", tmp_path)


def test_a_registry_that_cannot_be_reached_is_said_in_the_first_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(release_check.ReleaseError, match=r"^optuna cannot be .*a network\?"):
        release_check.install("optuna", tmp_path)


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("exit 127", "needs Python 3.11 or newer; python3 is older"),
        ('case "$*" in *venv*) exit 1;; *) exit 0;; esac', "has no venv or no pip"),
    ],
)
def test_a_machine_that_lacks_something_gets_one_sentence(
    python: str, says: str, tmp_path: Path
) -> None:
    done = make_with(python, tmp_path)
    assert done.returncode != 0
    assert says in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_a_machine_without_python_gets_one_sentence(tmp_path: Path) -> None:
    done = make_with(None, tmp_path)
    assert done.returncode != 0
    assert "there is no python3 here" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def make_with(python: str | None, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``make demo`` in a folder with the Makefile, where python3 does what a script says."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("sh", "make"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    if python is not None:
        script = programs / "python3"
        script.write_text(f"#!/bin/sh\n{python}\n")
        script.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    outside = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(
        [str(programs / "make"), "demo"],
        cwd=folder,
        env={**outside, "PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )
