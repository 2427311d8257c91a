"""Which raw errors odd calls lead to, and where: ``python -m tests.kits.fuzz_survey --times 5``.

The kit stops at the first one; this goes on, and lists each place once.
"""

import argparse
import os
import tempfile
import time
import traceback
from collections import defaultdict

import optuna
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.kits.fuzz_cases import CASES
from tests.kits.fuzzing import Case, calls, little_memory, raw_error


def survey(case: Case, times: float, start: int) -> dict[tuple[str, str], list[str]]:
    """The calls that led to a raw error, by its type and the line of riskpilot it came from."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)

    @seed(start)
    @settings(
        max_examples=max(int(case.examples * times), 1),
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(case))
    def collect(call):
        error = raw_error(case, call)
        if error is not None:
            found[f"{type(error).__name__}: {error}"[:90], _place(error)].append(repr(call)[:200])

    with little_memory():
        collect()
    return found


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "riskpilot" in frame.filename] or list(frames)
    last = inside[-1]
    return f"{os.path.relpath(last.filename, os.environ['FUZZ_ROOT'])}:{last.lineno} {last.name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=float, default=1.0, help="of the calls of a short run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    os.environ["FUZZ_ROOT"] = os.getcwd()
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in CASES:
            if options.only not in case.name:
                continue
            began = time.perf_counter()
            found = survey(case, options.times, options.seed)
            number = sum(map(len, found.values()))
            total += number
            print(f"{case.name}: {number} raw errors, {time.perf_counter() - began:.1f} s")
            for (what, where), examples in sorted(found.items(), key=lambda item: -len(item[1])):
                print(f"    {len(examples):4d} {where}  {what}\n         {examples[0]}")
    print(f"{total} raw errors in all")


if __name__ == "__main__":
    main()
