"""Released sketches of keys as files: public, and verified when they are read."""

from __future__ import annotations

from sordino.mechanisms.keyed.fit import KeyFit
from sordino.releases.record_files import RecordFile, measured_of, record_of_measured

__all__ = ["SKETCH"]

SKETCH = RecordFile(
    "key-release",
    "sketch",
    KeyFit,
    record_of_measured,
    lambda fit, record, make: make(measured_of(fit, record, "sketch")),
)
"""How released sketches are written."""
