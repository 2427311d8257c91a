"""Robustness on Waterbirds: land or water bird, spurious attribute the background.

    python -m experiments.waterbirds.train --data DIR --out experiments/waterbirds/table.npz

A ResNet-50 is fine-tuned on the official training split and frozen; its last layer is trained
again, for every lam, on half of the official validation split. The other half and some of the
test split serve as validation, the rest of the test split is held out.
"""

import argparse
import io
import itertools
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from experiments import official
from experiments.last_layer import Examples, add_options, write_table
from experiments.waterbirds.resnet import pretrained

PIXELS = 128
SHIFT = 12  # random crops: images move by up to this many pixels
TRAIN, VALIDATION, TEST = 0, 1, 2


def read_images(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images (n, h, w, 3) as bytes, label, place, split, all of n rows, from the npz parts."""
    images, columns = [], []
    for path in sorted(folder.glob("waterbirds_*_part*.npz")):
        with np.load(path, allow_pickle=False) as part:
            data, offsets = part["jpeg"].tobytes(), part["offsets"]
            for begin, end in itertools.pairwise(offsets):
                images.append(np.asarray(Image.open(io.BytesIO(data[begin:end])).convert("RGB")))
            columns.append(np.stack([part["y"], part["place"], part["split"]]))
    if not images:
        raise SystemExit(f"No waterbirds_*_part*.npz in {folder}. Leave --data out to use WILDS.")
    label, place, split = np.concatenate(columns, axis=1)
    return np.stack(images), label, place, split


def augmented(images: Tensor, generator: torch.Generator) -> Tensor:
    """Random flips and shifts, with the edges reflected. ``images``: (n, 3, h, w)."""
    n, _, height, width = images.shape

    def moved(size: int, flip: bool) -> Tensor:
        offset = torch.randint(-SHIFT, SHIFT + 1, (n, 1), generator=generator)
        where = (torch.arange(size) + offset).abs()
        where = torch.minimum(where, 2 * (size - 1) - where).clamp(min=0)
        if flip:
            turned = torch.rand(n, 1, generator=generator) < 0.5
            where = torch.where(turned, size - 1 - where, where)
        return where.to(images.device)

    rows, columns = moved(height, False), moved(width, True)
    example = torch.arange(n, device=images.device).view(n, 1, 1)
    picked = images.permute(0, 2, 3, 1)[example, rows.unsqueeze(2), columns.unsqueeze(1)]
    return picked.permute(0, 3, 1, 2)


def fine_tune(
    network: nn.Module, images: Tensor, label: Tensor, options: argparse.Namespace
) -> None:
    """Train all layers and a fresh head on ``images``: (n, 3, h, w) and ``label``: (n,)."""
    torch.manual_seed(options.seed)
    head = nn.Linear(network.n_features, 1).to(images.device)
    parameters = [*network.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(
        parameters, lr=options.lr, momentum=0.9, weight_decay=options.weight_decay
    )
    generator = torch.Generator().manual_seed(options.seed)
    network.train()
    began = time.perf_counter()
    for epoch in range(options.epochs):
        order = torch.randperm(len(images), generator=generator)
        total = torch.zeros((), device=images.device)
        batches = order.split(options.batch_size)[: options.max_steps]
        for rows in batches:
            rows = rows.to(images.device)
            x = augmented(images[rows], generator).float()
            x = x.contiguous(memory_format=torch.channels_last)
            with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
                z = head(network(x)).squeeze(-1)
            loss = nn.functional.binary_cross_entropy_with_logits(z.float(), label[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(
            f"epoch {epoch + 1}/{options.epochs}, loss {total.item() / len(batches):.4f}, "
            f"{time.perf_counter() - began:.0f} s"
        )


@torch.no_grad()
def features(network: nn.Module, images: Tensor) -> Tensor:
    """Features of the frozen network, shape (n, d), of ``images``: (n, 3, h, w)."""
    network.eval()
    parts = []
    for part in images.split(256):
        x = part.float().contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
            parts.append(network(x).float())
    return torch.cat(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, help="folder with waterbirds/ and weights/; without it, WILDS's"
    )
    parser.add_argument("--download", type=Path, default=Path("data"), help="WILDS's folder")
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--test-as-validation", type=int, default=1_200, help="rows of test")
    add_options(
        parser,
        tau_highest=0.9,
        epochs=20,
        batch_size=32,
        draws=4_000,
        l2=0.03,
        last_layer_steps=1_000,
    )
    options = parser.parse_args()

    if options.data is None:
        raw, label, place, split = official.waterbirds(options.download, PIXELS)
        network: nn.Module = official.TorchvisionResNet50()
    else:
        raw, label, place, split = read_images(options.data / "waterbirds")
        weights = next((options.data / "weights" / "resnet50").glob("*.safetensors"))
        network = pretrained(weights)
    device = torch.device(options.device)
    network = network.to(device, memory_format=torch.channels_last)
    images = torch.as_tensor(raw).permute(0, 3, 1, 2).contiguous().to(device)
    y = torch.as_tensor(label, dtype=torch.float32, device=device)
    print(f"{len(images)} images, splits {np.bincount(split).tolist()}, {device}")

    in_train = torch.as_tensor(split == TRAIN, device=device)
    fine_tune(network, images[in_train], y[in_train], options)
    everything = Examples(features(network, images), label.astype(bool), place.astype(bool))

    # Rows of the official splits are in no promised order: divide by a seeded permutation.
    rng = np.random.default_rng(options.seed)
    validation = rng.permutation(np.flatnonzero(split == VALIDATION))
    test = rng.permutation(np.flatnonzero(split == TEST))
    half = len(validation) // 2
    write_table(
        options,
        train=everything.rows(validation[:half]),
        validation=everything.rows(validation[half:]).followed_by(
            everything.rows(test[: options.test_as_validation])
        ),
        held_out=everything.rows(test[options.test_as_validation :]),
        settings={
            "task": "waterbirds",
            "data": f"Waterbirds (WILDS), {PIXELS} pixels; half of validation trains the last "
            "layer, the other half and part of test validate",
            "model": "ResNet-50, ImageNet, fine-tuned",
            "optimizer": f"SGD {options.lr:g}, momentum 0.9, weight decay {options.weight_decay:g}",
        },
    )


if __name__ == "__main__":
    main()
