# Every target builds what it needs in .venv; nothing touches the system's Python.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Modules are compiled to bytecode when they are imported: most of those that are installed never are.
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# Compiled kernels stay inside the checkout; Podium makes a folder there for each state of its sources.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba_cache

# Tests run in as many processes as there are cores; a process that has done its share takes over from the others.
PYTEST := $(BIN)/python -m pytest --numprocesses=$(shell getconf _NPROCESSORS_ONLN) --dist=worksteal

.PHONY: help demo test quick thorough bounds compat lint style types kernels bench reproduce docs release-check clean

help:
	@echo 'make demo   build and train a search engine over the standard library, write demo/report.html'
	@echo 'make test   everything CI checks: lint, types, tests'
	@echo 'make quick  the tests that take under a minute'
	@echo 'make thorough  further tests: every stage of every cluster, pages that start clusters, long fuzzing'
	@echo 'make bounds the tests of kernels with bounds checks'
	@echo 'make compat the quick tests with the oldest and the newest supported dependencies'
	@echo 'make lint   ruff and mypy --strict'
	@echo 'make bench  measure against other tools; writes bench/results/'
	@echo 'make reproduce  repeat the papers'\'' experiments; writes docs/papers/'
	@echo 'make docs   build the documentation into site/'
	@echo 'make release-check  install wheel and sdist as users do, and run the quick tests there'
	@echo 'make clean  remove what the other targets made'

demo: $(VENV)/.demo
	$(BIN)/python -m podium.demo demo

# Kernels are compiled before the tests, while mypy runs; otherwise every test process would compile them.
test: style
	@$(MAKE) --no-print-directory --jobs=2 types kernels
	$(PYTEST)

quick: kernels
	$(PYTEST) -m 'not slow'

# Run it before a release, and after a change to training on clusters. It runs in one process, because clusters need all cores.
thorough: kernels
	$(BIN)/python -m pytest -m thorough

# Slow, so not a part of `make test`: run it after a change to a kernel.
bounds: $(VENV)/.dev
	$(BIN)/python -m tests.bounds

# VERSIONS=oldest or VERSIONS=newest runs one of the two.
compat:
	$(PYTHON) -m tests.compat $(VERSIONS)

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check src tests bench experiments
	$(BIN)/ruff format --check src tests bench experiments

types: $(VENV)/.dev
	$(BIN)/mypy

kernels: $(VENV)/.dev
	$(BIN)/podium warmup

bench: $(VENV)/.bench
	$(BIN)/python -m bench

reproduce: $(VENV)/.dev
	$(BIN)/python -m experiments --output docs/papers

docs: $(VENV)/.dev
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --nitpicky \
	    --doctree-dir build/doctrees docs site

release-check: $(BIN)/python
	$(BIN)/python -m tests.release

clean:
	rm -rf $(VENV) .compat .numba_cache build demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Podium needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3 ...'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[report,serve]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) -e '.[bench]'
	@touch $@
