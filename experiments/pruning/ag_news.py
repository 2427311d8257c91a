"""AG News as token numbers: from CSV files, or fetched from the Hugging Face hub."""

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CLASSES = 4
Text = tuple[int, str]  # class 0 to 3, title and description


@dataclass(frozen=True)
class Rows:
    """``ids``: shape (n, longest), 0 after the end; ``lengths`` and ``labels``: shape (n,)."""

    ids: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: np.ndarray) -> "Rows":
        return Rows(self.ids[rows], self.lengths[rows], self.labels[rows])


def read_texts(data: Path) -> tuple[list[Text], list[Text]]:
    """Training and test texts of ``data/ag_news``."""
    train = _read_csv(data / "ag_news" / "train_subset.csv.gz", header=True)
    return train, _read_csv(data / "ag_news" / "test.csv.gz", header=False)


def _read_csv(path: Path, *, header: bool) -> list[Text]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if header:
            next(rows)
        return [(int(row[0]) - 1, clean(f"{row[1]} {row[2]}")) for row in rows]


def clean(text: str) -> str:
    return " ".join(text.replace("\\", " ").split())


def tokenize(texts: list[Text], tokenizer: "Tokenizer", longest: int) -> Rows:
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    encoded = tokenizer.encode_batch([text for _, text in texts])
    ids = np.zeros((len(texts), longest), dtype=np.int32)
    for row, encoding in zip(ids, encoded, strict=True):
        row[: len(encoding.ids)] = encoding.ids
    lengths = np.array([len(encoding.ids) for encoding in encoded])
    return Rows(ids, lengths, np.array([label for label, _ in texts]))
