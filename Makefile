# What people type. Every target makes .venv by itself when it is missing or older than pyproject.toml.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
JOBS ?= 2
RULES := tests/unit/test_layering.py tests/unit/test_exports.py tests/unit/test_style.py
SUITES := $(wildcard tests/unit tests/lab tests/conformance tests/process)

.PHONY: run test check bench soak fmt docs

run: $(INSTALLED)  ## a conversation with the demonstration bot: no account, no key, no network
	$(BIN)/python -m hermes_trio demonstration

test: $(INSTALLED)  ## all tests but the long campaigns; two process tests at a time
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(SUITES)

check: $(INSTALLED)  ## what CI demands before the tests: style, types, layers, exports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/python -m pytest -q $(RULES)

bench: $(INSTALLED)  ## measurements, with the facts of this machine
	$(BIN)/python -m bench

soak: $(INSTALLED)  ## the long random campaigns
	SOAK=1 $(BIN)/python -m pytest -n $(JOBS) -m soak tests

fmt: $(INSTALLED)  ## rewrites the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED)  ## rewrites the parts of the documents that are made from the code
	$(BIN)/python docs/generate.py

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is too old: Python 3.11 or later is needed (make PYTHON=...)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(INSTALLED)
