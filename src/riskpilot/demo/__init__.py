"""A search on real data, from the limit to the certificate, in less than two minutes."""

from riskpilot.demo.run import FULL, QUICK, Demo, Habit, Trained, compare, demo_problem, run, write

__all__ = ["FULL", "QUICK", "Demo", "Habit", "Trained", "compare", "demo_problem", "run", "write"]
