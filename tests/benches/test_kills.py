"""Killed processes, in short: what an oracle outside saw is what is kept."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs fork")]


def test_nothing_is_lost_or_said_twice(where):
    from kills import killed

    seen = killed(where, 200, longest=0.12)
    assert seen.kills == 200 and len(seen.answers) > 5
