"""How long a fresh interpreter takes to import."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Row, compare


def rows(quick: bool) -> Iterator[Row]:
    yield compare(
        "import riskpilot",
        "import optuna, sklearn",
        lambda: fresh("import riskpilot"),
        lambda: fresh("import optuna, sklearn"),
        goal="within",
        target=1.5,
        repeats=1 if quick else 9,
    )


def fresh(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
