"""The paper's experiments, replayed from their tables: every method, every limit, many splits."""
