"""Keys of a store: what is secret is stored sealed, or not at all."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from sordino import _core
from sordino._support.checks import path_of
from sordino._support.files import reason_of
from sordino.errors import CheckpointError, DataTypeError, InvalidParameterError, KeyMissingError, WrongKeyError

__all__ = ["KeyFile", "KeySource", "Keys", "sized_key"]

KeySource: TypeAlias = "bytes | KeyFile | Callable[[str], bytes]"
_LENGTH = 32


def sized_key(key: object) -> bytes:
    """Return a key if it has 32 bytes.

    Raises:
        InvalidParameterError: It has not.
    """
    if not isinstance(key, bytes) or len(key) != _LENGTH:
        raise InvalidParameterError("a key must have 32 bytes, such as secrets.token_bytes(32)")
    return key


class KeyFile:
    """A key in a file that its owner alone may read: 32 bytes.

    Args:
        path: The file; it must be there, not beside the store, with mode 600 where the system has modes.

    Raises:
        DataTypeError: The path is none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path)

    def __repr__(self) -> str:
        return "KeyFile(...)"

    def read(self) -> bytes:
        """Return the key.

        Raises:
            KeyMissingError: The file cannot be read, others may read it, or it has another length.
        """
        try:
            with self.path.open("rb") as file:
                mode, key = os.fstat(file.fileno()).st_mode, file.read(_LENGTH + 1)
        except (OSError, ValueError) as error:
            raise KeyMissingError(f"the key file cannot be read: {reason_of(error)}") from None
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise KeyMissingError("others may read the key file: chmod 600")
        if len(key) != _LENGTH:
            raise KeyMissingError("a key file has 32 bytes")
        return key


def _folders(path: Path) -> set[Path]:
    """Return the folders that a file lies in, by its name and by where links lead."""
    return {path.absolute().parent, path.resolve().parent}


class Keys:
    """The keys of one store, by purpose: HKDF-SHA256 of the caller's key and the store's name.

    Args:
        source: 32 bytes, a `KeyFile`, a function from the id of a key to its bytes, or None.
        store: Name of the store.
        key_id: Id of the key in force.
        beside: The file of the store, beside which no key may lie.

    Raises:
        DataTypeError: The source is none of these.
        KeyMissingError: A key file lies beside the store.
    """

    def __init__(self, source: KeySource | None, store: str, key_id: str = "1", beside: Path | None = None) -> None:
        if source is not None and not isinstance(source, bytes | KeyFile) and not callable(source):
            raise DataTypeError("key must be 32 bytes, a KeyFile, or a function from the id of a key to its bytes")
        if isinstance(source, bytes):
            sized_key(source)
        if isinstance(source, KeyFile) and beside is not None and _folders(source.path) & _folders(beside):
            raise KeyMissingError("the key lies in the folder of the store: whoever copies the one has the other")
        self._source = source
        self._store = store
        self.key_id = key_id

    def __repr__(self) -> str:
        return "Keys(...)"

    @property
    def known(self) -> bool:
        """Whether there is a key."""
        return self._source is not None

    def _key(self, purpose: str, key_id: str) -> bytes:
        match self._source:
            case None:
                raise KeyMissingError("this needs a key: sordino.Store(..., key=sordino.KeyFile(path))")
            case bytes():
                own = self._source
            case KeyFile():
                own = self._source.read()
            case _:
                own = sized_key(self._source(key_id))
        extracted = hmac.new(self._store.encode(), own, hashlib.sha256).digest()
        return hmac.new(extracted, b"sordino " + purpose.encode() + b"\x01", hashlib.sha256).digest()

    def tag(self, purpose: str, message: bytes, key_id: str | None = None) -> bytes:
        """Return a keyed hash, of which the message cannot be guessed.

        Raises:
            KeyMissingError: There is no key.
        """
        return hmac.new(self._key(purpose, key_id or self.key_id), message, hashlib.sha256).digest()

    def sealing(self, key_id: str | None = None) -> bytes:
        """Return the key under which checkpoints are sealed.

        Raises:
            KeyMissingError: There is no key.
        """
        return self._key("seal", key_id or self.key_id)

    def seal(self, place: str, message: bytes, key_id: str | None = None) -> bytes:
        """Seal a message, bound to the row that it belongs to.

        Raises:
            KeyMissingError: There is no key.
            EntropyError: The operating system gives no randomness.
        """
        return _core.seal(self.sealing(key_id), place.encode(), message)

    def unseal(self, place: str, sealed: bytes, key_id: str | None = None) -> bytes:
        """Return what was sealed.

        Raises:
            KeyMissingError: There is no key.
            WrongKeyError: It was sealed under another, for another row, or was altered.
        """
        try:
            return _core.unseal(self.sealing(key_id), place.encode(), sealed)
        except CheckpointError:
            raise WrongKeyError("what the store sealed belongs to another key or row, or was altered") from None
