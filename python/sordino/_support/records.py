"""Records as files: JSON with a digest, large arrays beside it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import path_of
from sordino._support.files import atomic_write, read_file
from sordino.errors import InputFileError, PlanFileError, SordinoError

__all__ = [
    "SCHEMA",
    "guarded",
    "joined",
    "packed_record",
    "parted",
    "rebuilt",
    "rebuilt_from",
    "record_digest",
    "write_record",
]

SCHEMA = 3
_INLINE = 512  # entries: larger arrays go to the .npz, whatever an entry takes in memory

Array: TypeAlias = NDArray[np.float64]

_Plan = TypeVar("_Plan")


def _key(array: NDArray[Any]) -> str:
    stored = "<i8" if array.dtype.kind == "i" else "<f8"
    return hashlib.sha256(np.ascontiguousarray(array, dtype=stored).tobytes()).hexdigest()


def _split(value: Any, arrays: dict[str, Array]) -> Any:
    """Replace arrays by lists, or by the SHA-256 of their bytes if large."""
    if isinstance(value, np.ndarray):
        if value.size <= _INLINE:
            name = "integers" if value.dtype.kind == "i" else "array"
            return {name: value.reshape(-1).tolist(), "shape": list(value.shape)}
        key = _key(value)
        arrays[key] = value
        return {"sha256": key, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {name: _split(item, arrays) for name, item in value.items()}
    if isinstance(value, list):
        return [_split(item, arrays) for item in value]
    return value


def _join(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "shape"}:
        return np.array(value["array"], dtype=np.float64).reshape(value["shape"])
    if isinstance(value, dict) and set(value) == {"integers", "shape"}:
        return np.array(value["integers"], dtype=np.int64).reshape(value["shape"])
    if isinstance(value, dict) and set(value) == {"sha256", "shape"}:
        array = arrays.get(value["sha256"])
        if array is None:
            raise PlanFileError("an array of the plan is missing from the file beside it")
        if _key(array) != value["sha256"]:
            raise PlanFileError("an array of the plan was altered")
        return array.reshape(value["shape"])
    if isinstance(value, dict):
        return {name: _join(item, arrays) for name, item in value.items()}
    if isinstance(value, list):
        return [_join(item, arrays) for item in value]
    return value


def _canonical(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


def record_digest(record: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical record."""
    return hashlib.sha256(_canonical(_split(record, {})).encode()).hexdigest()


def write_record(record: dict[str, Any], path: str | Path, what: str = "plan") -> Path:
    """Write a record with its digest, and the arrays above 4 kB beside it.

    Args:
        record: What to write; arrays may stand anywhere in it.
        path: The file.
        what: What it holds, for messages.

    Raises:
        DataTypeError: The path is none.
        InputFileError: The file cannot be written.
    """
    path = path_of(path)
    if not path.name:
        raise InputFileError(f"the {what} cannot be written: its name is none")
    record, arrays, packed = _prepared(record)
    if not arrays:
        return atomic_write(path, _text(record), what)
    # The name of the arrays is that of their content, and the record comes last: an old pair stays whole until then.
    old = _named(path)
    record["arrays"] = f"{path.name}.{hashlib.sha256(''.join(sorted(arrays)).encode()).hexdigest()[:8]}.npz"
    atomic_write(path.with_name(record["arrays"]), packed, what)
    atomic_write(path, _text(record), what)
    if old not in {None, record["arrays"]}:
        with suppress(OSError):
            path.with_name(str(old)).unlink()
    return path


def packed_record(record: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return a record with its digest as text, and its larger arrays: for a file of another kind that holds both."""
    record, _, packed = _prepared(record)
    return json.dumps(record, allow_nan=False).encode(), packed


def joined(text: bytes, packed: bytes) -> bytes:
    """Return both as one."""
    return len(text).to_bytes(8, "big") + text + packed


def parted(content: bytes) -> tuple[bytes, bytes]:
    """Return what was joined."""
    end = 8 + int.from_bytes(content[:8], "big")
    return content[8:end], content[end:]


def _prepared(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Array], bytes]:
    """Return a record with its digest, the arrays that it names, and these packed; nothing if there are none."""
    arrays: dict[str, Array] = {}
    record = _split(record, arrays)
    record["digest"] = hashlib.sha256(_canonical(record).encode()).hexdigest()
    buffer = io.BytesIO()
    if arrays:
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type] # numpy's stub has a flag among **kwds
    return record, arrays, buffer.getvalue()


def _text(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()


def _named(path: Path) -> str | None:
    """Return the name of the arrays that belong to the record that is there, if it is one."""
    try:
        name = json.loads(path.read_bytes()).get("arrays")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return name if _is_beside(name) else None


def _is_beside(name: object) -> bool:
    """Return whether a name is that of arrays in the same folder: a stranger's record names no other file."""
    return isinstance(name, str) and re.fullmatch(r"[^/\\\0]+\.[0-9a-f]{8}\.npz", name) is not None


def _unpacked(packed: bytes) -> dict[str, Array]:
    """Return the arrays of an `.npz`.

    Raises:
        PlanFileError: It is none.
    """
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    # What a broken archive raises is documented nowhere: nine kinds of error were seen.
    except Exception:
        raise PlanFileError("the file beside the plan is not one that was saved with it") from None


def rebuilt(path: str | Path, build: Callable[[dict[str, Any]], _Plan], what: str = "plan") -> _Plan:
    """Read a record, verify its digest, and build a plan of it.

    Args:
        path: The file.
        build: Makes the plan anew from the record, and refuses one that understates noise or cost.
        what: What the file holds, for messages.

    Raises:
        DataTypeError: The path is none.
        InputFileError: The file cannot be read.
        PlanFileError: The file is no plan or does not hold what it says.
    """
    path = path_of(path)

    def beside(name: object) -> dict[str, Array]:
        if name is None:
            return {}
        if not _is_beside(name):
            raise PlanFileError(f"the arrays of the {what} must lie beside it")
        arrays = path.with_name(str(name))
        return _unpacked(read_file(arrays, what)) if arrays.exists() else {}

    return _verified(read_file(path, what), beside, build, what)


def rebuilt_from(text: bytes, packed: bytes, build: Callable[[dict[str, Any]], _Plan], what: str) -> _Plan:
    """Do the same with what `packed_record` returned.

    Raises:
        PlanFileError: It did not return this, or something else than what it says.
    """
    return _verified(text, lambda _: _unpacked(packed) if packed else {}, build, what)


def _verified(
    text: bytes, arrays_of: Callable[[object], dict[str, Array]], build: Callable[[dict[str, Any]], _Plan], what: str
) -> _Plan:
    try:
        record = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise PlanFileError(f"the file is not a saved {what}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise PlanFileError(
            f"the {what} is of another schema; files of sordino before 0.2 are not read, those of a newer one by it"
        )
    name, digest = record.pop("arrays", None), record.pop("digest", None)
    arrays = arrays_of(name)

    def verified() -> _Plan:
        if digest != hashlib.sha256(_canonical(record).encode()).hexdigest():
            raise PlanFileError(f"the {what} was altered: its digest does not match")
        return build(_join(record, arrays))

    return guarded(verified, what)


def guarded(build: Callable[[], _Plan], what: str = "plan") -> _Plan:
    """Build from a stranger's record: whatever it raises is the file's fault.

    Raises:
        PlanFileError: The record is malformed, or understates noise or cost.
    """
    try:
        return build()
    except PlanFileError:
        raise
    except SordinoError as error:
        raise PlanFileError(f"the {what} cannot be fitted: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError, MemoryError):
        raise PlanFileError(f"the {what} lacks a field, or a field is of the wrong type") from None
