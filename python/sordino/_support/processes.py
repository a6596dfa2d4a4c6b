"""Which process an object belongs to: a child has neither the noise nor the budget of its parent.

A process id does not tell by itself: the first process of two name spaces is number 1 in both. So forks are counted: by
`os.register_at_fork`, and, for those that Python does not see, by a page of memory that Linux empties in the child.
"""

import mmap
import os

from sordino import _core

__all__ = ["this_process"]

# Linux 4.14; Python's `mmap` has no name for it.
_MADV_WIPEONFORK = 18


def _wiped_on_fork() -> mmap.mmap | None:
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_MADV_WIPEONFORK)
    except (AttributeError, OSError, ValueError):  # another system, or an old one
        return None
    page[0] = 1
    return page


_page = _wiped_on_fork()
_forks = 0


def _forked() -> None:
    """Begin anew in the child. Takes no lock: a thread of the parent may have held it."""
    global _forks  # noqa: PLW0603 - one number a process
    _forks += 1
    _core.renew_owner()
    if _page is not None:
        _page[0] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def this_process() -> tuple[int, int]:
    """Return a mark that no child shares: how many forks lead here, and the process id."""
    if _page is not None and _page[0] == 0:
        _forked()
    return _forks, os.getpid()
