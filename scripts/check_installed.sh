#!/usr/bin/env bash
# Installs a wheel into an empty environment, with the locked versions of what it needs and nothing else, and uses it.
# Usage: scripts/check_installed.sh WHEEL [PYTHON]
set -euo pipefail
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What the examples print is written to files, where Windows has an alphabet of its own.
export PYTHONUTF8=1
# Away from the tree, so that nothing is imported from it.
cd "$work"
"${2:-python3}" -m venv env
bin=env/bin
test -d "$bin" || bin=env/Scripts
pip=("$bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --require-hashes -r "$root/requirements/run.txt"
"${pip[@]}" install --no-deps --no-index "$wheel"
"${pip[@]}" check
for example in quickstart marginals; do
	"$bin/python" "$root/examples/$example.py" > "$example.log"
done
"$bin/sordino" compare --workload running-sum --length 64 --epsilon 1 > compare.log
echo "$(basename "$wheel"): installed alone, examples ran"
