"""Benchmarks in their short form, as programs of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "benches"


def rows(name, section):
    """Return the rows of one section of a short run."""
    run = subprocess.run(
        [sys.executable, str(BENCHES / name), "--section", section],
        env={**os.environ, "SORDINO_BENCH_QUICK": "1"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(run.stdout.splitlines()[-1])
