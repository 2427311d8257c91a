"""Storages by their address; the only place that touches what Optuna does not publish."""
