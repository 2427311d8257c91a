"""Feeds a watch in small batches until all labels are counted; meant to be killed at any moment.

Arguments: the place of the watch, the certificate, how many labels there are. A line is printed
after every block, so that whoever kills it knows that it was at work.
"""

import sys

import numpy as np

import riskpilot as rp

BATCH = 20


def labels(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.random(n) < np.where(np.arange(n) < n // 2, 0.05, 0.3)


def main(place: str, certificate: str, n: int) -> None:
    losses = labels(n)
    start = 0
    while start < n:
        stop = min(start + BATCH, n)
        with rp.Watch.open(place, certificate) as watch:
            # A worker that died does not know how far it came, and sends everything again.
            watch.update({"error": losses[:stop]}, ids=np.arange(stop), at="then")
        start = stop
        print(stop, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
