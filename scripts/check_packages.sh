#!/usr/bin/env bash
# Builds the wheel and the sdist, installs each into an empty environment and runs the examples there.
# Usage: scripts/check_packages.sh VENV_BIN
set -euo pipefail
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
# The sdist is compiled with what was compiled before of other people's crates.
export CARGO_TARGET_DIR="$root/target"
trap 'rm -rf "$work"' EXIT
cd "$root"
"$bin/maturin" build --release --locked --quiet --sdist --out "$work/dist"
size=$(stat -c %s "$work"/dist/*.whl)
echo "wheel: $size bytes"
test "$size" -lt 5000000
for package in "$work"/dist/*.whl "$work"/dist/*.tar.gz; do
  "$bin/python" -m venv "$work/env"
  "$work/env/bin/pip" install --quiet --disable-pip-version-check -c "$root/requirements/dev.txt" "$package[cli,plot]"
  for example in quickstart marginals; do
    (cd "$work" && "$work/env/bin/python" "$root/examples/$example.py" > "$work/$example.log")
  done
  (cd "$work" && "$work/env/bin/sordino" compare --workload running-sum --length 64 --epsilon 1 > /dev/null)
  echo "$(basename "$package"): installed alone, examples ran"
  rm -rf "$work/env"
done
