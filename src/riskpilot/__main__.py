"""``python -m riskpilot`` is the command line."""

from riskpilot.cli import app

if __name__ == "__main__":
    app(prog_name="riskpilot")
