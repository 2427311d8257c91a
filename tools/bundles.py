"""Pack a script of an npm package as the repository keeps it: ``python -m tools.bundles PACKAGE``.

PACKAGE is the archive that ``npm pack plotly.js-basic-dist-min`` or ``npm pack axe-core`` wrote.
The script is kept compressed; beside it lie its licence and a note of its version and digest, which
tests compare with the script.
"""

import gzip
import hashlib
import json
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parent.parent


class Bundle(NamedTuple):
    """Which script of a package is kept, and in which folder."""

    script: str
    folder: Path


BUNDLES = {
    "plotly.js-basic-dist-min": Bundle("plotly-basic.min.js", _ROOT / "src/riskpilot/plots/assets"),
    "axe-core": Bundle("axe.min.js", _ROOT / "tests/pictures/assets"),
}


def pack(archive: Path) -> Path:
    """Write script, licence and note of an archive to their folder, and return the note."""
    with tarfile.open(archive) as package:

        def content(name: str) -> bytes:
            file = package.extractfile(f"package/{name}")
            assert file is not None
            return file.read()

        about = json.loads(content("package.json"))
        bundle = BUNDLES[about["name"]]
        script, licence = content(bundle.script), content("LICENSE")
    kept = bundle.folder / bundle.script
    kept.with_name(f"{kept.name}.gz").write_bytes(gzip.compress(script, 9, mtime=0))
    kept.with_name(f"{kept.name}.LICENSE.txt").write_bytes(licence)
    note = {
        "package": about["name"],
        "version": about["version"],
        "license": about["license"],
        "sha256": hashlib.sha256(script).hexdigest(),
    }
    path = kept.with_name(f"{kept.name}.json")
    path.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(pack(Path(sys.argv[1])).read_text(encoding="utf-8"), end="")
