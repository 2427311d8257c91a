"""Train a small and a large model on AG News, and store what each says of texts that none has seen.

Run from the root of the checkout; the large model wants a GPU, the small one scikit-learn:
``python -m experiments.cascade.train --data DIR --out scores.npz``. With ``--only large`` and then
``--only small`` the two parts can run on two machines; the second one needs the file of the first.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.pruning.ag_news import CLASSES, Rows, Text, read_texts, tokenize

# Of the shuffled training texts: the first train the large model, some of these the small one, and
# the rest is the traffic. The official test texts follow the traffic.
LARGE_ROWS, SMALL_ROWS = 30_000, 2_000


@dataclass(frozen=True)
class Texts:
    """``train``: the texts that models are trained on; ``asked``: those that they are asked."""

    train: list[Text]
    asked: list[Text]


def split(data: Path, rows: int | None = None, seed: int = 0) -> Texts:
    """Read AG News and split it; ``rows``: use so many training and test texts (for a try)."""
    train, test = read_texts(data)
    rng = np.random.default_rng(seed)
    shuffled = [train[i] for i in rng.permutation(len(train))[:rows]]
    held = [test[i] for i in rng.permutation(len(test))[:rows]]
    n = min(LARGE_ROWS, len(shuffled) // 2)
    return Texts(shuffled[:n], shuffled[n:] + held)


def small_chances(texts: Texts) -> np.ndarray:
    """What a linear model on words gives each class, shape (texts, classes)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(min_df=2), LogisticRegression(C=10, max_iter=1_000))
    few = texts.train[:SMALL_ROWS]
    model.fit([text for _, text in few], [label for label, _ in few])
    return model.predict_proba([text for _, text in texts.asked])


def large_chances(texts: Texts, data: Path, device: str, epochs: int) -> np.ndarray:
    """What the fine-tuned encoder gives each class, shape (texts, classes)."""
    import torch

    from experiments.pruning.model import Network
    from experiments.pruning.train import Experiment, Loader, Settings, load_encoder

    settings = Settings(epochs=epochs)
    torch.manual_seed(settings.seed)
    config, weights, tokenizer = load_encoder(data / "weights" / "bge_small")
    network = Network(config, CLASSES)
    network.encoder.load_state_dict({name: value.float() for name, value in weights.items()})
    experiment = Experiment(network.to(device), settings, device)

    def on_device(some: list[Text]) -> Loader:
        rows: Rows = tokenize(some, tokenizer, settings.longest)
        return Loader(rows, device)

    experiment.fine_tune(on_device(texts.train))
    asked = on_device(texts.asked)
    found = np.empty((len(texts.asked), CLASSES))
    for index in asked.by_length(512):
        batch = asked.take(index)
        with torch.no_grad(), experiment.autocast():
            logits = network.classifier(network.encoder(batch.ids, batch.keep)[-1][:, 0])
        found[index] = torch.softmax(logits.float(), 1).cpu().numpy()
    return found


def scores(small: np.ndarray, large: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """What a cascade and a judge need, by text: who is right, how sure the small model is, and how
    likely its answer is wrong in the eyes of the large one."""
    answer = small.argmax(axis=1)
    return {
        "small_right": np.packbits(answer == labels),
        "large_right": np.packbits(large.argmax(axis=1) == labels),
        "confidence": small.max(axis=1).astype(np.float16),
        "judged_wrong": (1 - large[np.arange(len(large)), answer]).astype(np.float16),
        "n": np.array(len(labels)),
    }


def main(arguments: list[str] | None = None) -> None:
    """Train what is asked for, and store the scores."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.cascade.train", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="ag_news/ and weights/bge_small/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=("large", "small"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rows", type=int, help="use so many texts of train and test (for a try)")
    options = parser.parse_args(arguments)
    texts = split(options.data, options.rows)
    halfway = options.out.with_suffix(".large.npy")
    if options.only != "small":
        found = large_chances(texts, options.data, options.device, options.epochs)
        np.save(halfway, found.astype(np.float32))
    if options.only != "large":
        large, small = np.load(halfway), small_chances(texts)
        labels = np.array([label for label, _ in texts.asked])
        for name, chances in (("small", small), ("large", large)):
            print(f"{name}: {(chances.argmax(axis=1) == labels).mean():.4f} right")
        np.savez_compressed(options.out, **scores(small, large, labels))
        halfway.unlink()


if __name__ == "__main__":
    main()
