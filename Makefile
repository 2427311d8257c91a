# Every task of the project; `make help` lists them. Set-up happens by itself in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
BROWSER := $(shell command -v chromedriver >/dev/null && (command -v chromium || command -v google-chrome))
# One more process than there are cores: some wait for a browser or a database.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)' 2>/dev/null || echo 2)

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-core test-lowest test-newest lint guarantees mutants crash chaos durability bench replay docs constraints release-check release-check-fast build clean

# The rooms that need nothing but the package itself and the tools of the tests.
CORE := tests/statistics tests/problem tests/losses tests/guarantee tests/selection tests/search tests/study tests/cli
EXTRAS := test,baselines,tasks,bench,docs,dashboard,live,figures,postgres,dask,ray,mlflow

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The environment. A Python that is too old, or has no venv or pip, is told in one sentence.
$(VENV)/pyvenv.cfg:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "riskpilot needs Python 3.11 or newer, and there is no $(PYTHON) here. Install it, or name it: make PYTHON=python3.13"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "riskpilot needs Python 3.11 or newer; $(PYTHON) is older. Use make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv or no pip, which make needs for $(VENV). On Debian and Ubuntu: apt install python3-venv python3-pip"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras: installed again only when the requirements change.
$(VENV)/.installed-core: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed-core $(VENV)/.installed-docs

$(VENV)/.installed-docs: $(VENV)/.installed-core
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

demo: $(VENV)/.installed-core  ## certify a fair income model on the bundled census data
	$(BIN)/riskpilot demo

test: $(VENV)/.installed-test lint  ## everything that must pass: lint, types, tests, doctests
	@test -n "$(BROWSER)" || echo "No Chromium: the tests of pages are left out. To run them: apt install chromium chromium-driver"
	$(BIN)/python -m pytest -n $(WORKERS) $(if $(BROWSER),,-m "not browser")

test-long: $(VENV)/.installed-test  ## the tests that are marked as long
	$(BIN)/python -m pytest -n $(WORKERS) --long -m long

test-core:  ## the core alone, in an environment of its own with the pinned versions
	$(MAKE) VENV=.venv-core .venv-core/pyvenv.cfg
	.venv-core/$(notdir $(BIN))/python -m pip -q install -c constraints.txt -e '.[test]'
	.venv-core/$(notdir $(BIN))/python -W error -m pytest -n auto -m "not browser" $(CORE)

test-lowest: $(VENV)/.installed-test  ## the core with the lowest versions that pyproject.toml allows
	$(MAKE) VENV=.venv-lowest .venv-lowest/pyvenv.cfg
	$(BIN)/python -m tools.constraints --lowest > .venv-lowest/lowest.txt
	.venv-lowest/$(notdir $(BIN))/python -m pip -q install -c .venv-lowest/lowest.txt -e '.[test]'
	.venv-lowest/$(notdir $(BIN))/python -m pytest -n auto -m "not browser" $(CORE)

test-newest:  ## everything with the newest versions; of the constraints that of torch alone is kept
	$(MAKE) VENV=.venv-newest .venv-newest/pyvenv.cfg
	grep '^torch==' constraints.txt > .venv-newest/torch.txt
	.venv-newest/$(notdir $(BIN))/python -m pip -q install -U -c .venv-newest/torch.txt -e '.[$(EXTRAS)]'
	.venv-newest/$(notdir $(BIN))/python -m pytest -n auto $(if $(BROWSER),,-m "not browser")

constraints: $(VENV)/.installed-test  ## write the versions that are installed into constraints.txt
	$(BIN)/python -m tools.constraints

build: $(VENV)/.installed-test  ## wheel and sdist into dist/
	$(BIN)/python -m hatchling build

release-check: $(VENV)/.installed-test  ## install wheel and sdist elsewhere; run README, examples, commands there
	$(BIN)/python -m tools.release_check

release-check-fast: $(VENV)/.installed-test  ## the same in one environment, as the tests do
	$(BIN)/python -m tools.release_check --fast

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
	rm -rf $(VENV) .venv-core .venv-lowest .venv-newest site demo build dist .mypy_cache .pytest_cache .ruff_cache
