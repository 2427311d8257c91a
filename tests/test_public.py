"""The public names, and the words of the package about itself."""

import inspect
import subprocess
import sys

import riskpilot


def test_all_is_exactly_the_public_names():
    public = {
        name
        for name, value in vars(riskpilot).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert set(riskpilot.__all__) == public
    assert len(riskpilot.__all__) == len(public)


def test_every_public_function_and_class_says_what_it_is_for():
    for name in riskpilot.__all__:
        value = getattr(riskpilot, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert value.__doc__, name


def test_every_error_is_a_riskpilot_error_and_a_value_error():
    errors = [
        value
        for name in riskpilot.__all__
        if inspect.isclass(value := getattr(riskpilot, name)) and issubclass(value, Exception)
    ]
    assert len(errors) >= 8
    for error in errors:
        assert issubclass(error, riskpilot.RiskpilotError)
        assert issubclass(error, ValueError)


def test_importing_the_package_loads_neither_optional_nor_drawing_nor_storing_packages():
    heavy = (
        "torch botorch smac ray dask pyarrow typer rich optuna_dashboard matplotlib plotly "
        "sqlalchemy scipy.stats sklearn pandas"
    )
    code = f"import sys, riskpilot; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
