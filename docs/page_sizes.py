"""Print the sizes of pages that riskpilot writes: ``python -m docs.page_sizes``.

Beside each stands what it would be with all of plotly.js inside, as text.
"""

import base64
import gzip
import tempfile
from pathlib import Path

from plotly.offline import get_plotlyjs

from riskpilot.plots.library import asset
from tests.pictures import written_pages


def sizes() -> dict[str, tuple[int, int]]:
    """Measure each kind of page in bytes: as it is, and with all of plotly.js."""
    small = len(base64.b64encode(asset("plotly-basic.min.js.gz")))
    whole = len(get_plotlyjs().encode())
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in written_pages.KINDS.items():
            size = write(Path(folder) / f"{name}.html").stat().st_size
            found[name] = (size, size - small + whole)
    return found


def main() -> None:
    """Print a table of all sizes."""
    packed = asset("plotly-basic.min.js.gz")
    print(f"plotly.js: {len(get_plotlyjs()):,} bytes")
    print(f"the bundle: {len(gzip.decompress(packed)):,} bytes, compressed {len(packed):,}")
    print("page          bytes     with all of plotly.js")
    for name, (size, whole) in sizes().items():
        print(f"{name:12}{size:10,}{whole:12,}")


if __name__ == "__main__":
    main()
