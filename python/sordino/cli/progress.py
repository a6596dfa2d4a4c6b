"""What a terminal shows while public work goes on; nothing when piped."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from sordino.mechanisms.linear.search import Progress

__all__ = ["working"]

_SECONDS = 0.1


@contextmanager
def working(what: str, shown: bool = True) -> Iterator[Progress | None]:
    """Show that work goes on, and how far its searches are.

    Args:
        what: Which work, in words.
        shown: False for silence.

    Yields:
        What `sordino.plan` tells the progress of its searches, None if nobody sees it.
    """
    if not shown or not sys.stderr.isatty():
        yield None
        return
    spinner = Spinner("dots", what)
    with Live(spinner, console=Console(stderr=True), transient=True) as live:
        seen = -math.inf

        def report(iteration: int, gap: float) -> None:
            nonlocal seen
            if time.monotonic() < seen + _SECONDS:
                return
            seen = time.monotonic()
            within = f", certified within {gap:.2g} of the least error" if math.isfinite(gap) else ""
            spinner.update(text=f"{what}: iteration {iteration}{within}")
            live.refresh()

        yield report
