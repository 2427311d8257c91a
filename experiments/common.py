"""What the training scripts share: the table format and Adult, without the rest of riskpilot.

A training machine needs numpy, torch and safetensors only. Importing these modules by their
names would import all of riskpilot and its dependencies; so the files are loaded by their paths.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _by_path(relative: str) -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "src" / "riskpilot" / relative
    spec = importlib.util.spec_from_file_location(f"riskpilot_alone_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"No module at {path}. Run the script inside a riskpilot checkout.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


_table_format = _by_path("bench/tasks/table_format.py")
save_table = _table_format.save
write_npz = _table_format.write_npz
load_adult = _by_path("datasets/__init__.py").load_adult
