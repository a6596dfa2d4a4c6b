"""What a terminal shows while public work goes on; nothing when piped."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from sordino.mechanisms.linear.search import Progress

__all__ = ["reading", "working"]

_SECONDS = 0.1


@contextmanager
def _spinner(what: str, shown: bool = True) -> Iterator[Callable[[str], None] | None]:
    """Show that work goes on; yield what shows more of it, from time to time, None if nobody sees it."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    spinner = Spinner("dots", what)
    with Live(spinner, console=Console(stderr=True), transient=True) as live:
        seen = -math.inf

        def show(more: str) -> None:
            nonlocal seen
            if time.monotonic() < seen + _SECONDS:
                return
            seen = time.monotonic()
            spinner.update(text=f"{what}{more}")
            live.refresh()

        yield show


@contextmanager
def working(what: str, shown: bool = True) -> Iterator[Progress | None]:
    """Show that work goes on, and how far its searches are.

    Args:
        what: Which work, in words.
        shown: False for silence.

    Yields:
        What `sordino.plan` tells the progress of its searches, None if nobody sees it.
    """
    with _spinner(what, shown) as show:
        if show is None:
            yield None
            return

        def report(iteration: int, gap: float) -> None:
            within = f", certified within {gap:.2g} of the least error" if math.isfinite(gap) else ""
            show(f": iteration {iteration}{within}")

        yield report


@contextmanager
def reading() -> Iterator[Callable[[int, int], None] | None]:
    """Show how far the reading of files is, by their bytes, which are public.

    Yields:
        What `sordino.tabulate` tells its progress, None if nobody sees it.
    """
    with _spinner("reading") as show:
        if show is None:
            yield None
            return

        def report(read: int, size: int) -> None:
            show(f": {read / 2**20:,.0f} of {size / 2**20:,.0f} MB" if read else f" {size / 2**20:,.0f} MB")

        yield report
