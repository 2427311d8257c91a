"""A large model as the judge of a small one, on real texts: ``python -m experiments.real_judge``.

The small model of `riskpilot.datasets.load_cascade` answers where it is confident and hands over
the rest. At most 8 % of all texts may be answered wrongly; as few as possible are to be handed
over. The large model scores the small one's answers. On many splits, what is chosen with 500 labels
is compared with 500 labels and a judge of 5,000 further texts, and with 1,000 labels.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import riskpilot as rp
from riskpilot.datasets import load_cascade

OUT = Path(__file__).parent / "results" / "real_judge.json"
LIMIT, DELTA = 0.08, 0.1
THRESHOLDS = np.linspace(0.3, 1, 36).round(2)
Array = npt.NDArray[Any]


def compared(n_splits: int) -> dict[str, dict[str, float]]:
    """For each way to test: the share handed over on unseen texts, and how often limits broke."""
    data = load_cascade()
    problem = rp.Problem([rp.Risk("wrong", LIMIT)], minimize="handed_over", delta=DELTA)
    configs = [{"threshold": level} for level in THRESHOLDS.tolist()]

    def answered(rows: Array) -> Array:
        return data.confidence[rows] >= THRESHOLDS[:, None]

    def wrong(rows: Array) -> Array:
        return answered(rows) & ~data.small_right[rows]

    def judged(rows: Array) -> Array:
        return np.where(answered(rows), data.judged_wrong[rows], 0.0)

    handed_over: dict[str, list[float]] = {}
    broken: dict[str, list[bool]] = {}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(data.confidence))
        seen, few, fresh, rest = np.split(order, [1_000, 1_500, 6_500])
        validation = {"wrong": wrong(seen), "handed_over": 1 - answered(seen).mean(axis=1)}
        judge = {"labelled": {"wrong": judged(few)}, "unlabelled": {"wrong": judged(fresh)}}
        for name, rows, scores in (
            ("500 labels", few, None),
            ("500 labels and a judge", few, judge),
            ("1,000 labels", np.concatenate([few, fresh[:500]]), None),
        ):
            selection = rp.select_from_losses(
                problem,
                validation=validation,
                calibration={"wrong": wrong(rows)},
                judge=scores,
                configs=configs,
            )
            found = selection.config
            at = None if found is None else configs.index(found)
            handed_over.setdefault(name, []).append(
                1.0 if at is None else 1 - float(answered(rest)[at].mean())
            )
            broken.setdefault(name, []).append(at is not None and wrong(rest)[at].mean() > LIMIT)
    return {
        name: {
            "handed over": round(float(np.mean(shares)), 4),
            "its standard error": round(float(np.std(shares) / np.sqrt(n_splits)), 4),
            "limit broken": round(float(np.mean(broken[name])), 4),
        }
        for name, shares in handed_over.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison and write its figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_judge", description=__doc__)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    found = {"splits": options.splits, "ways": compared(options.splits)}
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
