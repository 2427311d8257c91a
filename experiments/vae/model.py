"""Many variational autoencoders of one shape, trained side by side as one tensor program.

Every activation has the shape (models, batch, height, width, channels). A convolution is a copy of
the patches and one batched matrix product over the models; a transposed convolution is the product
first, then the adjoint of that copy. A GPU is busy with one large product instead of waiting for
many small kernels.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LATENT = 16
WIDTH = 128


def _copy_patches(images: Tensor, kernel: int, stride: int) -> Tensor:
    windows = images.unfold(2, kernel, stride).unfold(3, kernel, stride)
    return windows.permute(0, 1, 2, 3, 5, 6, 4).contiguous()


def _sum_patches(patches: Tensor, height: int, width: int, stride: int) -> Tensor:
    models, batch, rows, columns, kernel, _, channels = patches.shape
    images = patches.new_zeros(models, batch, height, width, channels)
    for i in range(kernel):
        for j in range(kernel):
            down = slice(i, i + stride * (rows - 1) + 1, stride)
            right = slice(j, j + stride * (columns - 1) + 1, stride)
            images[:, :, down, right] += patches[:, :, :, :, i, j]
    return images


class CopyPatches(torch.autograd.Function):
    """From (models, batch, height, width, channels) to (..., rows, columns, k, k, channels)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, kernel: int, stride: int) -> Tensor:
        ctx.sizes = (images.shape[2], images.shape[3], stride)
        return _copy_patches(images, kernel, stride)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _sum_patches(gradient, *ctx.sizes), None, None


class SumPatches(torch.autograd.Function):
    """The adjoint of `CopyPatches`: overlapping patches are added up."""

    @staticmethod
    def forward(ctx: Any, patches: Tensor, height: int, width: int, stride: int) -> Tensor:
        ctx.sizes = (patches.shape[4], stride)
        return _sum_patches(patches, height, width, stride)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _copy_patches(gradient, *ctx.sizes), None, None, None


def _uniform(models: int, rows: int, columns: int, bound: float, rng: torch.Generator) -> Tensor:
    one = (2 * torch.rand(1, rows, columns, generator=rng) - 1) * bound
    return nn.Parameter(one.repeat(models, 1, 1))  # every model starts from the same weights


class Linear(nn.Module):
    """(models, rows, inputs) to (models, rows, outputs)."""

    def __init__(self, models: int, inputs: int, outputs: int, rng: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = _uniform(models, inputs, outputs, bound, rng)
        self.bias = _uniform(models, 1, outputs, bound, rng)

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows, self.weight)


class Convolution(nn.Module):
    def __init__(
        self,
        models: int,
        inputs: int,
        outputs: int,
        rng: torch.Generator,
        *,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding
        self.product = Linear(models, kernel * kernel * inputs, outputs, rng)

    def forward(self, images: Tensor) -> Tensor:
        if self.padding:
            images = functional.pad(images, (0, 0, *[self.padding] * 4))
        if self.kernel == 1:
            patches = images[:, :, :, :, None, None]
        else:
            patches = CopyPatches.apply(images, self.kernel, self.stride)
        models, batch, rows, columns = patches.shape[:4]
        flat = patches.reshape(models, batch * rows * columns, -1)
        return self.product(flat).view(models, batch, rows, columns, -1)


class TransposedConvolution(nn.Module):
    """Stride 2: from n to ``size`` pixels a side."""

    def __init__(
        self,
        models: int,
        inputs: int,
        outputs: int,
        rng: torch.Generator,
        *,
        kernel: int,
        size: int,
    ) -> None:
        super().__init__()
        self.kernel, self.size, self.outputs = kernel, size, outputs
        bound = 2 / math.sqrt(inputs * kernel * kernel)  # a quarter of the patches meet a pixel
        self.weight = _uniform(models, inputs, kernel * kernel * outputs, bound, rng)
        self.bias = _uniform(models, 1, outputs, bound, rng)

    def forward(self, images: Tensor) -> Tensor:
        models, batch, rows, columns, channels = images.shape
        flat = torch.bmm(images.reshape(models, batch * rows * columns, channels), self.weight)
        shape = (models, batch, rows, columns, self.kernel, self.kernel, self.outputs)
        whole = 2 * (rows - 1) + self.kernel
        padded = SumPatches.apply(flat.view(shape), whole, whole, 2)
        inside = slice(1, 1 + self.size)  # padding 1
        return padded[:, :, inside, inside] + self.bias[:, :, None, None].to(padded.dtype)


class Residual(nn.Module):
    def __init__(self, models: int, channels: int, rng: torch.Generator) -> None:
        super().__init__()
        hidden = channels // 4
        self.wide = Convolution(models, channels, hidden, rng, kernel=3, padding=1)
        self.narrow = Convolution(models, hidden, channels, rng, kernel=1)

    def forward(self, images: Tensor) -> Tensor:
        return images + self.narrow(torch.relu(self.wide(torch.relu(images))))


class Autoencoders(nn.Module):
    """``models`` autoencoders for 28 x 28 images: 28-14-7-4, two residual blocks, and back."""

    def __init__(self, models: int, rng: torch.Generator, width: int = WIDTH) -> None:
        super().__init__()
        half = width // 2
        self.models, self.width = models, width
        self.encoder = nn.Sequential(
            Convolution(models, 1, half, rng, kernel=4, stride=2, padding=1),
            nn.ReLU(),
            Convolution(models, half, width, rng, kernel=4, stride=2, padding=1),
            nn.ReLU(),
            Convolution(models, width, width, rng, kernel=3, stride=2, padding=1),
            Residual(models, width, rng),
            Residual(models, width, rng),
        )
        self.to_latent = Linear(models, 16 * width, 2 * LATENT, rng)
        self.from_latent = Linear(models, LATENT, 16 * width, rng)
        self.decoder = nn.Sequential(
            TransposedConvolution(models, width, width, rng, kernel=3, size=7),
            Residual(models, width, rng),
            Residual(models, width, rng),
            nn.ReLU(),
            TransposedConvolution(models, width, half, rng, kernel=4, size=14),
            nn.ReLU(),
            TransposedConvolution(models, half, 1, rng, kernel=4, size=28),
        )

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """``images``: (batch, 28, 28). The mean and the log variance, (models, batch, latent)."""
        same = images[None, ..., None].expand(self.models, -1, -1, -1, -1)
        mean, log_variance = self.to_latent(self.encoder(same).flatten(2)).float().chunk(2, dim=-1)
        return mean, log_variance

    def decode(self, latent: Tensor) -> Tensor:
        """``latent``: (models, batch, latent). Logits of shape (models, batch, 28, 28)."""
        hidden = self.from_latent(latent)
        start = hidden.view(self.models, -1, 4, 4, self.width)
        return self.decoder(start)[..., 0].float()


def kl_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """From the standard normal prior, in nats, summed over the latent dimensions."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)
