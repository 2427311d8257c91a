"""Check a certificate from the losses alone, and see what an audit finds when they were touched.

Shows: saving losses and certificate, loading both as a stranger would, a verification that holds,
and two that do not. ``python examples/audit.py``.
"""

from pathlib import Path

import numpy as np

import riskpilot as rp
from riskpilot.tables.files import read_losses, save_losses

# The maker: eleven configurations, from safe and dear to risky and cheap (simulated losses).
rng = np.random.default_rng(0)
error, cost = np.linspace(0.05, 0.15, 11)[:, None], np.linspace(2, 1, 11)
losses = save_losses(
    "losses.npz",
    validation={"error": rng.random((11, 4_000)) < error, "cost": cost},
    calibration={"error": rng.random((11, 4_000)) < error},
)
table = read_losses(losses)
selection = rp.select_from_losses(
    rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost", delta=0.1),
    validation=table.validation,
    calibration=table.calibration,
)
selection.certificate.save("certificate.json")
print(selection)

# The auditor: has the two files, and nothing else.
certificate = rp.Certificate.load("certificate.json")
table = read_losses("losses.npz")
found = rp.verify(certificate, validation=table.validation, calibration=table.calibration)
print(f"\nUntouched: {found}")
assert found.ok

prettier = np.array(table.calibration["error"])
prettier[:, :100] = False
found = rp.verify(certificate, validation=table.validation, calibration={"error": prettier})
print(f"\nFirst 100 examples made perfect: {found}")
assert not found.ok

text = Path("certificate.json").read_text(encoding="utf-8")
Path("edited.json").write_text(text.replace('"limit": 0.1', '"limit": 0.05'), encoding="utf-8")
try:
    rp.Certificate.load("edited.json")
except rp.CertificateError as error_message:
    print(f"\nLimit edited: {error_message}")
