"""The way of a figure into a file: a picture, or a page that needs no network."""

from pathlib import Path

import plotly.graph_objects as go

from riskpilot.errors import PlotError
from riskpilot.plots.drawing import DrawingError, draw
from riskpilot.plots.pages import page_of, write_page
from riskpilot.plots.style import with_theme


def save_figure(
    figure: go.Figure,
    path: str | Path,
    *,
    width: int = 900,
    height: int | None = None,
    scale: float = 2.0,
    theme: str = "light",
) -> Path:
    """Write a figure to a picture for a paper, or to a page that needs no network.

    Pictures need the package kaleido and a Chrome or Chromium; neither needs a network.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        The figure. It is not changed.
    path : str or Path
        The file. Its ending says what is written: .png, .svg, .pdf, .jpg or .webp, or .html.
    width : int, default 900
        The width of a picture, in points.
    height : int, optional
        The height of a picture, in points; that of the figure by default.
    scale : float, default 2.0
        The number of pixels per point of a .png.
    theme : str, default "light"
        The paper that a picture is for. A page follows the colours that its reader prefers.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    PlotError
        If the ending or the theme is not known, what draws pictures is not installed, or it does
        not answer.
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    shown = with_theme(figure, theme)
    if kind == "html":
        return write_page(path, page_of(shown), "figure")
    if kind not in ("png", "svg", "pdf", "jpg", "jpeg", "webp"):
        raise PlotError(
            f"A figure is written as .png, .svg, .pdf, .jpg, .webp or .html, but the file is "
            f"{path.name!r}. Give it one of these endings."
        )
    size = {"width": width, "height": height or figure.layout.height or 500, "scale": scale}
    try:
        picture = draw(shown, {"format": kind, **size})
    except DrawingError as error:
        raise _cannot_write(path, error) from error
    return write_page(path, picture, "figure")


def _cannot_write(path: Path, error: DrawingError) -> PlotError:
    """Make an error that names what is missing and the way to get it, where that is known."""
    words_of_error = str(error).lower()
    if "no module named" in words_of_error:
        lacks = (
            "the package kaleido is missing. Install it, in a clone of riskpilot: "
            "pip install '.[figures]'"
        )
    elif "chromenotfound" in words_of_error:
        lacks = (
            "kaleido finds no Chrome or Chromium. Install one (apt install chromium), or name it "
            "in the environment: BROWSER_PATH=/path/to/chromium"
        )
    else:
        lacks = f"{error}. Try again"
    return PlotError(
        f"The picture {path.name!r} cannot be drawn: {lacks}; or write {path.stem}.html, which "
        f"needs neither."
    )
