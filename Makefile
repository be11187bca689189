# make demo: set up and run the main job.  make test: set up and run every check.  make docs: the site.  make bench: measure.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.installed-light
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check docs bench clean

demo: $(LIGHT)
	$(BIN)/imprint demo --out out

$(LIGHT): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(STAMP): $(LIGHT) tests/constraints.txt
	$(PIP) --constraint tests/constraints.txt --editable '.[dev,torch]'
	touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest --numprocesses 2 --dist worksteal

docs: $(LIGHT)
	$(PIP) --editable '.[docs]'
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W --keep-going -q docs site
	@echo Open site/index.html

bench: $(STAMP)
	$(PIP) --constraint tests/constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/kernels.py $(BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis out dist build site
