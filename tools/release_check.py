"""What users would get: wheel and sdist are built, installed on their own, and tried out.

``python -m tools.release_check`` builds both, installs each in an empty environment in a folder of
its own outside the repository, and runs there the README's code, the examples and every command.
Anything that is missing ends it with an error. ``--fast`` tries the wheel alone.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAKEN_ALONG = ("README.md", "examples", "tests/docs/pages.py", "tests/docs/readme_setup.py")
# What these examples import comes with extras; all others run with the package alone.
EXTRAS_OF_EXAMPLES = {"mapie_side_by_side": "bench", "mlflow_runs": "mlflow"}
README = """
from pathlib import Path
import pages, readme_setup
names = {"__name__": "page", **readme_setup.prepare()}
for block in pages.blocks_of(Path("README.md")):
    if block.language == "python":
        exec(compile(block.code, "README.md", "exec"), names)
    elif block.language == "bash":
        for line in pages.shell_lines(block.code):
            if line.startswith("riskpilot "):
                print(line)
"""
COMMANDS = """
import typer
from riskpilot.cli.app import app
print(*typer.main.get_command(app).commands)
"""
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


def build(folder: Path) -> tuple[Path, Path]:
    """Build the wheel and the sdist, and return where they are."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    _run(command, ROOT, "The package cannot be built")
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def check(package: Path, extras: str, folder: Path) -> None:
    """Install a package in an empty environment, and run the README, examples and commands."""
    begin = time.monotonic()
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python = str(programs / "python")
    install = [python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    _run([*install, f"{package}{extras}"], folder, f"{package.name} cannot be installed")
    place = folder / "place"
    place.mkdir()
    for name in TAKEN_ALONG:
        source, target = ROOT / name, place / Path(name).name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    lines = _run([python, "-c", README], place, "The README's code fails").splitlines()
    for line in (line for line in lines if line.startswith("riskpilot ")):
        _run(f"{programs / 'riskpilot'} {line.removeprefix('riskpilot ')}", place, "The README")
    for example in sorted((place / "examples").glob("*.py")):
        extra = EXTRAS_OF_EXAMPLES.get(example.stem)
        if extra is None or extra in extras:
            _run([python, str(example)], place, f"The example {example.name} fails")
    check_commands(programs, place)
    print(f"{package.name}: complete, in {time.monotonic() - begin:.0f} seconds")


def check_commands(programs: Path, place: Path) -> None:
    """Call every command, with ``--help`` and with the arguments of its call here."""
    (place / "answers.csv").write_text(
        "example,accuracy\n" + "".join(f"e{i},{int(i % 9 > 0)}\n" for i in range(900))
    )
    (place / "labels.csv").write_text("error\n" + "0\n" * 50)
    names = _run([str(programs / "python"), "-c", COMMANDS], place, "The commands").split()
    check_names(names)
    # A certificate is verified and watched after it was made.
    for name in sorted(names, key=lambda name: name in ("verify", "watch")):
        program = [str(programs / "riskpilot"), name]
        _run([*program, "--help"], place, f"riskpilot {name} --help fails")
        arguments, code = CALLS[name]
        _run([*program, *arguments], place, f"riskpilot {name} fails", code)


def check_names(names: list[str]) -> None:
    """Compare the commands that there are with the calls that are known here."""
    odd = sorted(set(names) ^ set(CALLS))
    if odd:
        raise ReleaseError(
            f"Every command is called once, but the commands and the calls differ in "
            f"{', '.join(odd)}. Add it to CALLS in tools/release_check.py, or find out why the "
            f"package lacks it."
        )


def _run(command: list[str] | str, place: Path, complaint: str, code: int = 0) -> str:
    """Run a command without anything of this environment, and return what it prints."""
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command,
        cwd=place,
        env=outside,
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != code or "Traceback" in done.stderr:
        raise ReleaseError(
            f"{complaint}: exit code {done.returncode}, not {code}.\n{command}\n"
            f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Check both packages; the sdist with the extras that examples need."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_check", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="the wheel alone")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="riskpilot-release-") as name:
        folder = Path(name)
        try:
            wheel, sdist = build(folder / "dist")
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
