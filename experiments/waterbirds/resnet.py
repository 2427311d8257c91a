"""ResNet-50 as Keras and Caffe draw it, in plain torch, for weights in that style."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

BLOCKS = (3, 4, 6, 3)
EXPANSION = 4
BN_EPS = 1e-3
MEAN_BGR = (103.939, 116.779, 123.68)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut; the stride sits on the first 1x1 convolution."""

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = EXPANSION * width
        self.conv1 = nn.Conv2d(n_in, width, 1, stride=stride)
        self.bn1 = nn.BatchNorm2d(width, eps=BN_EPS)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(width, eps=BN_EPS)
        self.conv3 = nn.Conv2d(width, n_out, 1)
        self.bn3 = nn.BatchNorm2d(n_out, eps=BN_EPS)
        self.down: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.down = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride=stride), nn.BatchNorm2d(n_out, eps=BN_EPS)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        inner = torch.relu(self.bn2(self.conv2(inner)))
        return torch.relu(self.bn3(self.conv3(inner)) + self.down(x))


class ResNet50(nn.Module):
    """RGB images in 0..255, shape (n, 3, h, w), to features of shape (n, 32 * width)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3)
        self.bn1 = nn.BatchNorm2d(width, eps=BN_EPS)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        n_in = width
        for stage, n_blocks in enumerate(BLOCKS):
            inner = width * 2**stage
            blocks = []
            for block in range(n_blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(n_in, inner, stride))
                n_in = EXPANSION * inner
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.n_features = n_in
        mean = torch.tensor(MEAN_BGR).view(1, 3, 1, 1)
        self.register_buffer("mean", mean, persistent=False)

    def forward(self, rgb: Tensor) -> Tensor:
        x = rgb.flip(1) - self.mean
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return x.mean(dim=(2, 3))


def pretrained(path: Path) -> ResNet50:
    """The network with the weights of a safetensors file; its width is that of the file."""
    weights: Mapping[str, Tensor] = load_file(path)
    network = ResNet50(width=weights["conv1.weight"].shape[0])
    state = network.state_dict()
    # Batch counters are torch's own; everything else must be in the file.
    counters = {name: state[name] for name in state if name.endswith("num_batches_tracked")}
    network.load_state_dict({**{k: v.float() for k, v in weights.items()}, **counters})
    return network
