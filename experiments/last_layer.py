"""Retraining a last layer on D_lam, a mix of a balanced and a plain set, for all lam at once."""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.common import save_table

TAU_LOWEST = 0.5  # the least confidence that a binary classifier can have


@dataclass(frozen=True)
class Examples:
    """Features (n, d) on the training device, labels (n,) and the spurious attribute (n,)."""

    features: Tensor
    label: np.ndarray
    spurious: np.ndarray

    def rows(self, rows: np.ndarray) -> "Examples":
        index = torch.as_tensor(rows, device=self.features.device)
        return Examples(self.features[index], self.label[rows], self.spurious[rows])

    def followed_by(self, other: "Examples") -> "Examples":
        return Examples(
            torch.cat([self.features, other.features]),
            np.concatenate([self.label, other.label]),
            np.concatenate([self.spurious, other.spurious]),
        )


def add_options(parser: argparse.ArgumentParser, **defaults: float) -> None:
    """Add the options that the training scripts share; defaults are by the names of options."""
    parser.add_argument("--out", type=Path, required=True, help="where the table goes")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--lams", type=int, default=201, help="values of lam in [0, 1]")
    parser.add_argument("--taus", type=int, default=41, help="confidence thresholds")
    parser.add_argument("--tau-highest", type=float)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--draws", type=int, help="size of D_lam (K)")
    parser.add_argument("--l2", type=float)
    parser.add_argument("--last-layer-steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, help="steps per epoch (smoke test)")
    parser.set_defaults(**defaults)


def mixture_counts(
    label: np.ndarray, spurious: np.ndarray, lam: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Count how often D_lam holds each example: (L, n), rows sum to ``draws`` (the paper's K).

    D_b has as many examples of each group as the smallest group has, D_u is the whole set. All lam
    share the same draws (B_i = 1 where U_i < lam), so that the curve over lam is smooth.
    """
    group = 2 * label.astype(int) + spurious.astype(int)
    smallest = min(int((group == g).sum()) for g in np.unique(group))
    balanced = np.concatenate(
        [rng.choice(np.flatnonzero(group == g), smallest, replace=False) for g in np.unique(group)]
    )
    uniform = rng.random(draws)
    from_balanced = balanced[rng.integers(len(balanced), size=draws)]
    from_plain = rng.integers(len(label), size=draws)
    chosen = np.where(uniform < lam[:, np.newaxis], from_balanced, from_plain)
    return np.stack([np.bincount(rows, minlength=len(label)) for rows in chosen])


def retrain(
    x: Tensor, label: np.ndarray, counts: np.ndarray, *, l2: float, steps: int
) -> tuple[Tensor, Tensor]:
    """Fit a logistic regression on every D_lam. ``x``: (n, d), ``counts``: (L, n) -> (d, L), (L,).

    The penalty makes the problem strictly convex: what comes out depends on the data alone.
    """
    y = torch.as_tensor(label, dtype=torch.float32, device=x.device).unsqueeze(1)
    share = torch.as_tensor(counts, dtype=torch.float32, device=x.device).T
    share = share / share.sum(dim=0)
    weight = torch.zeros(x.shape[1], share.shape[1], device=x.device, requires_grad=True)
    bias = torch.zeros(share.shape[1], device=x.device, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    began = time.perf_counter()
    for step in range(steps):
        z = x @ weight + bias
        bce = torch.nn.functional.binary_cross_entropy_with_logits(
            z, y.expand_as(z), reduction="none"
        )
        loss = (share * bce).sum() + l2 / 2 * weight.square().sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step + 1 == steps or step % 500 == 499:
            print(f"last layer: step {step + 1}/{steps}, {time.perf_counter() - began:.0f} s")
    return weight.detach(), bias.detach()


def write_table(
    options: argparse.Namespace,
    *,
    train: Examples,
    validation: Examples,
    held_out: Examples,
    settings: dict[str, Any],
) -> None:
    """Retrain the last layer on ``train`` for every lam, and store what it says elsewhere.

    ``options``: those of `add_options`; fewer than 256 thresholds tau. For each example and lam the
    table holds the predicted class and how many thresholds the confidence reaches, which makes
    every pair (lam, tau) exact.
    """
    l2, steps = options.l2, options.last_layer_steps
    lam = np.linspace(0, 1, options.lams)
    tau = np.linspace(TAU_LOWEST, options.tau_highest, options.taus)
    rng = np.random.default_rng(options.seed)
    counts = mixture_counts(train.label, train.spurious, lam, options.draws, rng)
    mean = train.features.mean(dim=0)
    scale = train.features.std(dim=0).clamp(min=1e-3)
    weight, bias = retrain((train.features - mean) / scale, train.label, counts, l2=l2, steps=steps)
    arrays: dict[str, np.ndarray] = {"lam": lam, "tau": tau}
    for name, part in (("validation", validation), ("held_out", held_out)):
        z = (((part.features - mean) / scale) @ weight + bias).cpu().numpy().astype(np.float64)
        positive = z > 0
        confidence = 1 / (1 + np.exp(-np.abs(z)))
        passed = np.searchsorted(tau, confidence, side="right").astype(np.uint8)
        # Rows are examples, because their bits rarely change over lam: the file is far smaller.
        arrays[f"{name}_positive"] = np.packbits(positive, axis=-1)
        arrays[f"{name}_passed"] = passed
        arrays[f"{name}_label"] = part.label.astype(bool)
        arrays[f"{name}_spurious"] = part.spurious.astype(bool)
        _print_curve(name, part, lam, positive, passed, tau)
    save_table(
        options.out,
        arrays,
        {
            **settings,
            "epochs": options.epochs,
            "batch_size": options.batch_size,
            "last_layer": "logistic regression, standardised features",
            "l2": l2,
            "last_layer_steps": steps,
            "draws": options.draws,
            "seed": options.seed,
            "split": [len(part.label) for part in (train, validation, held_out)],
        },
    )
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def _print_curve(
    name: str,
    part: Examples,
    lam: np.ndarray,
    positive: np.ndarray,
    passed: np.ndarray,
    tau: np.ndarray,
) -> None:
    group = 2 * part.label.astype(int) + part.spurious.astype(int)
    for index in range(0, len(lam), max((len(lam) - 1) // 8, 1)):
        wrong = positive[:, index] != part.label
        groups = [f"{wrong[group == g].mean():.3f}" for g in np.unique(group)]
        # The threshold at which about one example in twenty is not answered.
        edge = tau[max(int(np.quantile(passed[:, index], 0.05)) - 1, 0)]
        print(
            f"{name}: lam {lam[index]:.3f} error {wrong.mean():.4f} groups {' '.join(groups)} "
            f"tau at 5% miscoverage {edge:.3f}"
        )
