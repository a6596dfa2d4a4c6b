#!/usr/bin/env bash
# What the slow tests of services need of the system, if it is missing: PostgreSQL's server, and Chromium.
set -euo pipefail
missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || command -v initdb > /dev/null || missing+=(postgresql)
command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null ||
	missing+=(chromium)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null
elif [ ${#missing[@]} -gt 0 ]; then
	echo "the slow tests need ${missing[*]}: install them" >&2
fi
