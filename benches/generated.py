"""Parts of pages that benchmarks write: between markers, with the machine that they ran on."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import sordino

__all__ = ["machine", "written"]

_START, _END = "<!-- figures: {} -->", "<!-- end: {} -->"


def machine() -> str:
    """Return what ran, in one line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
    facts = (
        f"{datetime.now(UTC):%Y-%m-%d}",
        model or platform.machine(),
        f"{os.cpu_count()} cores",
        f"load {load} at the start",
        platform.system(),
        f"Python {platform.python_version()}",
        f"numpy {np.__version__}",
        f"sordino {sordino.__version__}",
    )
    return ", ".join(facts)


def written(text: str, name: str, figures: str) -> str:
    """Return the text with the figures between their markers; unchanged if there are none."""
    start, end = _START.format(name), _END.format(name)
    if start not in text or end not in text:
        return text
    head, rest = text.split(start, 1)
    return f"{head}{start}\n{figures}\n{end}{rest.split(end, 1)[1]}"
