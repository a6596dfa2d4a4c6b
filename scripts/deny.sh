#!/usr/bin/env bash
# Licences, duplicates and sources of all crates by deny.toml; advisories where their database can be had, or must be with
# SORDINO_ADVISORIES=required.
# Usage: scripts/deny.sh CARGO_DENY
set -euo pipefail
deny=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
# An exception that nothing needs any more is an error too.
"$deny" --locked check -D unmatched-skip -D license-exception-not-encountered \
	bans licenses sources
if failure=$("$deny" --locked fetch db 2>&1); then
	"$deny" --locked check -D advisory-not-detected advisories
elif [ "${SORDINO_ADVISORIES:-}" = required ]; then
	echo "$failure" >&2
	exit 1
else
	echo "advisories: not checked, their database cannot be reached from here"
fi
