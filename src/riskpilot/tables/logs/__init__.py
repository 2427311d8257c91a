"""Logs of evaluation tools, read as tables of losses: one module for each tool."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from riskpilot.errors import TableError
from riskpilot.tables.local_files import local_files
from riskpilot.tables.logs import inspect_ai, lm_evaluation_harness, promptfoo
from riskpilot.tables.logs.joined import check_examples, write_rows
from riskpilot.tables.logs.runs import Run

__all__ = ["are_logs", "check_examples", "is_log", "read_runs", "write_rows"]

# Each module says which files are its tool's (`recognises`) and reads one of them (`read`).
_TOOLS: tuple[ModuleType, ...] = (inspect_ai, lm_evaluation_harness, promptfoo)
_HEAD = 1 << 16  # so many bytes at the beginning of a file say which tool wrote it


def is_log(path: str | Path) -> bool:
    """Say whether a path, or a glob, names logs of evaluation tools."""
    return are_logs(local_files(path))


def are_logs(files: Sequence[str]) -> bool:
    """Say whether files are logs of evaluation tools; some that are beside others are an error."""
    tools = {file: _tool_of(Path(file)) for file in files}
    if not any(tools.values()):
        return False
    odd = next((file for file, tool in tools.items() if tool is None), None)
    if odd is not None:
        log = next(file for file, tool in tools.items() if tool is not None)
        raise TableError(
            f"Logs are read without other files beside them, but {Path(log).name!r} is a log and "
            f"{Path(odd).name!r} is none that riskpilot knows. Name the logs alone."
        )
    return True


def read_runs(files: Sequence[str]) -> list[Run]:
    """Read every run of some logs."""
    runs: list[Run] = []
    for file in files:
        tool = _tool_of(Path(file))
        assert tool is not None
        runs += tool.read(Path(file))
    return runs


def _tool_of(path: Path) -> ModuleType | None:
    """Find the tool that wrote a file; None where none of them did."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    return next((tool for tool in _TOOLS if tool.recognises(path, head)), None)
