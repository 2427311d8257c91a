"""MNIST as grey values in [0, 1]: from the original idx files, or fetched from OpenML."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Images = npt.NDArray[np.uint8]
SIDE = 28
VALIDATION = 10_000


@dataclass(frozen=True)
class Mnist:
    """Images of shape (n, 28, 28), grey values 0 to 255."""

    train: Images
    validation: Images
    held_out: Images


def load_mnist(data: Path | None, seed: int) -> Mnist:
    """Training images split at random 50,000 / 10,000; the official test images are held out.

    ``data`` holds ``mnist/*.gz``; None fetches MNIST from OpenML (needs scikit-learn).
    """
    if data is None:
        official_train, official_test = _from_openml()
    else:
        folder = data / "mnist"
        official_train = _read_idx(folder / "train-images-idx3-ubyte.gz")
        official_test = _read_idx(folder / "t10k-images-idx3-ubyte.gz")
    order = np.random.default_rng(seed).permutation(len(official_train))
    shuffled = official_train[order]
    return Mnist(shuffled[VALIDATION:], shuffled[:VALIDATION], official_test)


def _read_idx(path: Path) -> Images:
    with gzip.open(path) as file:
        content = file.read()
    count, height, width = np.frombuffer(content, ">i4", count=3, offset=4)
    return np.frombuffer(content, np.uint8, offset=16).reshape(count, height, width)


def _from_openml() -> tuple[Images, Images]:
    from sklearn.datasets import fetch_openml  # only where there are no files

    images, _ = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
    pixels = images.astype(np.uint8).reshape(-1, SIDE, SIDE)
    return pixels[:60_000], pixels[60_000:]
