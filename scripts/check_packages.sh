#!/usr/bin/env bash
# Builds the wheel and the sdist, reads what is in them, installs each into an empty environment and runs the examples there.
# Usage: scripts/check_packages.sh VENV_BIN
set -euo pipefail
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
# The sdist is compiled with what was compiled before of other people's crates.
export CARGO_TARGET_DIR="$root/target"
trap 'rm -rf "$work"' EXIT
cd "$root"
CARGO_ENCODED_RUSTFLAGS=$(scripts/remap_paths.sh)
export CARGO_ENCODED_RUSTFLAGS
# Files in an sdist are all of one old date, by which cargo would take what it compiled of other sources for theirs.
cargo clean --quiet --release --package sordino-core --package sordino-py
# The wheel is built from the unpacked sdist. From here on there are the crates of the lock, and no others.
cargo fetch --locked --quiet
export CARGO_NET_OFFLINE=true
"$bin/maturin" build --release --locked --quiet --sdist --compatibility pypi --compression-level 9 --out "$work/dist"
"$bin/python" scripts/check_wheel.py "$work"/dist/*
# As pip builds it where there is no wheel, with maturin as locked.
"$bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --check-build-dependencies \
	--no-index --wheel-dir "$work/again" "$work"/dist/*.tar.gz
for wheel in "$work"/dist/*.whl "$work"/again/*.whl; do
	scripts/check_installed.sh "$wheel" "$bin/python"
done
