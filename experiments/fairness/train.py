"""Fairness on Adult: one small network per lam and seed, all trained at once as one program.

    python -m experiments.fairness.train --out experiments/fairness/table.npz --device cuda

The loss is (1 - lam) BCE + lam DDP, with DDP relaxed by a hyperbolic tangent. The models differ in
lam and seed only, so their weights are stacked and every step trains them all.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.common import load_adult, save_table

HIDDEN = (60, 25)
SPLIT = (32_559, 3_618, 9_045)  # train, validation, held out (calibration and test)


def split_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers of train, validation and held out, by a permutation drawn from ``seed``.

    Fewer rows than the paper's (a smoke test) are split in the same proportions.
    """
    sizes = [size * n // sum(SPLIT) for size in SPLIT]
    order = np.random.default_rng(seed).permutation(n)
    train, validation = sizes[0], sizes[0] + sizes[1]
    return order[:train], order[train:validation], order[validation:]


def initial_weights(n_features: int, base_rate: float, lams: int, seeds: list[int]) -> list[Tensor]:
    """Weights (S, L, in, out) and biases (S, L, 1, out) of each layer, in turn.

    All lams of a seed start from the same point, so that the curve over lam is not blurred by the
    start. The last bias starts at the log odds of the base rate: where lam = 1 leaves the error
    without a gradient, the model stays near the majority class.
    """
    sizes = (n_features, *HIDDEN, 1)
    parameters: list[Tensor] = []
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    for fan_in, fan_out in itertools.pairwise(sizes):
        bound = fan_in**-0.5
        for shape in ((1, fan_in, fan_out), (1, 1, fan_out)):
            each = [torch.rand(shape, generator=g) * 2 * bound - bound for g in generators]
            parameters.append(torch.stack(each).expand(-1, lams, -1, -1).clone())
    parameters[-1].fill_(float(np.log(base_rate / (1 - base_rate))))
    return parameters


def logits(parameters: list[Tensor], x: Tensor) -> Tensor:
    """``x``: (S, b, d). Returns (S, L, b)."""
    w1, b1, w2, b2, w3, b3 = parameters
    n_seeds, lams, d, h = w1.shape
    # The first layer sees the same rows for every lam: one wide product instead of L narrow ones.
    wide = w1.permute(0, 2, 1, 3).reshape(n_seeds, d, lams * h)
    hidden = torch.bmm(x, wide).reshape(n_seeds, -1, lams, h).transpose(1, 2)
    hidden = torch.relu(hidden + b1)
    hidden = torch.relu(torch.matmul(hidden, w2) + b2)
    return (torch.matmul(hidden, w3) + b3).squeeze(-1)


def relaxed_ddp(z: Tensor, male: Tensor) -> Tensor:
    """|DDP| with (1 + tanh z) / 2 for the indicator of z > 0, so that every row has a gradient.

    ``z``: (S, L, b), ``male``: (S, b). Returns (S, L).
    """
    positive = (1 + torch.tanh(z)) / 2
    share = male.unsqueeze(1)
    of_men = (positive * share).sum(-1) / share.sum(-1).clamp(min=1)
    of_women = (positive * (1 - share)).sum(-1) / (1 - share).sum(-1).clamp(min=1)
    return (of_women - of_men).abs()


def train(
    x: Tensor, y: Tensor, male: Tensor, lam: Tensor, seeds: list[int], options: argparse.Namespace
) -> list[Tensor]:
    """``x``: (n, d); ``y``, ``male``: (n,) as 0/1 floats; ``lam``: (L,). The trained parameters."""
    n = len(x)
    start = initial_weights(x.shape[1], float(y.mean()), len(lam), seeds)
    parameters = [p.to(x.device).requires_grad_() for p in start]
    optimizer = torch.optim.Adam(parameters, lr=options.lr, fused=x.is_cuda)
    generators = [torch.Generator().manual_seed(1_000 + seed) for seed in seeds]
    began = time.perf_counter()
    for epoch in range(options.epochs):
        order = torch.stack([torch.randperm(n, generator=g) for g in generators]).to(x.device)
        starts = range(0, max(n - options.batch_size + 1, 1), options.batch_size)
        for begin in starts[: options.max_steps]:
            rows = order[:, begin : begin + options.batch_size]
            z = logits(parameters, x[rows])
            target = y[rows].unsqueeze(1).expand_as(z)
            bce = torch.nn.functional.binary_cross_entropy_with_logits(
                z, target, reduction="none"
            ).mean(-1)
            loss = ((1 - lam) * bce + lam * relaxed_ddp(z, male[rows])).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4 or epoch + 1 == options.epochs:
            print(f"epoch {epoch + 1}/{options.epochs}, {time.perf_counter() - began:.0f} s")
    return parameters


@torch.no_grad()
def predictions(parameters: list[Tensor], x: Tensor) -> np.ndarray:
    """Predicted classes, shape (S, L, n), of every model on every row of ``x``: (n, d)."""
    n_seeds = len(parameters[0])
    parts = [
        (logits(parameters, part.expand(n_seeds, -1, -1)) > 0).cpu().numpy()
        for part in x.split(1_024)
    ]
    return np.concatenate(parts, axis=-1)


def pack(bits: np.ndarray) -> np.ndarray:
    """(S, L, n) booleans -> (S, n, ceil(L / 8)) bytes.

    Bits of one row lie side by side over lam, where they rarely change: the file is far smaller.
    """
    return np.packbits(bits.transpose(0, 2, 1), axis=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="where the table goes")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--lams", type=int, default=201, help="values of lam in [0, 1]")
    parser.add_argument("--seeds", type=int, default=3, help="training seeds 0, 1, ...")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="use the first rows only (smoke test)")
    parser.add_argument("--max-steps", type=int, help="steps per epoch (smoke test)")
    options = parser.parse_args()

    adult = load_adult()
    features = adult.features[: options.rows]
    label, male = adult.label[: options.rows], adult.male[: options.rows]
    train_rows, validation, held_out = split_rows(len(features), options.split_seed)
    mean, scale = features[train_rows].mean(axis=0), features[train_rows].std(axis=0)
    standardised = (features - mean) / np.where(scale > 0, scale, 1)

    device = torch.device(options.device)
    x = torch.as_tensor(standardised, dtype=torch.float32, device=device)
    y = torch.as_tensor(label, dtype=torch.float32, device=device)
    is_male = torch.as_tensor(male, dtype=torch.float32, device=device)
    lam = np.linspace(0, 1, options.lams)
    seeds = list(range(options.seeds))
    print(f"{options.lams} lams x {options.seeds} seeds on {len(train_rows)} rows, {device}")
    parameters = train(
        x[train_rows],
        y[train_rows],
        is_male[train_rows],
        torch.as_tensor(lam, dtype=torch.float32, device=device),
        seeds,
        options,
    )

    arrays: dict[str, np.ndarray] = {"lam": lam, "seeds": np.array(seeds)}
    for name, rows in (("validation", validation), ("held_out", held_out)):
        positive = predictions(parameters, x[rows])
        arrays[f"{name}_positive"] = pack(positive)
        arrays[f"{name}_label"] = label[rows]
        arrays[f"{name}_male"] = male[rows]
        for index in range(0, len(lam), max(len(lam) // 8, 1)):
            one = positive[0, index]
            ddp = abs(one[~male[rows]].mean() - one[male[rows]].mean())
            error = (one != label[rows]).mean()
            print(f"{name}: lam {lam[index]:.3f} error {error:.4f} ddp {ddp:.4f}")
    settings = {
        "task": "fairness",
        "data": "UCI Adult, complete rows",
        "split": [len(train_rows), len(validation), len(held_out)],
        "split_seed": options.split_seed,
        "model": f"MLP {list(HIDDEN)}",
        "optimizer": f"Adam {options.lr:g}",
        "epochs": options.epochs,
        "batch_size": options.batch_size,
        "loss": "(1 - lam) BCE + lam |DDP|, (1 + tanh z) / 2 for the indicator",
    }
    save_table(options.out, arrays, settings)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
