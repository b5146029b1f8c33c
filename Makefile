# Every target sets itself up in .venv; a fresh machine needs only Python (3.10+), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format clean

demo: $(VENV)/runtime.stamp  ## translate with the models in the box, see how, and how fast
	$(BIN)/python experiments/demo.py

test: $(VENV)/dev.stamp  ## the whole test suite
	$(BIN)/python -m pytest

check: $(VENV)/dev.stamp  ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

format: $(VENV)/dev.stamp  ## rewrite the sources as `check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/runtime.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[train,eval,dev]'
	touch $@ $(VENV)/runtime.stamp
