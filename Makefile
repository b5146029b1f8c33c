# Every target sets itself up in .venv; a fresh machine needs only Python (3.10+), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# An editable installation is made again when one of these changes: the native engine is built by it.
BUILT_FROM := pyproject.toml constraints.txt setup.py $(wildcard src/bothends/engines/native/csrc/*)

.DEFAULT_GOAL := help
.PHONY: help demo test check test-slow fuzz test-serve test-browser check-image native sanitize format docs dist clean

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/runtime.stamp  ## translate with the bundled models, see how they write, and how fast
	$(BIN)/bothends demo

test: check  ## the same as check

check: $(VENV)/dev.stamp  ## format, lint, types, and all tests but the slow ones
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile

test-slow: $(VENV)/dev.stamp  ## the slow tests alone
	$(BIN)/python -m pytest -m slow

fuzz: $(VENV)/dev.stamp  ## damaged files for every reader, fresh ones for some minutes
	BOTHENDS_FUZZ=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest tests/test_fuzz.py

test-serve: $(VENV)/dev.stamp  ## the server under load, noise and time: some minutes
	BOTHENDS_SERVE_SCALE=$(or $(SCALE),20) $(BIN)/python -m pytest -s tests/test_serve_load.py

test-browser: $(VENV)/dev.stamp  ## the page in Chromium, which is installed if it is missing
	command -v chromium >/dev/null || apt-get install --yes chromium
	$(PIP) --editable '.[browser]'
	$(BIN)/python -m pytest tests/test_serve_page.py

check-image: ## the steps of deploy/Dockerfile in a clean directory
	deploy/check-image.sh

native: $(VENV)/dev.stamp  ## build the native engine again after a change of its C++
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel 2

# A copy of the sources with an extension of its own: the usual build stays as it is. Python itself does
# not free everything at its end, so leaks are looked for by tests of memory instead. For these, memory
# that was freed must not wait in AddressSanitizer's quarantine for long.
SANITIZED := build/sanitize
sanitize: $(VENV)/dev.stamp  ## the native engine's tests under AddressSanitizer and UBSan
	mkdir -p $(SANITIZED) && cp -r src $(SANITIZED)/
	find $(SANITIZED)/src -name '_native*.so' -delete
	BOTHENDS_SANITIZE=1 $(BIN)/python setup.py --quiet build_ext --parallel 2 \
		--build-lib $(SANITIZED)/src --build-temp $(SANITIZED)/objects
	PYTHONPATH=$(SANITIZED)/src ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
		$(BIN)/python -m pytest tests/test_native_kernels.py tests/test_native_search.py \
		tests/test_native_engine.py tests/test_native_cores.py tests/test_engines.py -k native -m "not slow"

format: $(VENV)/dev.stamp  ## rewrite the sources as `check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/dev.stamp  ## the documentation site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/site/index.html

dist: $(VENV)/dev.stamp  ## an sdist and a wheel, in dist
	$(BIN)/python -m build --no-isolation

clean:  ## remove .venv and all that was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/runtime.stamp: $(BUILT_FROM) | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/dev.stamp: $(BUILT_FROM) | $(BIN)/python
	$(PIP) --editable '.[train,eval,docs,dev]'
	touch $@ $(VENV)/runtime.stamp
