"""What users would get: wheel and sdist are built, installed on their own, and tried out.

``python -m tools.release_check`` builds both, installs each in an empty environment in a folder of
its own outside the repository, and runs there the README's code, the examples and every command.
Anything that is missing ends it with an error. ``--fast`` builds another wheel from the sdist,
which has to contain what the first one does, so that one environment speaks for both.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAKEN_ALONG = (
    "README.md",
    "examples",
    "tests/docs/pages.py",
    "tests/docs/readme_setup.py",
    "tools/tryout.py",
)
# What these examples import comes with extras; all others run with the package alone.
EXTRAS_OF_EXAMPLES = {"mapie_side_by_side": "bench", "mlflow_runs": "mlflow"}
# One call of every command on what the README's code has left, with its exit code. Some lack what
# they need, such as an extra, a task or a file, and end with one sentence.
CALLS: dict[str, tuple[list[str], int]] = {
    "bench": (["--task", "nothing"], 2),
    "calibrate": (["adult.db", "--horizon", "600"], 4),
    "dashboard": (["adult.db"], 2),
    "demo": (["--quick", "--out", "demo"], 0),
    "gate": (["answers.csv", "--risk", "accuracy>=0.8"], 0),
    "live": (["absent.db"], 2),
    "plan": (["--risk", "error<=0.05", "--samples", "5000", "--json"], 0),
    "recertify": (["adult.db", "--losses", "absent.csv"], 2),
    "report": (["adult.db", "--out", "page.html"], 0),
    "seal": (["adult.db", "--risk", "error<=0.2"], 0),
    "select": (["losses.npz", "-r", "error<=0.1", "-m", "cost", "--out", "chosen.json"], 0),
    "status": (["adult.db", "--json"], 0),
    "verify": (["chosen.json", "--losses", "losses.npz"], 0),
    "watch": (["chosen.json", "--losses", "labels.csv"], 0),
}


class ReleaseError(Exception):
    """Something that a user would miss, in one sentence."""


def build(folder: Path, place: Path = ROOT, targets: tuple[str, ...] = ("sdist", "wheel")) -> None:
    """Build packages from the source at a place into a folder."""
    chosen = [word for target in targets for word in ("--target", target)]
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *chosen]
    _run(command, place, "The package cannot be built")


def check_same(wheel: Path, sdist: Path, folder: Path) -> None:
    """Build a wheel from the sdist alone, and compare it with the wheel of the repository."""
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):  # the first versions of Python 3.11 have no filters
            archive.extractall(folder / "source", filter="data")
        else:
            archive.extractall(folder / "source")
    (source,) = (folder / "source").iterdir()
    build(folder / "again", source, ("wheel",))
    again = _contents(folder / "again" / wheel.name)
    odd = sorted({name for name, _ in _contents(wheel).items() ^ again.items()})
    if odd:
        raise ReleaseError(
            f"The wheel and the sdist contain the same package, but they differ in "
            f"{', '.join(odd[:5])}. See [tool.hatch.build.targets] in pyproject.toml."
        )


def _contents(wheel: Path) -> dict[str, int]:
    """Return the check sum of every file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {file.filename: file.CRC for file in archive.infolist()}


def check(package: Path, extras: str, folder: Path) -> None:
    """Install a package in an empty environment, and run the README, examples and commands."""
    begin = time.monotonic()
    python = install(f"{package}{extras}", folder)
    place = folder / "place"
    place.mkdir()
    for name in TAKEN_ALONG:
        source, target = ROOT / name, place / Path(name).name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    left_out = [name for name, extra in EXTRAS_OF_EXAMPLES.items() if extra not in extras]
    task = json.dumps({"left_out": left_out, "calls": CALLS})
    _run([str(python), "tryout.py", task], place, f"What users do with {package.name} fails")
    check_names((place / "commands.txt").read_text().split())
    print(f"{package.name}: complete, in {time.monotonic() - begin:.0f} seconds")


def install(requirement: str, folder: Path) -> Path:
    """Install what is asked for in an empty environment, and return its Python.

    The environment has not even pip, and nothing is compiled that is not imported later: both
    would take longer than the rest.
    """
    venv.create(folder / "environment")
    python = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-compile"]
    complaint = (
        f"{Path(requirement).name} cannot be installed with what it needs, which comes from a "
        f"package registry (is there a network?)"
    )
    _run([*pip, "-c", str(ROOT / "constraints.txt"), requirement], folder, complaint)
    return python


def check_names(names: list[str]) -> None:
    """Compare the commands that there are with the calls that are known here."""
    odd = sorted(set(names) ^ set(CALLS))
    if odd:
        raise ReleaseError(
            f"Every command is called once, but the commands and the calls differ in "
            f"{', '.join(odd)}. Add it to CALLS in tools/release_check.py, or find out why the "
            f"package lacks it."
        )


def _run(command: list[str], place: Path, complaint: str) -> str:
    """Run a command without anything of this environment, and return what it prints."""
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=place, env=outside, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or "Traceback" in done.stderr:
        raise ReleaseError(
            f"{complaint}: exit code {done.returncode}.\n{' '.join(command)}\n"
            f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Check both packages; the sdist with the extras that examples need."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_check", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="one environment for both")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="riskpilot-release-") as name:
        folder = Path(name)
        try:
            build(folder / "dist")
            wheel, sdist = next(folder.glob("dist/*.whl")), next(folder.glob("dist/*.tar.gz"))
            check_same(wheel, sdist, folder)
            packages = [(wheel, "")] if options.fast else [(wheel, ""), (sdist, "[bench,mlflow]")]
            for package, extras in packages:
                alone = folder / package.suffix.strip(".")
                alone.mkdir()
                check(package, extras, alone)
        except ReleaseError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
