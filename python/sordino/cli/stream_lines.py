"""Lines as they come, what stops them, and the numbers in them. No message says what is in a line, or in which."""

import contextlib
import csv
import math
import os
import select
import signal
from types import FrameType

import numpy as np

from sordino._support.files import csv_reader
from sordino.cli.tables import place_of, real
from sordino.errors import InputFileError
from sordino.workloads.base import Array

__all__ = ["Interruption", "LineParser", "LineReader"]

_BLOCK = 1 << 16
# A line of more bytes than this, and so many for each number, is malformed: it is not kept in memory.
_LONGEST = 1 << 16
_BYTES_A_NUMBER = 64


class Interruption:
    """Turns SIGINT and SIGTERM into a question: what is under way is finished first."""

    def __init__(self) -> None:
        self.stopped = False

    def __enter__(self) -> "Interruption":
        self.descriptor, self._written = os.pipe()
        os.set_blocking(self._written, False)
        self._before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        # The interpreter's own handler writes here, so that no signal slips in just before a wait.
        self._wakeup = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_exception: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.descriptor)
        os.close(self._written)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True


class LineReader:
    """Reads whatever lines have come, without waiting for more.

    Args:
        descriptor: Where from.
        interruption: What ends a wait.
        dim: Numbers in a line.
    """

    def __init__(self, descriptor: int, interruption: Interruption, dim: int) -> None:
        self._descriptor = descriptor
        self._interruption = interruption
        self._longest = _LONGEST + _BYTES_A_NUMBER * dim
        self._rest = b""
        self._overlong = False

    def wait(self, seconds: float | None) -> bool:
        """Wait for input, so many seconds at most; return whether there is some, or its end."""
        wake = self._interruption.descriptor
        try:
            ready, _, _ = select.select([self._descriptor, wake], [], [], seconds)
        except OSError:  # pragma: no cover - Windows cannot wait for files
            return True
        return self._descriptor in ready

    @property
    def begun(self) -> bool:
        """Whether the input has come within a line, and not beyond all that a line may be."""
        return bool(self._rest)

    def follows(self, seconds: float) -> bool:
        """Wait for input, whatever was interrupted; return whether there is some, or its end."""
        try:
            return bool(select.select([self._descriptor], [], [], seconds)[0])
        except OSError:  # pragma: no cover - Windows cannot wait for files
            return True

    def read(self, *, whole: bool = False) -> list[bytes] | None:
        """Return the lines that are complete now, None at the end.

        Args:
            whole: Whether no more is taken than the line that was begun.

        Raises:
            InputFileError: The input cannot be read.
        """
        try:
            block = os.read(self._descriptor, 1 if whole else _BLOCK)
        except OSError as error:
            raise InputFileError(f"the input cannot be read: {error.strerror}") from None
        if not block:
            last = [self._whole(b"")] if self._rest or self._overlong else None
            self._rest, self._overlong = b"", False
            return last
        *lines, rest = block.split(b"\n")
        if lines:
            lines[0] = self._whole(lines[0])
            self._rest, self._overlong = b"", False
        self._overlong = self._overlong or len(self._rest) + len(rest) > self._longest
        self._rest = self._whole(rest)
        return lines

    def _whole(self, end: bytes) -> bytes:
        """Return the line that ends so; an overlong one is empty, wherever the blocks that it came in end."""
        line = self._rest + end
        return b"" if self._overlong or len(line) > self._longest else line


class LineParser:
    """From lines to items: a line that is not as many finite numbers as declared is a null item, silently.

    Args:
        dim: Numbers in a line.
        columns: Names of the columns that hold them, which are then in the first line.
    """

    def __init__(self, dim: int, columns: tuple[str, ...]) -> None:
        self._dim = dim
        self._columns = columns
        self._places: list[int] | None = None
        self._begun = False

    def items(self, lines: list[bytes]) -> Array:
        """Return the items of these lines, shape (lines, dim).

        Raises:
            InputFileError: The first line lacks a column.
        """
        if lines and not self._begun:
            self._begun = True
            lines = [lines[0].removeprefix(b"\xef\xbb\xbf"), *lines[1:]]
        if self._columns and self._places is None and lines:
            header = _fields(lines[0])
            self._places = [place_of(name, header) for name in self._columns]
            lines = lines[1:]
        items = np.zeros((len(lines), self._dim))
        for item, line in zip(items, lines, strict=True):
            # A field that is missing, no number or not finite leaves the null item.
            with contextlib.suppress(ValueError, IndexError):
                item[:] = self._numbers(_fields(line))
        return items

    def _numbers(self, fields: list[str]) -> list[float]:
        if self._places is not None:
            fields = [fields[place] for place in self._places]
        numbers = [real(field) for field in fields]
        if len(numbers) != self._dim or not all(map(math.isfinite, numbers)):
            raise ValueError
        return numbers


def _fields(line: bytes) -> list[str]:
    try:
        return next(csv_reader([line.decode("utf-8", "replace")]), [])
    except csv.Error:
        return []
