"""The versions that were tested: what an environment holds of all that the extras pull.

``python -m tools.constraints`` writes constraints.txt from the environment that runs it;
``--lowest`` prints the lowest versions that pyproject.toml allows instead.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE = ROOT / "constraints.txt"
OLDEST = "3.11.0"  # of the versions of Python that pyproject.toml allows
HEAD = """\
# The versions that `make test` was run with, written by `make constraints`.
# torch: the CPU build is enough here, and a newer release pulls gigabytes of CUDA packages.
"""


def requirements() -> list[Requirement]:
    """Read all that the package and its extras ask for, less itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(line) for lines in lists for line in lines]
    return [one for one in found if one.name != project["name"]]


def pinned(wanted: Iterable[Requirement]) -> list[str]:
    """List what is installed of these requirements and of all that they pull, in exact versions.

    A local label of a version, such as that of a CPU build, is left out: other machines lack it.
    """
    found: dict[str, Distribution] = {}
    waiting = [(one, "") for one in wanted]
    visited: set[tuple[str, str]] = set()
    while waiting:
        one, extra = waiting.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        try:
            package = found.setdefault(name, distribution(name))
        except PackageNotFoundError:
            continue  # what another system or another Python needs
        for asked in {"", *one.extras} - {e for n, e in visited if n == name}:
            visited.add((name, asked))
            waiting += [(Requirement(line), asked) for line in package.requires or ()]
    for name, package in found.items():
        needed = package.metadata.get("Requires-Python")
        if needed and not SpecifierSet(needed).contains(OLDEST):
            raise SystemExit(
                f"Pins must suit every Python from {OLDEST} on, but {name} {package.version} needs "
                f"{needed}. Install an earlier version of it, then pin again."
            )
    return [f"{name}=={found[name].version.partition('+')[0]}" for name in sorted(found)]


def lowest() -> list[str]:
    """List the lowest version that each dependency of the package allows, extras left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [Requirement(line) for line in project["dependencies"]]
    return [f"{one.name}~={_floor(str(one.specifier))}.0" for one in names]


def _floor(specifier: str) -> str:
    """Find the lower bound of a requirement.

    >>> _floor("<6,>=5.0")
    '5.0'
    """
    bound = re.search(r">=([\w.]+)", specifier)
    assert bound is not None, f"{specifier!r} has no lower bound"
    return bound[1]


if __name__ == "__main__":
    if "--lowest" in sys.argv:
        print("\n".join(lowest()))
    else:
        FILE.write_text(HEAD + "\n".join(pinned(requirements())) + "\n", encoding="utf-8")
        print(f"{FILE.name}: {len(FILE.read_text(encoding='utf-8').splitlines()) - 2} packages")
