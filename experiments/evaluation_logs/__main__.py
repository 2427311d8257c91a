"""Writes the logs that tests and guides read, with the tools themselves.

``python -m experiments.evaluation_logs FOLDER`` installs the tools under FOLDER, runs them on
models that need no network, and puts their logs, with the tools' versions, beside the tests.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "tests" / "tables" / "logs" / "fixtures"
# torch first: without a version of its own, lm_eval would take any build of it.
PYTHON_TOOLS = ({"torch": "2.13.0"}, {"inspect_ai": "0.3.285", "lm_eval": "0.4.13"})
NODE_TOOLS = {"promptfoo": "0.121.20"}
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


def main() -> None:
    """Install the tools, run them, and keep what they wrote."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.evaluation_logs", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    python, promptfoo = install(folder)
    work = folder / "run"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(HERE, work)
    written = work / "written"
    for tool in ("inspect_ai", "lm_eval", "promptfoo"):
        (written / tool).mkdir(parents=True)
    run([python, "inspect_runs.py", written / "inspect_ai"], work)
    run_lm_eval(python, work / "lm_eval", written / "lm_eval")
    for name, repeats in (("capitals", 1), ("repeated", 3)):
        asked = ["--repeat", repeats, "-j", 1, "-o", f"{name}.json", "--no-cache", "--no-table"]
        # The tool ends with 100 where an answer is wrong, and some are meant to be.
        run([promptfoo, "eval", *asked], work / "promptfoo", allowed=(0, 100))
        shutil.move(work / "promptfoo" / f"{name}.json", written / "promptfoo")
    versions = {**PYTHON_TOOLS[1], **NODE_TOOLS}
    (written / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
    shutil.rmtree(FIXTURES, ignore_errors=True)
    shutil.copytree(written, FIXTURES)


def install(folder: Path) -> tuple[Path, Path]:
    """Install the tools in environments of their own; return Python and promptfoo."""
    environment, node = folder / "env", folder / "npm"
    python = environment / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", environment], folder.parent)
    for tools in PYTHON_TOOLS:
        pinned = [f"{name}=={version}" for name, version in tools.items()]
        run([python, "-m", "pip", "install", "--quiet", *pinned], folder)
    node.mkdir(exist_ok=True)
    pinned = [f"{name}@{version}" for name, version in NODE_TOOLS.items()]
    run(["npm", "install", "--prefix", node, "--no-audit", "--no-fund", *pinned], node)
    return python, node / "node_modules" / ".bin" / "promptfoo"


def run_lm_eval(python: Path, work: Path, written: Path) -> None:
    """Run both tasks with two models, and give every log a name without a date."""
    for size, seed in (("small", 1), ("large", 2)):
        chosen = ["--model", "dummy", "--model_args", f"pretrained={size}", "--seed", seed]
        asked = ["--include_path", ".", "--tasks", "sums,words", "--log_samples"]
        out = work / "out"
        run([python, "-m", "lm_eval", "run", *chosen, *asked, "--output_path", out], work)
        for log in out.rglob("*_*.json*"):
            stem, _ = log.stem.rsplit("_", 1)
            (written / size).mkdir(exist_ok=True)
            log.rename(written / size / f"{stem}_2026-01-01T00-00-00.000000{log.suffix}")
        shutil.rmtree(out)


def run(command: list[object], folder: Path, allowed: tuple[int, ...] = (0,)) -> None:
    """Run a program in a folder; stop where it fails."""
    quiet = {**os.environ, **QUIET, "PYTHONPATH": "", "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    code = subprocess.run(words, cwd=folder, env=quiet, check=False).returncode
    if code not in allowed:
        raise SystemExit(f"{words[0]} ended with {code}")


if __name__ == "__main__":
    main()
