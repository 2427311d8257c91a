"""Multiple testing against MAPIE's."""

from collections.abc import Iterator

import numpy as np
from mapie.risk_control.fwer_control import control_fwer  # type: ignore[import-untyped]

from benchmarks.measure import Row, compare
from riskpilot.guarantee.procedures import fixed_sequence, holm

DELTA = 0.1
PROCEDURES = (
    ("Holm", holm, "bonferroni_holm"),
    ("fixed sequence", fixed_sequence, "fixed_sequence"),
)


def rows(quick: bool) -> Iterator[Row]:
    n = 200 if quick else 10_000
    # Half of the hypotheses are clearly false, and come first.
    p = np.concatenate([np.full(n // 2, 1e-12), np.random.default_rng(0).uniform(0.2, 1, n // 2)])
    log_p = np.log(p)
    for name, procedure, mapie_name in PROCEDURES:
        agree(np.flatnonzero(procedure(log_p, DELTA)), control_fwer(p, DELTA, mapie_name))
        yield compare(
            f"{name}, {n:,} hypotheses",
            "MAPIE",
            lambda procedure=procedure: procedure(log_p, DELTA),  # type: ignore[misc]
            lambda mapie_name=mapie_name: control_fwer(p, DELTA, mapie_name),  # type: ignore[misc]
            goal="faster",
            target=100.0,
            repeats=2 if quick else 7,
        )


def agree(ours: np.ndarray, peer: np.ndarray) -> None:
    if not np.array_equal(ours, peer):
        raise ValueError(f"Both must reject the same: ours {len(ours)}, MAPIE {len(peer)}.")
