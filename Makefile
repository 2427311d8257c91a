# Every task of the project; `make help` lists them. Set-up happens by itself in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
BROWSER := $(shell command -v chromedriver >/dev/null && (command -v chromium || command -v google-chrome))

.DEFAULT_GOAL := help
.PHONY: help demo test lint guarantees mutants crash chaos durability bench replay docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "riskpilot needs Python 3.11 or newer; $(PYTHON) is older. Use make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras: installed again only when the requirements change.
$(VENV)/.installed-core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[test,baselines,tasks,bench,docs,dashboard,figures,postgres,dask,ray,mlflow]'
	@touch $@ $(VENV)/.installed-core $(VENV)/.installed-docs

$(VENV)/.installed-docs: $(VENV)/.installed-core
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

demo: $(VENV)/.installed-core  ## certify a fair income model on the bundled census data
	$(BIN)/riskpilot demo

test: $(VENV)/.installed-test lint  ## everything that must pass: lint, types, tests, doctests
	@test -n "$(BROWSER)" || echo "No Chromium: the tests of pages are left out. To run them: apt install chromium chromium-driver"
	$(BIN)/python -m pytest -n auto $(if $(BROWSER),,-m "not browser")

lint: $(VENV)/.installed-test  ## style, types and the one-way flow of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

guarantees: $(VENV)/.installed-test  ## the Monte Carlo tests and the fuzz kit at length
	$(BIN)/python -m pytest -n auto tests/guarantees tests/kits/test_fuzz_kit.py --long

mutants: $(VENV)/.installed-test  ## change the core in 100 small ways: which changes does no test notice?
	$(BIN)/python -m tests.mutants --number 100 --seed 0

crash: $(VENV)/.installed-test  ## kill workers at 100 random moments, resume, count
	$(BIN)/python -m benchmarks.crash

chaos: $(VENV)/.installed-test  ## an hour of accidents of all kinds on four workers, then every promise checked
	$(BIN)/python -m benchmarks.chaos --minutes 60 --seed 0

durability: $(VENV)/.installed-test  ## every figure of studies that survive, for the docs
	$(BIN)/python -m benchmarks.crash
	$(BIN)/python -m benchmarks.chaos --minutes 6
	$(BIN)/python -m benchmarks.workers
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks --only storage

bench: $(VENV)/.installed-test  ## speed against peers, as ratios from one run
	$(BIN)/python -m benchmarks

replay: $(VENV)/.installed-test  ## the paper's experiments from their loss tables
	$(BIN)/riskpilot bench --out experiments/results

docs: $(VENV)/.installed-docs  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove what was built
	rm -rf $(VENV) site demo build dist .mypy_cache .pytest_cache .ruff_cache
