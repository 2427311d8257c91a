"""Train a beta-VAE on MNIST for every beta of a grid, and store what each loses on each image.

Run from the root of the checkout, then join the parts with ``experiments.vae.merge``:
``python -m experiments.vae.train --data DIR --out parts``.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from experiments.vae.mnist import Images, load_mnist
from experiments.vae.model import LATENT, WIDTH, Autoencoders, kl_divergence


@dataclass(frozen=True)
class Settings:
    beta_low: float = 0.03
    beta_high: float = 100.0
    count: int = 61
    epochs: int = 10
    batch: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 0.05
    width: int = WIDTH
    latent: int = LATENT
    seed: int = 0
    precision: str = "bfloat16"

    @property
    def betas(self) -> np.ndarray:
        return np.geomspace(self.beta_low, self.beta_high, self.count)


def tensor(images: Images, device: str) -> Tensor:
    return torch.tensor(images, device=device).float() / 255


class Trainer:
    """The models of some betas. All see the same batches and the same noise."""

    def __init__(self, settings: Settings, betas: np.ndarray, device: str) -> None:
        rng = torch.Generator().manual_seed(settings.seed)
        self.settings, self.device = settings, device
        self.betas = torch.tensor(betas, dtype=torch.float32, device=device)
        self.models = Autoencoders(len(betas), rng, settings.width).to(device)
        self.noise = torch.Generator(device).manual_seed(settings.seed)
        self.optimizer = torch.optim.AdamW(
            self.models.parameters(),
            lr=settings.learning_rate,
            betas=(0.91, 0.99),
            weight_decay=settings.weight_decay,
            fused=device.startswith("cuda"),
        )

    def step(self, images: Tensor) -> Tensor:
        """One step of every model on ``images``, shape (batch, 28, 28). Losses, shape (models,)."""
        low = self.settings.precision == "bfloat16"
        with torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=low):
            mean, log_variance = self.models.encode(images)
            noise = torch.randn(mean.shape[1:], generator=self.noise, device=self.device)
            logits = self.models.decode(mean + (log_variance / 2).exp() * noise)
        entropy = functional.binary_cross_entropy_with_logits(
            logits, images.expand_as(logits), reduction="none"
        )
        distortion = entropy.sum((2, 3)).mean(1)
        rate = kl_divergence(mean, log_variance).mean(1)
        losses = distortion + self.betas * rate  # eq:vae
        self.optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()  # no model has a part in the loss of another
        self.optimizer.step()
        return losses.detach()

    @torch.no_grad()
    def evaluate(self, images: Tensor, batch: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """Squared error per pixel at the posterior mean, and KLD; (models, images) each."""
        errors, rates = [], []
        for some in images.split(batch):
            mean, log_variance = self.models.encode(some)
            difference = self.models.decode(mean).sigmoid() - some
            errors.append(difference.square().mean((2, 3)).cpu())
            rates.append(kl_divergence(mean, log_variance).cpu())
        return torch.cat(errors, 1).numpy(), torch.cat(rates, 1).numpy()


def train(trainer: Trainer, images: Tensor) -> None:
    """All epochs; the last batch of an epoch is left out where it is not full."""
    settings = trainer.settings
    rng = np.random.default_rng(settings.seed)
    start = time.perf_counter()
    for epoch in range(settings.epochs):
        order = torch.tensor(rng.permutation(len(images)), device=images.device)
        for rows in order[: len(order) // settings.batch * settings.batch].split(settings.batch):
            losses = trainer.step(images[rows])
        ends = f"{losses[0].item():.1f} ... {losses[-1].item():.1f}"
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1}/{settings.epochs}  loss {ends}  {seconds:.0f} s", flush=True)


def benchmark(trainer: Trainer, images: Tensor, steps: int = 50) -> None:
    for _ in range(10):
        trainer.step(images[: trainer.settings.batch])
    _wait(trainer.device)
    start = time.perf_counter()
    for _ in range(steps):
        trainer.step(images[: trainer.settings.batch])
    _wait(trainer.device)
    each = (time.perf_counter() - start) / steps
    whole = each * trainer.settings.epochs * (len(images) // trainer.settings.batch)
    print(f"{1000 * each:.1f} ms a step of {len(trainer.betas)} models: {whole:.0f} s in all")


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="holds mnist/*.gz; default: fetch from OpenML")
    parser.add_argument("--out", type=Path, required=True, help="folder for the parts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--betas", default=":", help="part of the grid, such as 0:20")
    parser.add_argument("--rows", type=int, help="use so many images of each split (for a try)")
    parser.add_argument("--benchmark", action="store_true", help="time 50 steps and stop")
    for name in ("beta_low", "beta_high", "count", "epochs", "batch", "width", "seed"):
        value = getattr(defaults, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--precision", choices=("bfloat16", "float32"), default=defaults.precision)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    chosen = {key: value for key, value in vars(options).items() if key in asdict(Settings())}
    settings = Settings(**chosen)
    first, _, last = options.betas.partition(":")
    span = slice(int(first or 0), int(last or settings.count))
    mnist = load_mnist(options.data, settings.seed)
    images = tensor(mnist.train[: options.rows], options.device)
    trainer = Trainer(settings, settings.betas[span], options.device)
    if options.benchmark:
        benchmark(trainer, images)
        return
    train(trainer, images)
    arrays: dict[str, np.ndarray] = {"betas": settings.betas[span]}
    for split in ("validation", "held_out"):
        rows = tensor(getattr(mnist, split)[: options.rows], options.device)
        arrays[f"{split}_mse"], arrays[f"{split}_kld"] = trainer.evaluate(rows)
    for beta, mse, kld in zip(
        arrays["betas"], arrays["validation_mse"], arrays["validation_kld"], strict=True
    ):
        print(f"beta {beta:9.4f}  mse {mse.mean():.5f}  kld {kld.mean():9.4f}")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"part_{span.start:03d}_{span.stop:03d}.npz"
    np.savez_compressed(path, settings=json.dumps(asdict(settings)), **arrays)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
