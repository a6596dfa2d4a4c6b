"""Which process an object belongs to: a child has neither the noise nor the budget of its parent.

A process id does not tell by itself: the first process of two name spaces is number 1 in both. So forks are counted: by
`os.register_at_fork`, and, for those that Python does not see, by memory that Linux empties in the child. The core
looks at it before it touches anything.
"""

import mmap
import os

from sordino import _core

__all__ = ["WATCHED", "this_process"]

# Linux 4.14; Python's `mmap` has no name for it.
_MADV_WIPEONFORK = 18


def _watch_forks() -> bool:
    """Have a page that is emptied in children; return whether this system can."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_MADV_WIPEONFORK)
    except (AttributeError, OSError, ValueError):  # another system, or an old one
        return False
    _core.watch_forks(memoryview(page)[:1])
    return True


WATCHED = _watch_forks()
"""Whether forks that Python does not see are seen."""

if hasattr(os, "register_at_fork"):
    # Takes no lock: a thread of the parent may have held it.
    os.register_at_fork(after_in_child=_core.renew_owner)


def this_process() -> tuple[int, int]:
    """Return a mark that no child shares: how many forks lead here, and the process id."""
    return _core.forks(), os.getpid()
