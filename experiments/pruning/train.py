"""Fine-tune an encoder on AG News, prune it in three ways, and store what each way loses and costs.

Run from the root of the checkout, then join the parts with ``experiments.pruning.merge``:
``python -m experiments.pruning.train --data DIR --out parts --checkpoints DIR``.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from experiments.pruning.ag_news import CLASSES, Rows, read_texts, tokenize
from experiments.pruning.model import HIDDEN, Network, run_pruned


@dataclass(frozen=True)
class Settings:
    longest: int = 128
    importance_rows: int = 5000
    validation_rows: int = 2500
    epochs: int = 3
    batch: int = 64
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    reader_epochs: int = 2
    reader_batch: int = 128
    reader_learning_rate: float = 1e-3
    token_steps: int = 12
    head_steps: int = 12
    exit_steps: int = 45
    seed: int = 0
    precision: str = "bfloat16"


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    keep: Tensor
    labels: Tensor


class Loader:
    """Rows on the device, in batches cut to their longest text."""

    def __init__(self, rows: Rows, device: str) -> None:
        self.rows = rows
        self.ids = torch.tensor(rows.ids, device=device)
        self.lengths = torch.tensor(rows.lengths, device=device)
        self.labels = torch.tensor(rows.labels, device=device)

    def take(self, index: np.ndarray) -> Batch:
        width = min(-(-int(self.rows.lengths[index].max()) // 8) * 8, self.ids.shape[1])
        where = torch.tensor(index, device=self.ids.device)
        places = torch.arange(width, device=self.ids.device)
        keep = places < self.lengths[where, None]
        return Batch(self.ids[where, :width].long(), keep, self.labels[where])

    def shuffled(self, batch: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Batches in random order; the texts of one batch are of similar length."""
        order = rng.permutation(len(self.rows))
        batches = []
        for start in range(0, len(order), 50 * batch):
            some = order[start : start + 50 * batch]
            some = some[np.argsort(self.rows.lengths[some], kind="stable")]
            batches += [some[i : i + batch] for i in range(0, len(some), batch)]
        return [batches[index] for index in rng.permutation(len(batches))]

    def by_length(self, batch: int) -> list[np.ndarray]:
        order = np.argsort(self.rows.lengths, kind="stable")
        return [order[start : start + batch] for start in range(0, len(order), batch)]


class Experiment:
    def __init__(self, network: Network, settings: Settings, device: str) -> None:
        self.network, self.settings, self.device = network, settings, device

    def autocast(self) -> torch.autocast:
        low = self.settings.precision == "bfloat16"
        return torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=low)

    def optimizer(self, parameters: Iterator[Any], rate: float, decay: float) -> torch.optim.AdamW:
        fused = self.device.startswith("cuda")
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=fused)

    def fine_tune(self, train: Loader, stop_after: int | None = None) -> None:
        """Encoder and classifier, with warm-up over 6 % of the steps and linear decay."""
        settings, network = self.settings, self.network
        rng = np.random.default_rng(settings.seed)
        plan = [b for _ in range(settings.epochs) for b in train.shuffled(settings.batch, rng)]
        trained = (network.encoder, network.classifier)
        parameters = [p.requires_grad_() for part in trained for p in part.parameters()]
        optimizer = self.optimizer(iter(parameters), settings.learning_rate, settings.weight_decay)
        warm = max(1, round(0.06 * len(plan)))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (len(plan) - step) / len(plan))
        )
        network.train()
        progress = Progress("fine-tuning", len(plan))
        for index in plan[:stop_after]:
            batch = train.take(index)
            with self.autocast():
                states = network.encoder(batch.ids, batch.keep)[-1]
                logits = network.classifier(states[:, 0]).float()
            loss = functional.cross_entropy(logits, batch.labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            progress(loss)
        network.eval().requires_grad_(False)

    def head_importance(self, rows: Loader) -> np.ndarray:
        """Mean absolute gradient of the loss by the gate of each head, of norm 1 in each layer.

        Shape (layers, heads).
        """
        layers = self.network.encoder.layers
        total = torch.zeros(len(layers), layers[0].heads, device=self.device)
        for index in rows.by_length(self.settings.reader_batch):
            batch = rows.take(index)
            gates = torch.ones(len(index), *total.shape, device=self.device, requires_grad=True)
            with self.autocast():
                states = self.network.encoder(batch.ids, batch.keep, gates)[-1]
                logits = self.network.classifier(states[:, 0]).float()
            loss = functional.cross_entropy(logits, batch.labels, reduction="sum")
            total += torch.autograd.grad(loss, gates)[0].abs().sum(0)
        return (total / total.norm(dim=1, keepdim=True)).cpu().numpy()

    def train_readers(self, train: Loader, stop_after: int | None = None) -> None:
        """Exit heads on the labels and token-importance predictors on ranks; a frozen encoder."""
        settings, network = self.settings, self.network
        rng = np.random.default_rng(settings.seed + 1)
        size = settings.reader_batch
        plan = [b for _ in range(settings.reader_epochs) for b in train.shuffled(size, rng)]
        readers = [network.exits, network.importance]
        parameters = [p.requires_grad_() for reader in readers for p in reader.parameters()]
        optimizer = self.optimizer(iter(parameters), settings.reader_learning_rate, 0.0)
        progress = Progress("readers", len(plan))
        for index in plan[:stop_after]:
            batch = train.take(index)
            states, target = self.token_importance(batch)
            counted = batch.keep.clone()
            counted[:, 0] = False
            exits = network.exits(states[:, 0])
            tokens = network.importance(states[counted])[..., 0]
            labels = batch.labels[:, None].expand(exits.shape[:2])
            loss = functional.cross_entropy(exits.flatten(0, 1), labels.flatten())
            loss = loss + functional.binary_cross_entropy_with_logits(tokens, target[counted])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            progress(loss)
        network.requires_grad_(False)

    def token_importance(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """States (batch, tokens, layers - 1, width) and the importance of tokens in these layers.

        The importance (batch, tokens, layers - 1) is the rank, scaled to (0, 1), of |state .
        gradient| among the tokens of the text after [CLS]; the gradient is that of the logit of
        the class that the model predicts.
        """
        encoder = self.network.encoder
        with self.autocast():
            states = encoder.embed(batch.ids).requires_grad_()
            after = []
            for layer in encoder.layers:
                states = layer(states, batch.keep, None)
                after.append(states)
            logits = self.network.classifier(states[:, 0]).float()
        gradients = torch.autograd.grad(logits.max(1).values.sum(), after[:-1])
        with torch.no_grad():
            early = torch.stack(after[:-1], 2).float()
            effect = (early * torch.stack(gradients, 2)).sum(-1).abs()
            effect = effect.masked_fill(~batch.keep[:, :, None], torch.inf)
            effect[:, 0] = torch.inf
            rank = effect.argsort(1).argsort(1)
            count = (batch.keep.sum(1) - 1).clamp(min=1)
            return early, (rank + 0.5) / count[:, None, None]

    def run(self, rows: Loader, gates: Tensor | None, threshold: float | None) -> dict[str, Tensor]:
        """What `run_pruned` gives for all rows, in their order; ``scores`` as a flat list."""
        batches = rows.by_length(512)
        results = []
        for index in batches:
            batch = rows.take(index)
            with self.autocast():
                results.append(
                    run_pruned(
                        self.network, batch.ids, batch.keep, gates=gates, threshold=threshold
                    )
                )
        order = torch.tensor(np.argsort(np.concatenate(batches)), device=self.device)
        whole = {
            name: torch.cat([result[name] for result in results], 1)[:, order]
            for name in ("tokens", "confidence", "prediction")
        }
        scores = torch.cat([result["scores"].flatten() for result in results])
        return {**whole, "scores": scores[~scores.isnan()]}


class Progress:
    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done, self.start = what, total, 0, time.perf_counter()

    def __call__(self, loss: Tensor) -> None:
        self.done += 1
        if self.done % 200 == 0 or self.done == self.total:
            seconds = time.perf_counter() - self.start
            print(
                f"{self.what} {self.done}/{self.total}  loss {loss.item():.3f}  {seconds:.0f} s",
                flush=True,
            )


def thresholds(run: dict[str, Tensor], settings: Settings) -> dict[str, np.ndarray]:
    """The grids. At its lowest threshold no token and no head goes; at its highest no text exits.

    ``run``: a pass without pruning over rows that nothing was trained on.
    """
    scores = run["scores"].cpu().numpy()
    sure = run["confidence"].cpu().numpy()
    low = -1.125  # below -log 3, the log odds of a uniform guess among 4 classes
    high = max(np.ceil(np.quantile(sure, 0.995) * 64) / 64, 0.0)
    return {
        "token_grid": np.linspace(*np.quantile(scores, (0.001, 0.95)), settings.token_steps),
        "head_grid": np.arange(settings.head_steps) / settings.head_steps,
        "exit_grid": np.linspace(low, high, settings.exit_steps),
    }


def store_base(
    path: Path,
    run: dict[str, Tensor],
    test: Rows,
    grids: dict[str, np.ndarray],
    importance: np.ndarray,
    settings: dict[str, Any],
) -> None:
    """What does not depend on the pruning: the model without it, the grids, the head ranks."""
    high = float(grids["exit_grid"][-1])  # a multiple of 1/64, exact in float16
    np.savez_compressed(
        path,
        settings=json.dumps(settings),
        lengths=test.lengths.astype(np.uint8),
        confidence=run["confidence"].cpu().numpy().clip(max=high).astype(np.float16),
        correct=run["prediction"].cpu().numpy() == test.labels,
        head_importance=importance,
        heads=(head_scores(importance) >= grids["head_grid"][:, None, None]).sum(2),
        **grids,
    )


def head_scores(importance: np.ndarray) -> np.ndarray:
    """Ranks of all heads, scaled to [0, 1). Shape (layers, heads)."""
    return (
        importance.flatten().argsort(kind="stable").argsort().reshape(importance.shape)
        / importance.size
    )


def run_grid(
    experiment: Experiment,
    test: Loader,
    grids: dict[str, np.ndarray],
    importance: np.ndarray,
    head_steps: range,
) -> dict[str, np.ndarray]:
    """One pass for each pair of a head and a token threshold; arrays (heads, tokens, layers, n).

    ``confidence`` is the running maximum over the layers, as the number of exit thresholds that
    it exceeds: the text leaves after the first layer where that number is above the index of the
    exit threshold.
    """
    exit_grid = torch.tensor(grids["exit_grid"], dtype=torch.float32, device=experiment.device)
    labels = test.labels
    parts: dict[str, list[np.ndarray]] = {"tokens": [], "confidence": [], "correct": []}
    start = time.perf_counter()
    for step in head_steps:
        kept = head_scores(importance) >= grids["head_grid"][step]
        gates = None if kept.all() else torch.tensor(kept, device=experiment.device)[None].float()
        for token_step, threshold in enumerate(grids["token_grid"]):
            run = experiment.run(test, gates, float(threshold) if token_step else None)
            best = run["confidence"].cummax(0).values.clamp(max=exit_grid[-1].item())
            parts["tokens"].append(run["tokens"].byte().cpu().numpy())
            parts["confidence"].append(torch.searchsorted(exit_grid, best).byte().cpu().numpy())
            parts["correct"].append((run["prediction"] == labels).cpu().numpy())
        right = np.mean([part[-1] for part in parts["correct"][-len(grids["token_grid"]) :]])
        seconds = time.perf_counter() - start
        print(f"heads {step}: {right:.4f} right without exits  {seconds:.0f} s", flush=True)
    shape = (len(head_steps), len(grids["token_grid"]))
    return {name: np.stack(some).reshape(*shape, *some[0].shape) for name, some in parts.items()}


def load_encoder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor], Tokenizer]:
    weights: dict[str, Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        weights |= load_file(path)
    config = json.loads((folder / "config.json").read_text())
    return config, weights, Tokenizer.from_file(str(folder / "tokenizer.json"))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="holds ag_news/ and weights/bge_small/; default: fetch from hub"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the parts")
    parser.add_argument("--checkpoints", type=Path, help="keep the trained network here, and reuse")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, help="use so many texts of train and test (for a try)")
    parser.add_argument("--heads", default=":", help="part of the head thresholds, such as 0:3")
    parser.add_argument("--benchmark", action="store_true", help="time some steps and stop")
    for name, value in asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser.parse_args(arguments)


def benchmark(experiment: Experiment, train: Loader, test: Loader) -> None:
    settings = experiment.settings

    def seconds(work: Any) -> float:
        start = time.perf_counter()
        work()
        if experiment.device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def per_step(work: Any) -> float:
        work(train, 10)
        return seconds(lambda: work(train, 50)) / 50

    steps = settings.epochs * len(train.rows) / settings.batch
    whole = per_step(experiment.fine_tune) * steps
    print(f"fine-tuning: {whole:.0f} s in all")
    steps = settings.reader_epochs * len(train.rows) / settings.reader_batch
    print(f"readers: {per_step(experiment.train_readers) * steps:.0f} s in all")
    layers = experiment.network.encoder.layers
    gates = torch.ones(1, len(layers), layers[0].heads, device=experiment.device)
    experiment.run(test, gates, 0.5)
    pairs = settings.token_steps * settings.head_steps
    print(f"grid: {seconds(lambda: experiment.run(test, gates, 0.5)) * pairs:.0f} s in all")


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    settings = Settings(**{name: getattr(options, name) for name in asdict(Settings())})
    torch.manual_seed(settings.seed)
    if options.data is None:
        from experiments.pruning.hub import fetch_encoder, fetch_texts  # needs the network

        train_texts, test_texts = fetch_texts()
        config, weights, tokenizer = fetch_encoder()
    else:
        train_texts, test_texts = read_texts(options.data)
        config, weights, tokenizer = load_encoder(options.data / "weights" / "bge_small")

    rng = np.random.default_rng(settings.seed)
    rows = tokenize(train_texts, tokenizer, settings.longest)
    rows = rows[rng.permutation(len(rows))[: options.rows]]
    test_rows = tokenize(test_texts, tokenizer, settings.longest)
    test_rows = test_rows[rng.permutation(len(test_rows))[: options.rows]]
    held = np.arange(len(rows)) < settings.importance_rows
    train, spare = Loader(rows[~held], options.device), Loader(rows[held], options.device)
    test = Loader(test_rows, options.device)
    print(f"{len(train.rows)} train, {len(spare.rows)} for importance, {len(test_rows)} test rows")

    network = Network(config, CLASSES)
    network.encoder.load_state_dict({name: value.float() for name, value in weights.items()})
    experiment = Experiment(network.to(options.device), settings, options.device)
    if options.benchmark:
        benchmark(experiment, train, test)
        return
    kept = None if options.checkpoints is None else options.checkpoints / "network.pt"
    if kept is not None and kept.is_file():
        network.load_state_dict(torch.load(kept, map_location=options.device))
        network.eval().requires_grad_(False)
    else:
        experiment.fine_tune(train)
        experiment.train_readers(train)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            torch.save(network.state_dict(), kept)

    importance = experiment.head_importance(spare)
    grids = thresholds(experiment.run(spare, None, None), settings)
    options.out.mkdir(parents=True, exist_ok=True)
    unpruned = experiment.run(test, None, None)
    right = (unpruned["prediction"] == test.labels).float().mean(1).tolist()
    print("right after each layer:", " ".join(f"{value:.4f}" for value in right))
    shape = {name: config[f"{name}_size"] for name in ("hidden", "intermediate")}
    shape |= {"heads": config["num_attention_heads"], "reader_hidden": HIDDEN, "classes": CLASSES}
    described = {**asdict(settings), **shape, "train_rows": len(train.rows)}
    store_base(options.out / "base.npz", unpruned, test_rows, grids, importance, described)

    first, _, last = options.heads.partition(":")
    span = range(int(first or 0), int(last or settings.head_steps))
    for start in range(span.start, span.stop, 3):
        steps = range(start, min(start + 3, span.stop))
        parts = run_grid(experiment, test, grids, importance, steps)
        path = options.out / f"part_{steps.start:02d}_{steps.stop:02d}.npz"
        np.savez_compressed(path, **parts)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
