# Two commands on a fresh machine: `make demo` and `make test`. They need a Rust toolchain, a C compiler and
# Python 3.11 or newer; everything else goes into .venv at locked versions.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTENSION := $(VENV)/.extension
# A process of pytest for each core, and then no threads of BLAS besides: they would wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal
# Property tests repeat; set another seed to search further.
export PROPTEST_RNG_SEED ?= 20261121
RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.ready: requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sordino needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

$(EXTENSION): $(VENV)/.ready $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --locked --quiet
	@touch $@

.PHONY: build
build: $(EXTENSION) ## Set up .venv and build the extension

.PHONY: demo
demo: build ## Main job on real input: tables and pictures in out/
	$(BIN)/python examples/demo.py --out out

.PHONY: test
test: lint test-rust test-python ## Everything that a change must pass
	@echo "all checks passed"

.PHONY: lint
lint: build ## Formatting, lints, types, stubs, generated tables
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(PYTHON) scripts/make_ziggurat_tables.py --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sordino._core --ignore-disjoint-bases

.PHONY: test-rust
test-rust: ## Rust tests, documentation examples, benches as tests
	cargo test --locked --workspace
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

.PHONY: test-python
test-python: build ## Python tests, with the code of README and docs
	$(PYTEST)

.PHONY: test-slow
test-slow: build docs package ## Slow markers, the docs site, wheel and sdist in empty environments
	cargo test --locked -p sordino-core -- --ignored --skip generate
	$(PYTEST) -m slow
	@echo "all slow checks passed"

.PHONY: docs
docs: build ## Build the documentation site, strictly
	$(BIN)/mkdocs build --strict --quiet

.PHONY: package
package: $(VENV)/.ready ## Build wheel and sdist, install each into an empty environment, run the examples
	scripts/check_packages.sh $(BIN)

.PHONY: bench
bench: build ## All benchmarks; figures go to benches/README.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.txt
	$(BIN)/python benches/figures.py

.PHONY: lock
lock: ## Freeze the Python tools anew
	rm -rf /tmp/sordino-lock && $(PYTHON) -m venv /tmp/sordino-lock
	/tmp/sordino-lock/bin/pip install --quiet -r requirements/dev.in
	/tmp/sordino-lock/bin/pip freeze --all | grep -v -E '^(pip|setuptools)==' > requirements/dev.txt
	/tmp/sordino-lock/bin/pip install --quiet -r requirements/bench.in -c requirements/dev.txt
	/tmp/sordino-lock/bin/pip freeze --all | grep -v -E '^(pip|setuptools)==' > requirements/bench.txt

.PHONY: format
format: build ## Format Rust, sort Python imports
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(VENV) target out site dist
