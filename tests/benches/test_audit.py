"""The audit of the benchmarks, in its short form: every mechanism attacked, and planted under-noise caught."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["audit.py", "audit_streams.py", "audit_laws.py", "audit_ledger.py"])
def test_no_mechanism_is_caught_and_planted_under_noise_is(name):
    """Fresh keys: a false alarm in less than one run in a hundred (see `benches/audit.py`)."""
    environment = {**os.environ, "SORDINO_BENCH_QUICK": "1"}
    command = [sys.executable, str(BENCHES / name)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
