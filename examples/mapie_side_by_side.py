"""riskpilot and MAPIE on the same threshold problem: same classifier, same data, same limits.

Precision of at least 75 % with confidence 90 %, and the best recall. Both calls are shown; time,
threshold, and precision and recall on unseen people come from this one run. MAPIE calibrates on all
the data that riskpilot splits into validation and calibration. Needs MAPIE: in a clone of riskpilot
``pip install '.[bench]'``, then ``python examples/mapie_side_by_side.py``.
"""

import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import riskpilot as rp
from riskpilot.datasets import load_adult

try:
    from mapie.risk_control import BinaryClassificationController
except ModuleNotFoundError as error:
    raise SystemExit(
        f"This example needs MAPIE ({error}). In a clone of riskpilot: pip install '.[bench]'"
    ) from None

adult = load_adult()
order = np.random.default_rng(0).permutation(len(adult.label))
train, held_out, test = np.split(order, [8_000, 20_000])
X, y = adult.features, adult.label.astype(int)
model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X[train], y[train])
# Somebody is flagged at every one of these. Where nobody is, precision is undefined: riskpilot
# gives such a threshold p = 1 and goes on, MAPIE 1.6 then finds nothing at all.
thresholds = np.linspace(0, 0.9, 91).round(2)


def with_mapie() -> float | None:
    controller = BinaryClassificationController(
        predict_function=model.predict_proba,
        risk="precision",
        target_level=0.75,
        confidence_level=0.9,
        best_predict_param_choice="recall",
        list_predict_params=thresholds,
    )
    controller.calibrate(X[held_out], y[held_out])
    return controller.best_predict_param


def with_riskpilot() -> float | None:
    score, label = model.predict_proba(X[held_out])[:, 1], y[held_out] == 1
    flagged = score >= thresholds[:, None]
    false = np.where(flagged, ~label, np.nan)  # 1 - precision: counts for flagged people only
    missed = (label & ~flagged)[:, :4_000]
    selection = rp.select_from_losses(
        rp.Problem([rp.Risk("false", limit=0.25, conditional=True)], minimize="missed"),
        validation={"false": false[:, :4_000], "missed": missed},
        calibration={"false": false[:, 4_000:]},
        configs=[{"threshold": t} for t in thresholds.tolist()],
    )
    return None if selection.config is None else selection.config["threshold"]


print(f"{'':10} {'seconds':>8} {'threshold':>10} {'precision':>10} {'recall':>8}")
for name, choose in (("MAPIE", with_mapie), ("riskpilot", with_riskpilot)):
    start = time.perf_counter()
    threshold = choose()
    seconds = time.perf_counter() - start
    if threshold is None:
        print(f"{name:10} {seconds:8.2f} nothing certified")
        continue
    flagged = model.predict_proba(X[test])[:, 1] >= threshold
    precision, recall = y[test][flagged].mean(), flagged[y[test] == 1].mean()
    print(f"{name:10} {seconds:8.2f} {threshold:10.2f} {precision:10.3f} {recall:8.3f}")
