"""Join the parts that ``experiments.vae.train`` wrote into the table of the experiment.

``python -m experiments.vae.merge --parts parts/*.npz --out experiments/vae/table.npz``.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from experiments.common import save_table

LEVELS = 2**14 - 1
LOSSES = tuple(f"{split}_{loss}" for split in ("validation", "held_out") for loss in ("mse", "kld"))


def quantise(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers, the lowest value and the step of each row: value = low + step * number."""
    low = values.min(axis=1).astype(np.float64)
    step = (values.max(axis=1) - low) / LEVELS
    step[step == 0] = 1.0
    numbers = np.rint((values - low[:, None]) / step[:, None])
    return numbers.astype(np.uint16), low, step


def merge(parts: list[Path], out: Path) -> None:
    loaded = sorted((dict(np.load(path)) for path in parts), key=lambda part: part["betas"][0])
    settings = json.loads(str(loaded[0]["settings"]))
    if any(json.loads(str(part["settings"])) != settings for part in loaded):
        raise SystemExit("All parts need the same settings. Train the odd ones again.")
    betas = np.concatenate([part["betas"] for part in loaded])
    if len(betas) != settings["count"] or np.any(np.diff(betas) <= 0):
        raise SystemExit(f"The grid has {settings['count']} betas, but the parts hold {betas}.")
    arrays = {"beta": betas}
    for name in LOSSES:
        values = np.concatenate([part[name] for part in loaded]).astype(np.float64)
        numbers, low, step = quantise(values)
        arrays |= {name: numbers, f"{name}_low": low, f"{name}_step": step}
        error = np.abs((low[:, None] + step[:, None] * numbers).mean(1) - values.mean(1)).max()
        scale = values.max() if name.endswith("kld") else 1.0
        print(f"{name}: means off by at most {error / scale:.1e}")
    save_table(out, arrays, settings)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    merge(options.parts, options.out)


if __name__ == "__main__":
    main()
