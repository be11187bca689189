# make demo: set up and run the main job.  make test: set up and run every check.  make docs: the site.  make bench: measure.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.installed-light
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check docs reproduction bench lowest newest dist hostile node clean

demo: $(LIGHT)
	$(BIN)/imprint demo --out out

$(LIGHT): pyproject.toml reproduction/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable . --editable ./reproduction
	touch $@

$(STAMP): $(LIGHT) tests/constraints.txt
	$(PIP) --constraint tests/constraints.txt --editable '.[dev,torch]' --editable ./reproduction
	touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet --config .github/zizmor.yml .github
	$(BIN)/hadolint Dockerfile
	@if command -v actionlint > /dev/null; then actionlint; else echo "actionlint is not installed: workflows were checked by zizmor only"; fi

test: check
	$(BIN)/pytest --numprocesses 2 --dist worksteal

docs: $(LIGHT)
	$(PIP) --editable '.[docs]'
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W --keep-going -q docs site
	$(MAKE) reproduction
	@echo Open site/index.html

# The results of the paper, side by side with ours: a site of their own, next to the other.
reproduction: $(LIGHT)
	$(PIP) --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q reproduction/docs site/reproduction

bench: $(STAMP)
	$(PIP) --constraint tests/constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/kernels.py $(BENCH)

# Ten thousand damaged models, images, tables, arrays and requests.
hostile: $(STAMP)
	$(BIN)/python tests/hostile.py

# What the tests of exported JavaScript need; they are skipped without it.
node:
	npm install --prefix $(VENV)/node --no-save --no-audit --no-fund onnxruntime-web@1.30.0 sharp@0.35.5

# The core tests with exactly the lowest versions that pyproject.toml allows.
CORE := tests/contract tests/golden tests/unit/core tests/unit/calibration
lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[core-test]'
	.venv-lowest/bin/python -m pytest --numprocesses 2 --dist worksteal $(CORE)

# The wheel, installed as a user would install it, with the newest versions of everything.
newest: dist
	rm -rf .venv-newest && $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "$$(ls dist/*.whl)"
	cd tests && ../.venv-newest/bin/imprint --version --verbose && ../.venv-newest/bin/imprint demo --out ../out/newest

dist: $(STAMP)
	rm -rf dist
	$(PIP) build
	$(BIN)/python -m build --quiet --outdir dist .
	$(BIN)/python -m zipfile --list "$$(ls dist/*.whl)" | grep -E 'sboms/|py.typed|LICENSE'

clean:
	rm -rf .venv-lowest .venv-newest $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis out dist build site
