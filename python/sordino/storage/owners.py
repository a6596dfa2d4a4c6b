"""Who works on a request or a stream, and whether it is known to be dead."""

from __future__ import annotations

import os
import secrets
import threading
from functools import lru_cache
from pathlib import Path

from sordino._support.processes import this_process

__all__ = ["WORKING", "Working", "is_dead", "new_token", "owner_name"]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return "?"


def _machine() -> str:
    """Return what processes that see each other have in common: host, boot, name space of process ids."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = "?"
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "?")
    return f"{host}|{_read('/proc/sys/kernel/random/boot_id')}|{space}".replace("/", "_")


def _started(process: int) -> str | None:
    """Return when a process began, None if there is none; '?' where the system does not show it."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] in {"Z", "X"} else fields[19]
    except FileNotFoundError:
        return "?" if not Path("/proc/self/stat").exists() else None
    except (OSError, IndexError):
        return "?"


@lru_cache(maxsize=1)
def _name_of(process: tuple[int, int]) -> str:
    return f"{_machine()}/{process[1]}/{_started(process[1])}"


def owner_name() -> str:
    """Return a name of this process that no other has, on any machine."""
    return _name_of(this_process())


def is_dead(owner: str) -> bool:
    """Return whether an owner is known to be dead: of this machine, and not among its processes."""
    machine, _, process = owner.partition("/")
    number, _, started = process.partition("/")
    if machine != _machine() or not number.isdigit() or started == "?":
        return False
    found = _started(int(number))
    return found is None or (found not in {"?", started})


def new_token() -> bytes:
    """Return what an attempt is recognised by."""
    return secrets.token_bytes(16)


class Working:
    """What this process works on, by token: what is not here any more was left by an exception."""

    def __init__(self) -> None:
        self._process = this_process()
        self._tokens: set[bytes] = set()
        self._lock = threading.Lock()

    def _own(self) -> set[bytes]:
        if this_process() != self._process:
            # What a parent works on is not worked on here; its lock may be held by a thread that is not there.
            self._tokens, self._lock, self._process = set(), threading.Lock(), this_process()
        return self._tokens

    def begin(self, token: bytes) -> None:
        """Say that something begins; inside of what ends it, wherever an exception comes."""
        self._own().add(token)

    def end(self, token: bytes) -> None:
        """Say that it is over, however it ended."""
        self._own().discard(token)

    def __contains__(self, token: bytes) -> bool:
        return token in self._own()

    def may_have(self, token: bytes, owner: str) -> bool:
        """Return whether a process may be working on something: this one knows, of others it is said if they died."""
        return token in self if owner == owner_name() else not is_dead(owner)


WORKING = Working()
"""Of all stores that this process has open."""
