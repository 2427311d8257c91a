"""Robustness on CelebA's attributes: blond hair from all others, spurious attribute male.

    python -m experiments.celeba.train --data DIR --out experiments/celeba/table.npz --device cuda

A network is trained on the official training split; its last layer is trained again, for every
lam, on half of the official validation split.
"""

import argparse
import lzma
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from experiments import official
from experiments.last_layer import Examples, add_options, write_table

TARGET, SPURIOUS = "Blond_Hair", "Male"
HIDDEN = (256, 64)


def read_attributes(folder: Path) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Attributes (n, 40) as booleans, their names, and the split (n,): 0 train, 1 val, 2 test."""
    with lzma.open(folder / "list_attr_celeba.txt.xz", "rt") as file:
        next(file)  # the number of rows
        names = next(file).split()
        signs = np.array([line.split()[1:] for line in file], dtype=np.int8)
    with lzma.open(folder / "list_eval_partition.txt.xz", "rt") as file:
        split = np.array([line.split()[1] for line in file], dtype=np.int8)
    return signs > 0, names, split


def train_features(x: Tensor, y: Tensor, options: argparse.Namespace) -> nn.Sequential:
    """The hidden layers of an MLP trained on ``x``: (n, d) and ``y``: (n,) as 0/1 floats."""
    torch.manual_seed(options.seed)
    body = nn.Sequential(
        nn.Linear(x.shape[1], HIDDEN[0]), nn.ReLU(), nn.Linear(HIDDEN[0], HIDDEN[1]), nn.ReLU()
    ).to(x.device)
    head = nn.Linear(HIDDEN[1], 1).to(x.device)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=options.lr)
    generator = torch.Generator().manual_seed(options.seed)
    began = time.perf_counter()
    for epoch in range(options.epochs):
        order = torch.randperm(len(x), generator=generator).to(x.device)
        for rows in order.split(options.batch_size)[: options.max_steps]:
            z = head(body(x[rows])).squeeze(-1)
            loss = nn.functional.binary_cross_entropy_with_logits(z, y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(
            f"epoch {epoch + 1}/{options.epochs}, loss {loss.item():.4f}, "
            f"{time.perf_counter() - began:.0f} s"
        )
    return body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with celeba/; without it, torchvision's")
    parser.add_argument("--download", type=Path, default=Path("data"), help="torchvision's folder")
    add_options(
        parser,
        tau_highest=0.6,
        epochs=10,
        batch_size=1_024,
        draws=20_000,
        l2=1e-3,
        last_layer_steps=2_000,
    )
    options = parser.parse_args()

    attributes, names, split = (
        official.celeba(options.download)
        if options.data is None
        else read_attributes(options.data / "celeba")
    )
    label = attributes[:, names.index(TARGET)]
    male = attributes[:, names.index(SPURIOUS)]
    inputs = [name for name in names if name != TARGET]
    device = torch.device(options.device)
    x = torch.as_tensor(
        attributes[:, [names.index(name) for name in inputs]], dtype=torch.float32, device=device
    )
    y = torch.as_tensor(label, dtype=torch.float32, device=device)
    print(f"{len(x)} rows, blond {label.mean():.4f}, male {male.mean():.4f}, {device}")

    in_train = torch.as_tensor(split == 0, device=device)
    body = train_features(x[in_train], y[in_train], options)
    with torch.no_grad():
        everything = Examples(body(x), label, male)

    # Rows of the official splits are in no promised order: halve by a seeded permutation.
    shuffled = np.random.default_rng(options.seed).permutation(np.flatnonzero(split == 1))
    half = len(shuffled) // 2
    write_table(
        options,
        train=everything.rows(shuffled[:half]),
        validation=everything.rows(shuffled[half:]),
        held_out=everything.rows(np.flatnonzero(split == 2)),
        settings={
            "task": "celeba",
            "data": "CelebA attributes, official split; half of validation trains the last layer",
            "model": f"MLP {list(HIDDEN)}",
            "optimizer": f"Adam {options.lr:g}",
        },
    )


if __name__ == "__main__":
    main()
