"""The script that draws figures in a page: plotly.js, compressed, as text that can stand in it."""

import base64
import gzip
from collections.abc import Iterable
from importlib.resources import files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

# What the partial bundle among the assets can draw; its note says which version it is.
BASIC_TRACES = frozenset({"scatter", "bar", "pie"})


def library_for(figures: Iterable[go.Figure]) -> str:
    """Return plotly.js as base64 of gzip: the small bundle where it can draw all the figures."""
    needed = {trace.type for figure in figures for trace in figure.data}
    if needed <= BASIC_TRACES:
        packed = asset("plotly-basic.min.js.gz")
    else:
        packed = gzip.compress(get_plotlyjs().encode(), mtime=0)
    return base64.b64encode(packed).decode("ascii")


def asset(name: str) -> bytes:
    """Read a file of the folder of assets."""
    return (files("riskpilot.plots") / "assets" / name).read_bytes()
