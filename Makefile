# make demo: set up and run the main job.  make test: set up and run every check.  make bench: measure.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check bench clean

$(STAMP): pyproject.toml tests/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tests/constraints.txt --editable '.[dev,torch]'
	touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest --numprocesses 2

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tests/constraints.txt '.[bench]' --editable .
	$(BIN)/python benchmarks/kernels.py $(BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis out dist build
