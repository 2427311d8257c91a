"""The paper's experiments, as tables of per-example losses."""
