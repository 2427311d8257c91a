"""Searches by packages of others, kept in a file beside the results of a replay.

They take most of a replay's time and do not depend on riskpilot's own search, plan or test. A
search is made again when its task's losses, its settings, the source of its baseline or the version
of its package change. What it found is tested anew in every replay.
"""

import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from riskpilot.bench.cache import Cache, as_json, source_digest
from riskpilot.bench.methods import NEEDS, Method
from riskpilot.bench.tasks import Task
from riskpilot.common import digest_of, write_whole

FILE = "peers.json"
# The parts of riskpilot that a search by others goes through: initial pool, space, task.
_SHARED = (
    "bench.baselines.pool",
    "bench.baselines.sequential",
    "bench.tasks.task",
    "search.pools",
    "study.space",
)


def is_peer(method: Method) -> bool:
    """Tell whether a method searches by a package of others."""
    return method.name in NEEDS


def peer_key(task: Task, method: Method, table: str, variant: int, seed: int) -> str:
    """Compute the key of a search: all that its result depends on.

    ``table``: the digest of the task's losses; ``variant``: which version of the task is searched.
    """
    own = f"bench.baselines.{method.name}"
    return digest_of(
        [
            ["peer", table, source_digest([task.losses.__module__, own, *_SHARED])],
            [version(package).partition("+")[0] for package in NEEDS[method.name]],
            [task.name, variant, task.n_trials, task.n_startup_trials],
            [as_json(method.search), seed],
        ]
    )


def bring_in(file: Path, keys: Iterable[str], cache: Cache) -> None:
    """Put the searches that a file has under these keys into the cache."""
    found = {entry["key"]: entry["found"] for entry in _read(file).values()}
    cache.put({key: found[key] for key in keys if key in found})


def keep(file: Path, searches: dict[str, str], cache: Cache) -> None:
    """Write the searches of a run to a file, in place of older ones of the same names.

    ``searches``: by their names, such as "fairness / ehvi / 0", the keys of the searches.
    """
    fresh = {name: {"key": key, "found": cache.get(key)} for name, key in searches.items()}
    if fresh:
        entries = sorted((_read(file) | fresh).items())
        lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries]
        write_whole(file, "{\n" + ",\n".join(lines) + "\n}\n")


def _read(file: Path) -> dict[str, Any]:
    """Read a file of searches; nothing where there is none yet."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found
