"""Chains of hashes: what was written down cannot be altered, exchanged or cut in the middle unseen."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["canonical", "entry_hash", "first_hash", "step_hash"]


def canonical(record: dict[str, Any]) -> str:
    """Return JSON with sorted keys, in ASCII, without spaces; floats are texts by then."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _hashed(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


def first_hash(store: str, ledger: str, terms: str) -> bytes:
    """Return what the first entry of a ledger, or the first step of a stream, is chained to."""
    return _hashed(b"sordino first 1", store.encode(), ledger.encode(), terms.encode())


def entry_hash(before: bytes, sequence: int, kind: str, body: str) -> bytes:
    """Return the hash of an entry behind another."""
    return _hashed(b"sordino entry 1", before, sequence.to_bytes(8, "big"), kind.encode(), body.encode())


def step_hash(before: bytes, first: int, steps: int, name: str | None, parts: tuple[bytes | None, ...]) -> bytes:
    """Return the hash of published steps behind others."""
    numbers = first.to_bytes(8, "big") + steps.to_bytes(8, "big")
    named = b"" if name is None else b"\x01" + name.encode()
    return _hashed(b"sordino step 1", before, numbers, named, *(b"" if p is None else b"\x01" + p for p in parts))
