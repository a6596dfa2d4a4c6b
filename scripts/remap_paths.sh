#!/usr/bin/env bash
# Prints the flags of rustc, for CARGO_ENCODED_RUSTFLAGS, that leave no path of this machine in a binary: panics name the
# file they come from. The configuration of cargo cannot say this, since it knows neither home nor toolchain.
# Usage: CARGO_ENCODED_RUSTFLAGS="$(scripts/remap_paths.sh)" maturin build ...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
home=${CARGO_HOME:-$HOME/.cargo}
if command -v cygpath > /dev/null; then
	root=$(cygpath -w "$root")
	home=$(cygpath -w "$home")
fi
# Cargo separates encoded flags by the byte 0x1f, so that paths may have spaces.
printf -- '--remap-path-prefix=%s=/sordino\x1f--remap-path-prefix=%s=/cargo\x1f--remap-path-prefix=%s=/rust' \
	"$root" "$home" "$(rustc --print sysroot)"
