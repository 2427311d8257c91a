"""The same data and weights from their official loaders, for machines without a data folder."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


def waterbirds(root: Path, pixels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Waterbirds from WILDS: images (n, pixels, pixels, 3) as bytes, label, place, split."""
    from wilds import get_dataset

    dataset = get_dataset("waterbirds", root_dir=str(root), download=True)
    images = np.stack(
        [
            np.asarray(dataset.get_input(i).convert("RGB").resize((pixels, pixels)))
            for i in range(len(dataset))
        ]
    )
    place = dataset.metadata_array[:, dataset.metadata_fields.index("background")].numpy()
    return images, dataset.y_array.numpy(), place, np.asarray(dataset.split_array)


def celeba(root: Path) -> tuple[np.ndarray, list[str], np.ndarray]:
    """CelebA's attributes from torchvision: (n, 40) booleans, their names, and the split (n,)."""
    from torchvision.datasets import CelebA

    parts = [
        CelebA(str(root), split=split, target_type="attr", download=True)
        for split in ("train", "valid", "test")
    ]
    attributes = np.concatenate([part.attr.numpy() for part in parts]).astype(bool)
    names = [name for name in parts[0].attr_names if name]
    split = np.repeat(np.arange(3), [len(part.attr) for part in parts])
    return attributes, names, split


class TorchvisionResNet50(nn.Module):
    """torchvision's ImageNet ResNet-50 without classifier: RGB in 0..255, (n, 3, h, w) -> 2048."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models import ResNet50_Weights, resnet50

        self.network = resnet50(weights=ResNet50_Weights.IMAGENET1K_V2)
        self.network.fc = nn.Identity()
        self.n_features = 2048
        self.register_buffer("mean", torch.tensor([123.675, 116.28, 103.53]).view(1, 3, 1, 1))
        self.register_buffer("scale", torch.tensor([58.395, 57.12, 57.375]).view(1, 3, 1, 1))

    def forward(self, rgb: Tensor) -> Tensor:
        features: Tensor = self.network((rgb - self.mean) / self.scale)
        return features
