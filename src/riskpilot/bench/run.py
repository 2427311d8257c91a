"""The whole replay: it plans, runs what is missing, summarises, draws and writes the pages."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from riskpilot.bench import cells, peers
from riskpilot.bench import tasks as all_tasks
from riskpilot.bench.cache import Cache
from riskpilot.bench.jobs import Job, Scope, plan_jobs, run_jobs
from riskpilot.bench.methods import METHODS, installed
from riskpilot.bench.results import Results, collect
from riskpilot.bench.shown.claims import Claim, paper_claims
from riskpilot.bench.shown.page import pages
from riskpilot.bench.shown.summary import Row, cell_rows, comparison_rows, seed_rows, write_csv
from riskpilot.bench.shown.targets import targets
from riskpilot.common import write_whole
from riskpilot.errors import TableError

SEEDS, SPLITS = 10, 50
QUICK_TASKS = ("synthetic", "fairness", "celeba", "vae")
QUICK_METHODS = tuple(name for name, method in METHODS.items() if method.every_cell)
QUICK_SEEDS, QUICK_SPLITS = 2, 10
OUT, QUICK_OUT = Path("experiments/results"), Path("build/bench-quick")


def run(
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    splits: int | None = None,
    out: Path | None = None,
    quick: bool = False,
    jobs: int = 2,
    resume: bool = True,
) -> Results:
    """Replay experiments and write tables, figures and pages to ``out``.

    ``tasks``, ``methods``: by name; by default the tasks of the paper and all methods. ``seeds``:
    how many searches of each method; ``splits``: how many splits into calibration and test.
    ``quick``: fewer tasks, limits, seeds and splits. ``jobs``: processes. ``resume``: whether to go
    on from what earlier runs kept; otherwise everything is run again.
    """
    console = Console(stderr=True)  # standard output is for the results alone
    names = list(tasks or (QUICK_TASKS if quick else _replayed()))
    chosen = list(methods or (QUICK_METHODS if quick else METHODS))
    _check("A task", names, all_tasks.NAMES)
    _check("A method", chosen, tuple(METHODS))
    ready, missing = cells.available(names)
    chosen, lacking = installed(chosen)
    for name, reason in {**missing, **lacking}.items():
        console.print(f"[yellow]{name} is left out.[/yellow] {escape(reason)}")
    if not chosen:
        raise TableError(
            "A replay needs one method at least whose packages are installed, but none is. The "
            "method guided needs no extra: riskpilot bench --method guided."
        )
    if not ready:
        raise TableError(
            f"A replay needs the table of one task at least, but none of {', '.join(names)} has "
            f"one. The task synthetic needs none: riskpilot bench --task synthetic."
        )
    scope = Scope(
        ready,
        chosen,
        seeds or (QUICK_SEEDS if quick else SEEDS),
        splits or (QUICK_SPLITS if quick else SPLITS),
        every_cell=not quick,
    )
    out = out or (QUICK_OUT if quick else OUT)
    results = _made(scope, out, jobs, resume, console)
    _write(results, out, _command(tasks, methods, seeds, splits, quick), missing)
    Console().print(f"Results: {out / 'README.md'}")
    return results


def _made(scope: Scope, out: Path, workers: int, resume: bool, console: Console) -> Results:
    """Run what earlier runs have not kept, and keep the searches by packages of others."""
    planned = plan_jobs(scope)
    searches = {
        f"{job.task} / {job.method} / {job.seed}": job.search_key
        for job in planned
        if peers.is_peer(METHODS[job.method])
    }
    kept = out / peers.FILE
    with Cache(out / ".cache") as cache:
        if resume:
            start = kept if kept.exists() else OUT / peers.FILE
            peers.bring_in(start, searches.values(), cache)
        else:
            cache.clear()
        _run_with_progress(planned, cache, workers, console)
        peers.keep(kept, searches, cache)
        return collect(scope, planned, cache)


def _check(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not known."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TableError(f"{what} is one of {', '.join(known)}, but one is {unknown[0]!r}.")


def _run_with_progress(jobs: list[Job], cache: Cache, workers: int, console: Console) -> None:
    """Run jobs and show how far they are."""
    columns = (
        TextColumn("{task.description:32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("searches and replays", total=len(jobs))

        def finished(job: Job) -> None:
            progress.update(bar, advance=1, description=f"{job.task}: {job.method}")

        run_jobs(jobs, cache, workers, finished)


def _write(results: Results, out: Path, command: str, missing: dict[str, str]) -> None:
    """Write tables, figures and pages."""
    rows = cell_rows(results)
    write_csv(out / "cells.csv", [row for row in rows if not METHODS[row["method"]].ablation])
    write_csv(out / "ablations.csv", [row for row in rows if METHODS[row["method"]].ablation])
    write_csv(out / "seeds.csv", seed_rows(results))
    write_csv(out / "comparisons.csv", comparison_rows(results))
    claims = [*paper_claims(results), *targets(results)]
    write_csv(out / "claims.csv", [_claim_row(c) for c in claims])
    figures = _drawn(results, out / "figures")
    for name, text in pages(results, command, missing, figures).items():
        (out / name).parent.mkdir(exist_ok=True)
        write_whole(out / name, text)


def _drawn(results: Results, folder: Path) -> Sequence[Path]:
    """Draw the figures, or say that they are left out where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        Console(stderr=True).print(
            "[yellow]The figures are left out.[/yellow] They need matplotlib. In a clone of "
            r"riskpilot: pip install '.\[bench]'."
        )
        return []
    # Only who draws loads matplotlib.
    from riskpilot.bench.shown.figures import draw_all

    return draw_all(results, folder)


def _claim_row(claim: Claim) -> Row:
    """Write a claim as a row of a table."""
    return {**asdict(claim), "missed": "; ".join(claim.missed), "verdict": claim.verdict}


def _command(
    tasks: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: int | None,
    splits: int | None,
    quick: bool,
) -> str:
    """Write the command that makes the same run again."""
    parts = ["riskpilot bench", *(["--quick"] if quick else [])]
    parts += [f"--task {name}" for name in tasks or ()]
    parts += [f"--method {name}" for name in methods or ()]
    parts += [f"--{name} {n}" for name, n in (("seeds", seeds), ("splits", splits)) if n]
    return " ".join(parts)


def _replayed() -> list[str]:
    """Return the tasks of the paper; their second forms are run only when they are named."""
    return [name for name in all_tasks.NAMES if name not in all_tasks.SECOND_FORMS]
