"""Tables on terminals of every width."""

import io

import pytest
from rich.console import Console

from riskpilot.cli import terminal


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_number_of_a_table_is_cut_however_narrow_the_terminal(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    heads = ["verdict", "p-value", "error, calibration", "error, validation", "configuration"]
    rows = [
        (["chosen", "1.8e-19", "0.0455", "0.05512", "rate=0.25, size=large"], "green"),
        (["-", "0.0053", "0.12345", "", "rate=0.5, size=small"], None),
    ]
    terminal.show_table(console, "Tested configurations", heads, rows)
    shown = file.getvalue().replace(",", " ").split()
    for cells, _ in rows:
        assert {word for cell in cells for word in cell.replace(",", " ").split()} <= set(shown)
    assert all(len(line) <= width for line in file.getvalue().splitlines())
    assert ("p-value: 0.0053" in file.getvalue()) == (width < 65)
