"""Pictures are an optional extra above everything else: this registry is the only late import."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["drawn"]

_DRAWINGS = {
    "linear": "tables:plot_plan",
    "comparison of linear": "tables:plot_comparison",
    "release": "tables:plot_release",
    "stream": "streams:plot_stream_plan",
    "comparison of stream": "streams:plot_stream_comparison",
    "density": "smooth:plot_density",
}


def drawn(what: str, *arguments: Any, **options: Any) -> Any:
    """Draw something.

    Returns:
        The matplotlib figure, None if there is no picture of it.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if what not in _DRAWINGS:
        return None
    module, name = _DRAWINGS[what].split(":")
    return getattr(import_module(f"sordino.plots.{module}"), name)(*arguments, **options)
