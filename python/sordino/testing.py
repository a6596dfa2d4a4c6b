"""Known randomness for tests and tutorials. What is released under it is not private."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sordino.errors import InvalidParameterError

__all__ = ["deterministic_noise"]

_key: ContextVar[bytes | None] = ContextVar("sordino_deterministic_key", default=None)
_warned = False


@contextmanager
def deterministic_noise(key: bytes) -> Iterator[None]:
    """Use a known 32-byte key in this context: releases repeat, carry `private=False`, and ledgers refuse them.

    Warns once per process.

    Args:
        key: 32 bytes.

    Raises:
        InvalidParameterError: The key does not have 32 bytes.
    """
    global _warned  # noqa: PLW0603 - once per process is what is promised
    if not isinstance(key, bytes) or len(key) != 32:
        raise InvalidParameterError("a key must have 32 bytes")
    if not _warned:
        _warned = True
        warnings.warn("deterministic noise: releases in this context are not private", stacklevel=3)
    token = _key.set(key)
    try:
        yield
    finally:
        _key.reset(token)


def current_key() -> bytes | None:
    """Return the key in force, None outside tests."""
    return _key.get()
