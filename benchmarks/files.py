"""Selection from long tables on disk, against what DuckDB takes to group and count the same file.

``python -m benchmarks.files`` selects from 100 million rows (10,000 configurations x 10,000
examples) in a process of its own, and prints its seconds and the most memory that it held.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

import riskpilot as rp
from benchmarks.measure import Row, compare

SHAPE = (200, 20_000)
QUICK_SHAPE = (20, 500)
LARGE_SHAPE = (10_000, 10_000)
PROBLEM = rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost")
GROUPED = "SELECT config, split, count(*), sum(error) FROM {} GROUP BY ALL"


def rows(quick: bool) -> Iterator[Row]:
    shape = QUICK_SHAPE if quick else SHAPE
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("parquet", "csv"):
            path = write(Path(folder) / f"losses.{ending}", shape)
            yield compare(
                f"select_from_frame, {shape[0]:,} x {shape[1]:,} rows, {ending}",
                "DuckDB: group and count",
                lambda path=path: select(path),  # type: ignore[misc]
                lambda path=path: duckdb.sql(GROUPED.format(f"'{path}'")).fetchall(),  # type: ignore[misc]
                goal="within",
                target=3.0,
                repeats=2 if quick else 5,
            )


def select(path: Path) -> rp.Selection:
    """Select from a file, without a ledger."""
    return rp.select_from_frame(PROBLEM, path, config="config", example="example", ledger=None)


def write(path: Path, shape: tuple[int, int]) -> Path:
    """Write 0/1 losses of configurations whose risk grows from 0 to 0.3, and whose cost falls."""
    n, k = shape
    risk = f"0.3 * c / {n}"
    duckdb.execute(
        f"COPY (SELECT if(e % 2 = 0, 'validation', 'calibration') AS split, "
        f"'threshold ' || c AS config, 'q' || e AS example, "
        f"(hash(c * {k} + e) % 100000 < 100000 * {risk})::TINYINT AS error, "
        f"1 - c / {n} AS cost FROM range({n}) configs(c), range({k}) examples(e)) TO '{path}'"
    )
    return path


def large(path: Path) -> None:
    """Select from 100 million rows and print what it took."""
    start = time.perf_counter()
    selection = select(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{selection.config}, {len(selection.candidates):,} tested")
    print(f"{seconds:.1f} s, at most {peak:.2f} GiB of memory")


def main() -> None:
    if len(sys.argv) > 1:
        large(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "losses.parquet", LARGE_SHAPE)
        print(f"{path.stat().st_size / 2**20:.0f} MiB of Parquet")
        subprocess.run([sys.executable, "-m", "benchmarks.files", str(path)], check=True)


if __name__ == "__main__":
    main()
