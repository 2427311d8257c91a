"""The robustness scripts train one step on a few made-up rows and write tables that load."""

import io
import lzma
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from riskpilot.bench.tasks import load

import_module("torch")
safetensors = import_module("safetensors.torch")
image = import_module("PIL.Image")
ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--lams", "5", "--epochs", "1", "--max-steps", "1", "--last-layer-steps", "3"]


def run(name, data, out, *arguments):
    out.parent.mkdir(parents=True)
    command = [sys.executable, "-m", f"experiments.{name}.train", "--data", str(data)]
    subprocess.run(
        [*command, "--out", str(out), "--device", "cpu", "--draws", "50", *SMALL, *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )


def check_both_forms(name, tables, held_out):
    plain, selective = load(name, tables=tables), load(f"selective_{name}", tables=tables)
    assert plain.size["held_out"] == selective.size["held_out"] == held_out
    assert len(plain.grid) == 5
    assert len(selective.grid) == 5 * 41
    lowest = {"lam": 0.5, "tau": 0.5}  # at this threshold everything is answered
    for split in ("validation", "held_out"):
        answered = selective.losses(split, lowest)
        assert not answered["miscoverage"].any()
        assert np.array_equal(answered["error"], plain.losses(split, lowest)["error"])
        assert selective.free(split, lowest, None) == plain.free(split, lowest, None)


def test_celeba_trains_one_step(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "celeba"
    folder.mkdir()
    names = ["Blond_Hair", "Male", "Smiling", "Young"]
    signs = rng.choice(["-1", "1"], size=(120, 4))
    rows = [f"{i:06}.jpg {' '.join(row)}" for i, row in enumerate(signs)]
    attributes = "\n".join([str(len(rows)), " ".join(names), *rows])
    (folder / "list_attr_celeba.txt.xz").write_bytes(lzma.compress(attributes.encode()))
    splits = "\n".join(f"{i:06}.jpg {i % 3}" for i in range(120))
    (folder / "list_eval_partition.txt.xz").write_bytes(lzma.compress(splits.encode()))
    run("celeba", tmp_path, tmp_path / "tables" / "celeba" / "table.npz")
    check_both_forms("celeba", tmp_path / "tables", held_out=40)


def test_waterbirds_trains_one_step(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from experiments.waterbirds.resnet import ResNet50

    weights = tmp_path / "weights" / "resnet50" / "narrow.safetensors"
    weights.parent.mkdir(parents=True)
    state = ResNet50(width=4).state_dict()
    kept = {key: value for key, value in state.items() if "num_batches" not in key}
    safetensors.save_file(kept, weights)

    rng = np.random.default_rng(0)
    (tmp_path / "waterbirds").mkdir()
    jpegs = []
    for _ in range(60):
        buffer = io.BytesIO()
        image.fromarray(rng.integers(256, size=(32, 32, 3), dtype=np.uint8)).save(buffer, "JPEG")
        jpegs.append(buffer.getvalue())
    number = np.arange(60, dtype=np.uint8)
    np.savez(
        tmp_path / "waterbirds" / "waterbirds_32px_part0.npz",
        jpeg=np.frombuffer(b"".join(jpegs), dtype=np.uint8),
        offsets=np.cumsum([0, *map(len, jpegs)]),
        y=number % 2,
        place=number // 2 % 2,
        split=number // 20,
    )
    out = tmp_path / "tables" / "waterbirds" / "table.npz"
    run("waterbirds", tmp_path, out, "--test-as-validation", "5", "--batch-size", "8")
    check_both_forms("waterbirds", tmp_path / "tables", held_out=15)
