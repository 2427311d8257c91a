"""When may a small language model answer, and when must the large one?

Shows: a cascade threshold from cached confidences, a limit on the error, cost minimised; and the
same with a signed loss, "at most 2 points worse than the large model". The cached scores are
SIMULATED here; put those of your own models in their place. ``python examples/llm_cascade.py``.
"""

import numpy as np

import riskpilot as rp

# Simulated caches of 12,000 labelled questions: how sure the small model was, and who was right.
rng = np.random.default_rng(0)
n = 12_000
difficulty = rng.beta(1.5, 4, size=n)
small_right = rng.random(n) < 1 - difficulty
large_right = rng.random(n) < 1 - 0.25 * difficulty
confidence = np.clip(1 - difficulty + rng.normal(0, 0.1, size=n), 0, 1)

thresholds = np.linspace(0, 1, 101).round(2)
to_large = confidence < thresholds[:, None]  # (thresholds, questions)
wrong = np.where(to_large, ~large_right, ~small_right)
cost = np.where(to_large, 21, 1)  # the small model always runs; the large one costs 20

k = 4_000  # questions that choose; the others prove
configs = [{"threshold": t} for t in thresholds.tolist()]

print("At most 12% wrong:")
selection = rp.select_from_losses(
    rp.Problem([rp.Risk("wrong", limit=0.12)], minimize="cost", delta=0.05),
    validation={"wrong": wrong[:, :k], "cost": cost[:, :k]},
    calibration={"wrong": wrong[:, k:]},
    configs=configs,
)
print(selection)

print("\nAt most 2 points worse than the large model:")
worse = wrong.astype(float) - ~large_right  # -1, 0 or 1
selection = rp.select_from_losses(
    rp.Problem([rp.Risk("worse", limit=0.02, low=-1, high=1)], minimize="cost", delta=0.05),
    validation={"worse": worse[:, :k], "cost": cost[:, :k]},
    calibration={"worse": worse[:, k:]},
    configs=configs,
)
print(selection)
