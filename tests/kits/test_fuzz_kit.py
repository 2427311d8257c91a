"""No raw tracebacks: whatever is passed to a public function, it returns or says what is wrong."""

import pytest
import typer
from hypothesis import HealthCheck, Phase, given, settings

import riskpilot as rp
import riskpilot.sklearn as rps
from riskpilot.cli.app import app
from tests.kits.fuzz_cases import CASES, NOT_TYPED
from tests.kits.fuzzing import calls, little_memory, raw_error


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Odd texts are also names of files: let them be written where they hurt nobody."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_calls_that_odd_ones_are_made_of_are_valid(case):
    for arguments in case.valid:
        case.run(arguments)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_odd_call_returns_or_says_what_is_wrong(case, effort):
    @settings(
        max_examples=round(1.5 * case.examples) * max(effort // 2, 1),  # a minute, or ten
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(case))
    def property_(call):
        error = raw_error(case, call)
        if error is not None:
            raise AssertionError(f"{case.name}({call!r}): {type(error).__name__}") from error

    with little_memory():
        property_()


def test_every_public_name_has_a_case():
    names = {case.name for case in CASES}
    without_arguments = {"Mean"}
    assert set(rp.__all__) - without_arguments - names == set()


def test_every_estimator_and_every_command_has_a_case():
    names = {case.name for case in CASES}
    estimators = {f"sklearn.{name}" for name in rps.__all__ if name.startswith("RiskControlled")}
    assert estimators - names == set()
    commands = set(typer.main.get_command(app).commands) - NOT_TYPED
    assert {f"riskpilot {name}" for name in commands} - names == set()
