"""Pictures of figures, which a browser draws: in a process of its own, and only for so long."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

# A browser now and then hangs as it starts, and would be waited for without end. So its picture is
# given up after so many seconds, and tried as often.
_SECONDS = 60.0
_TRIES = 2

# What the process does: it reads a figure from one file, and writes its picture to another.
_DRAW = """
import asyncio, json, sys
import kaleido
job = json.load(open(sys.argv[1], encoding="utf-8"))
picture = asyncio.run(kaleido.calc_fig(job["figure"], opts=job["options"]))
open(sys.argv[2], "wb").write(picture)
"""


class DrawingError(Exception):
    """A picture that could not be drawn, with the reason in one line."""


def draw(figure: go.Figure, options: Mapping[str, Any]) -> bytes:
    """Draw a figure with kaleido. ``options``: its format, width, height and scale."""
    with tempfile.TemporaryDirectory() as folder:
        job, picture, words = (Path(folder, name) for name in ("job.json", "picture", "words"))
        figure_json = json.loads(figure.to_json())
        job.write_text(json.dumps({"figure": figure_json, "options": options}), encoding="utf-8")
        # -P: a module in the current folder must not take the place of one that is installed.
        command = [sys.executable, "-P", "-c", _DRAW, str(job), str(picture)]
        for _ in range(_TRIES):
            # Files in place of pipes: a browser that hangs would keep a pipe open.
            with words.open("wb") as stream:
                try:
                    subprocess.run(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=stream,
                        timeout=_SECONDS,
                        check=True,
                    )
                except subprocess.TimeoutExpired:
                    continue
                except subprocess.CalledProcessError as error:
                    raise DrawingError(_last_line(words)) from error
            return picture.read_bytes()
    raise DrawingError(f"the browser did not answer within {_SECONDS:g} seconds, {_TRIES} times")


def _last_line(words: Path) -> str:
    """Return the last line that a process wrote, where Python names the error."""
    lines = words.read_text(encoding="utf-8", errors="replace").split("\n")
    said = (line.strip() for line in reversed(lines) if line.strip())
    return next(said, "it ended without a word")
