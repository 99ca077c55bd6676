# Every target creates and fills .venv by itself; all that is needed is Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-lowest attack mutate coverage bench reproduce docs lint format dist clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rectifit needs Python 3.11 or newer; set one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per group of requirements: .venv/.installed-test holds while pyproject.toml is older.
$(VENV)/.installed-%: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(VENV)/.installed: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

demo: $(VENV)/.installed-cli  ## fit and certify real data; writes build/demo.html
	@mkdir -p build
	$(BIN)/rectifit demo --report build/demo.html

test: $(VENV)/.installed-test  ## run the tests
	$(BIN)/python -m pytest

# An environment of its own: the lowest versions that pyproject.toml allows.
$(VENV)-lowest/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest --resolution lowest-direct --editable ".[test]"
	@touch $@

test-lowest: $(VENV)-lowest/.installed  ## run the tests with the lowest versions of all requirements
	$(VENV)-lowest/bin/python -m pytest

MINUTES ?= 10

attack: $(VENV)/.installed-test  ## attack bounds, readers and files for MINUTES=10, with seeds that are new each time
	$(BIN)/python -m pytest tests/test_attack.py -s --attack-minutes $(MINUTES)

mutate: $(VENV)/.installed-test  ## make lines unsound, one at a time: do tests notice? MUTATE="words" chooses
	$(BIN)/python benchmarks/mutations.py $(MUTATE)

# Compiled code is run as Python, too, by tests with small data: what they leave out is not compiled code.
coverage: $(VENV)/.installed-test  ## lines of src that tests run, compiled code among them; at least 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q tests/test_pieces.py tests/test_surrogate.py \
	  tests/test_small_rows.py tests/test_attack.py -k "not leave_nothing and not at_once"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(VENV)/.installed-bench  ## compare speed with other solvers, side by side
	$(BIN)/python benchmarks/run.py $(BENCH)

reproduce: $(VENV)/.installed-cli  ## every table and figure of the paper, into build/reproduction; resumable
	$(BIN)/rectifit reproduce --jobs -1 --out build/reproduction

docs: $(VENV)/.installed-docs  ## build the documentation into build/docs; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

lint: $(VENV)/.installed-lint  ## style, types, layers, spelling, workflows, conventions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/repo-review .

format: $(VENV)/.installed-lint  ## bring the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dist: $(VENV)/.installed-dist  ## build the archives of a release into dist, and check them
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

clean:  ## remove the environment, caches and what was built
	rm -rf $(VENV) $(VENV)-lowest build docs/gallery docs/api/generated docs/instances/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
