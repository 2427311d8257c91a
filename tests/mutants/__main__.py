"""Change the core in a hundred small ways and see which changes no test notices.

``python -m tests.mutants --number 100 --seed 0``. Every mutant is one change to a copy of the
package in a temporary folder: the working tree is only read. What was run is kept in the output
file, so that an interrupted run goes on where it stopped.
"""

import argparse
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutants.mutations import Mutation, mutations

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "riskpilot"
KNOWN = Path(__file__).with_name("equivalent.toml")
# Which modules are changed, by globs inside the package, wherever they may move. Labels one by one,
# and judges, are left out: their tests are Monte Carlo tests of minutes.
MODULES = (
    *("statistics/**/*.py", "losses/*.py", "**/risk_tests.py"),
    *("**/testing.py", "**/order_of_bets.py", "**/procedures.py", "**/procedure_names.py"),
    *("**/question.py", "**/question_ledger.py", "**/promise_words.py", "**/risk_checks.py"),
    *("**/certificate.py", "**/verification.py", "**/differing.py"),
    *("**/problem.py", "**/risk.py", "**/metrics.py"),
)
LEFT_OUT = ("statistics/sequential/*.py", "statistics/judged/*.py")
# Which tests are likely to notice a change, by a part of the module's path: these come first, then
# those of the module's room, then those of the others.
FIRST: dict[str, tuple[str, ...]] = {
    "trinomial": ("statistics/test_trinomial.py",),
    "families": ("kits/test_p_value_kit.py", "guarantee/test_planner.py"),
    "predictions": ("guarantees/test_edges_vocabulary.py",),
    "class_codes": ("guarantees/test_edges_vocabulary.py",),
    "procedures": ("kits/test_procedure_kit.py",),
    "metrics": ("problem/test_metrics.py",),
    "verification": ("guarantee/test_certificate.py",),
    "differing": ("guarantee/test_certificate.py",),
    "question_ledger": ("study/test_ledger.py",),
}
ROOMS: dict[str, tuple[str, ...]] = {
    "problem": ("problem/test_*.py",),
    "losses": ("losses/test_*.py",),
    "statistics": (
        *("statistics/test_sums*.py", "statistics/test_bad*.py", "statistics/test_tri*.py"),
        "statistics/test_stat*.py",
    ),
    "guarantee": ("guarantee/test_*.py",),
    "selection": ("selection/test_selection.py", "selection/test_bad_input*.py"),
    "study": ("study/test_ledger.py", "study/test_se*.py", "study/test_study.py"),
    "kits": ("kits/test_p*_kit.py", "kits/test_store_kit.py"),
    "guarantees": ("guarantees/test_pitfalls.py", "guarantees/test_edges*.py"),
}
# Monte Carlo tests take long; only those of what is changed come last.
LAST: dict[str, tuple[str, ...]] = {
    "families": ("guarantees/test_p_values_valid.py",),
    "procedures": ("guarantees/test_procedures_valid.py",),
    "testing": ("guarantees/test_select_path.py",),
    "statistics": ("guarantees/test_statistics_valid.py",),
    "losses": ("guarantees/test_statistics_valid.py",),
}
# Python that starts another Python, which may work for so many seconds.
_LIMITED = """
import os, resource, sys
seconds = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
OPTIONS = (
    "-x",
    "-q",
    "-m",
    "not browser",
    "-n",
    "0",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "-rfE",
    "--tb=no",
)


def changed_files() -> list[Path]:
    """The modules that are changed, in the order of their names."""
    found = {path for pattern in MODULES for path in PACKAGE.glob(pattern)}
    return sorted(found - {path for pattern in LEFT_OUT for path in PACKAGE.glob(pattern)})


def drawn(number: int, seed: int) -> list[Mutation]:
    """Mutations of the core, drawn with a seed; those that are known not to matter are left out.

    Each has a digest of its own, and the smallest are drawn: where one function changes, the
    mutants of all others stay the same.
    """
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    steering = [(one["module"], one["name"]) for one in known.get("steering", [])]
    every: list[Mutation] = []
    for path in changed_files():
        names = frozenset(name for stem, name in steering if stem == path.stem)
        module = str(path.relative_to(PACKAGE))
        found = mutations(module, path.read_text(encoding="utf-8"), names)
        every += [one for one in found if one.function.split(".")[0] not in names]

    def rank(one: Mutation) -> str:
        change = (Path(one.module).name, one.function, one.before, one.after, str(one.occurrence))
        return hashlib.sha256("\n".join((str(seed), *change)).encode()).hexdigest()

    return sorted(every, key=rank)[:number]


def reason_of(mutation: Mutation) -> str | None:
    """Why a mutant is known to behave like the original, where it is."""
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    for one in known.get("equivalent", []):
        where = (Path(mutation.module).stem, mutation.function)
        changes = [one["after"]] if isinstance(one["after"], str) else one["after"]
        same = (*where, mutation.before) == (one["module"], one["function"], one["before"])
        occurrence = one.get("occurrence", mutation.occurrence)
        if same and mutation.after in changes and mutation.occurrence == occurrence:
            return str(one["reason"])
    return None


def stages(module: str) -> list[list[str]]:
    """The tests to run, as paths from the root of the repository: first the likely killers.

    Each stage is a run of its own, since to collect all tests takes longer than most killers do.
    """
    parts = Path(module).with_suffix("").parts[::-1]
    named = [pattern for part in parts for pattern in FIRST.get(part, ())]
    room = ROOMS.get(parts[-1], ())
    others = [pattern for patterns in ROOMS.values() for pattern in patterns]
    last = [pattern for part in parts for pattern in LAST.get(part, ())]
    found: list[list[str]] = [[f"src/riskpilot/{module}"]]  # its doctests before all others
    for patterns in ([*named, *room], [*others, *last]):
        files = [
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in sorted((ROOT / "tests").glob(pattern))
        ]
        known = {file for stage in found for file in stage}
        found.append([file for file in dict.fromkeys(files) if file not in known])
    return [found[0] + found[1], found[2]]


class Copy:
    """A copy of the package and its tests, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
        for name in ("src", "tests", "benchmarks", "examples", "docs"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, folder / name)
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(folder))),
            "OMP_NUM_THREADS": "1",
        }
        where = self._python("-c", "import riskpilot; print(riskpilot.__file__)", seconds=60).stdout
        if not where.startswith(str(folder)):
            raise RuntimeError(f"The tests would not see the mutants: riskpilot comes from {where}")

    def compile(self, tests: Iterable[str] = ("tests",)) -> None:
        """Compile the package and these tests once, for all mutants.

        What is compiled of the package goes by the content of its files: of two files of one second
        and size, one would be stale. Tests do not change.
        """
        kept = ("--invalidation-mode", "checked-hash", "-f", "src")
        self._python("-m", "compileall", "-q", *kept, seconds=600)
        self._python("-m", "pytest", *OPTIONS, "--collect-only", *tests, seconds=600)
        self._environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def killer(
        self, mutation: Mutation | None, stages: list[list[str]], seconds: float
    ) -> str | None:
        """The first test that fails on a mutant; None where all of them pass."""
        if mutation is None:
            return self._first_failure(stages, seconds)
        path = self._folder / "src" / "riskpilot" / mutation.module
        original = path.read_text(encoding="utf-8")
        path.write_text(mutation.apply(original), encoding="utf-8")
        try:
            return self._first_failure(stages, seconds)
        finally:
            path.write_text(original, encoding="utf-8")

    def _first_failure(self, stages: list[list[str]], seconds: float) -> str | None:
        for files in stages:
            done = self._python("-m", "pytest", *OPTIONS, *files, seconds=seconds)
            if done.returncode != 0:
                break
        else:
            return None
        if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
            return f"no end within {seconds:.0f} s of work"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return failed[1] if failed else f"exit code {done.returncode}: {done.stderr[-200:]}"

    def _python(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, and end it after so many seconds of work, not of waiting: on a
        busy machine a mutant must not pass for one that never ends."""
        return subprocess.run(
            [sys.executable, "-c", _LIMITED, str(math.ceil(seconds)), *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


def run(
    chosen: list[Mutation], out: Path, jobs: int, seconds: float | None
) -> list[dict[str, Any]]:
    """Run the tests on every mutant that the output file does not have yet."""
    stored = json.loads(out.read_text(encoding="utf-8")) if out.exists() else []
    results = {one["id"]: one for one in stored}
    missing = [one for one in chosen if _id(one) not in results and reason_of(one) is None]
    with tempfile.TemporaryDirectory(prefix="riskpilot-mutants-") as folder:
        copies: Queue[Copy] = Queue()
        for i in range(jobs if missing else 0):
            copy = Copy(Path(folder) / str(i))
            copy.compile()
            copies.put(copy)
        if missing and seconds is None:
            seconds = _time_limit(copies.queue[0])

        def judge(mutation: Mutation) -> None:
            copy, began = copies.get(), time.perf_counter()
            try:
                killer = copy.killer(mutation, stages(mutation.module), seconds or 0)
            finally:
                copies.put(copy)
            results[_id(mutation)] = {
                "id": _id(mutation),
                **asdict(mutation),
                "killed_by": killer,
                "seconds": round(time.perf_counter() - began, 1),
            }
            out.write_text(json.dumps(list(results.values()), indent=1) + "\n", encoding="utf-8")
            print(_row(results[_id(mutation)]), file=sys.stderr, flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(judge, mutation) for mutation in missing]:
                done.result()
    return [
        results.get(_id(one)) or {**asdict(one), "killed_by": f"equivalent: {reason_of(one)}"}
        for one in chosen
    ]


def _id(mutation: Mutation) -> str:
    """A mutant of this very source: a file that has changed since is run again."""
    source = (PACKAGE / mutation.module).read_bytes()
    return f"{mutation.key}-{hashlib.sha256(source).hexdigest()[:8]}"


def _time_limit(copy: Copy) -> float:
    """Several times the work of the tests on the original, which must pass them."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    modules = [str(path.relative_to(PACKAGE)) for path in changed_files()]
    every = dict.fromkeys(name for module in modules for part in stages(module) for name in part)
    failed = copy.killer(None, [list(every)], 3600)
    if failed is not None:
        raise SystemExit(f"The tests must pass before mutants are run, but {failed} fails.")
    work = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    print(f"The tests take {work:.0f} s of work.", file=sys.stderr, flush=True)
    return 30 + 2 * work


def _row(one: dict[str, Any]) -> str:
    change = f"`{_short(one['before'])}` → `{_short(one['after'])}`"
    verdict = "**survived**" if one["killed_by"] is None else one["killed_by"]
    return f"| {one['module']}:{one['line']} {one['function']} | {change} | {verdict} |"


def _short(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= 90 else f"{text[:87]}..."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=100, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"), help="what was run")
    parser.add_argument(
        "--seconds",
        type=float,
        help="of work for one mutant; by default they are measured, and the original must pass",
    )
    options = parser.parse_args()
    chosen = drawn(options.number, options.seed)
    results = run(chosen, options.out, options.jobs, options.seconds)
    survived = [one for one in results if one["killed_by"] is None]
    print("| mutant | change | killed by |\n|---|---|---|")
    for one in sorted(results, key=lambda one: (one["module"], one["line"])):
        print(_row(one))
    print(f"\n{len(results)} mutants, {len(survived)} survived.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
