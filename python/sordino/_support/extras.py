"""What is optional: pictures, which are above everything else, and pyarrow. This is the only place of late imports."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sordino.errors import MissingDependencyError

__all__ = ["arrow_of", "drawn"]

_DRAWINGS = {
    "linear": "tables:plot_plan",
    "comparison of linear": "tables:plot_comparison",
    "release": "tables:plot_release",
    "stream": "streams:plot_stream_plan",
    "comparison of stream": "streams:plot_stream_comparison",
    "density": "smooth:plot_density",
    "tree": "trees:plot_tree",
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


def arrow_of(what: str, module: str | None = None) -> Any:
    """Return pyarrow, or a module of it.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        found = import_module("pyarrow")
        return found if module is None else import_module(f"pyarrow.{module}")
    except ImportError:
        raise MissingDependencyError(f"{what} needs pyarrow: pip install 'sordino[arrow]'") from None
