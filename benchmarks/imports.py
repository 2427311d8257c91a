"""How long a fresh interpreter takes to import riskpilot."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Row, compare

PEER = "import optuna, scipy.optimize"


def rows(quick: bool) -> Iterator[Row]:
    """Compare the import with that of the two packages that riskpilot cannot do without."""
    with tempfile.TemporaryDirectory() as folder:
        # An installed package has bytecode; the first, uncounted run writes it for both sides.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield compare(
            "import riskpilot",
            PEER,
            lambda: fresh("import riskpilot", environment),
            lambda: fresh(PEER, environment),
            goal="within",
            target=1.3,
            repeats=1 if quick else 9,
        )


def fresh(code: str, environment: dict[str, str]) -> None:
    """Run a line of code in an interpreter of its own."""
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
