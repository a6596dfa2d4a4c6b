"""The exceptions of sordino: one base class whose children are also standard exceptions.

Messages name what was wrong, what was expected and what to do. They never contain private values, and an
exception that replaces another one is raised ``from None`` so that the chain cannot carry them either.
"""

from typing import Any

__all__ = [
    "BudgetExceededError",
    "BusyError",
    "CheckpointError",
    "DataTypeError",
    "DuplicateRequestError",
    "EntropyError",
    "ForkError",
    "HorizonError",
    "InputFileError",
    "InvalidParameterError",
    "MissingDependencyError",
    "PlanFileError",
    "ShapeError",
    "SordinoError",
    "StepConflictError",
    "StepStoreError",
    "StreamClosedError",
    "UnitError",
    "UnsupportedCostError",
    "UnsupportedMechanismError",
]


_CONTEXT: Any = vars(BaseException)["__context__"]


class SordinoError(Exception):
    """Base class of every exception that sordino raises on purpose."""

    @property
    def __context__(self) -> BaseException | None:
        """What was being handled, unless it was left out by `from None`: it may quote a private value."""
        return None if self.__suppress_context__ else super().__context__

    @__context__.setter
    def __context__(self, other: BaseException | None) -> None:
        _CONTEXT.__set__(self, other)


class InvalidParameterError(SordinoError, ValueError):
    """Raised when a public parameter is outside its range or contradicts another one."""


class ShapeError(SordinoError, ValueError):
    """Raised when an array has the wrong number of dimensions or the wrong lengths."""


class DataTypeError(SordinoError, TypeError):
    """Raised when an argument has a type, or an array an element type, that is not accepted."""


class BudgetExceededError(SordinoError, RuntimeError):
    """Raised when a ledger refuses an event because the total would be exceeded; nothing is spent."""


class DuplicateRequestError(SordinoError, RuntimeError):
    """Raised when a request id has been charged before; nothing is spent a second time."""


class ForkError(SordinoError, RuntimeError):
    """Raised when a budget or a stream is used from a process or through a copy that does not own it."""


class EntropyError(SordinoError, OSError):
    """Raised when the operating system does not deliver the random bytes that noise needs."""


class UnitError(SordinoError, ValueError):
    """Raised when data or a charge protect another thing than the plan or the ledger does; nothing is spent."""


class UnsupportedCostError(SordinoError, TypeError):
    """Raised when an accountant is given a kind of event that its rules cannot count."""


class UnsupportedMechanismError(SordinoError, ValueError):
    """Raised when a kind of noise cannot give the privacy guarantee that was asked for."""


class PlanFileError(SordinoError, ValueError):
    """Raised when a stored plan, event or privacy record is malformed or understates its noise."""


class InputFileError(SordinoError, OSError):
    """Raised when an input file cannot be read as what it was declared to be."""


class MissingDependencyError(SordinoError, ImportError):
    """Raised when an optional package is needed for a call and is not installed."""


class StreamClosedError(SordinoError, RuntimeError):
    """Raised when a closed stream is used; nothing is released."""


class HorizonError(SordinoError, RuntimeError):
    """Raised when a stream is asked for more steps than its budget covers; nothing is released."""


class CheckpointError(SordinoError, ValueError):
    """Raised when a checkpoint is corrupt, stale, of another stream, or sealed under another key."""


class StepStoreError(SordinoError, OSError):
    """Raised when a step store cannot be used: in use elsewhere, of another stream, or not writable."""


class BusyError(SordinoError, RuntimeError):
    """Raised in a handler of a signal that came into the middle of a call of the same object; nothing is done."""


class StepConflictError(SordinoError, RuntimeError):
    """Raised when a step that was released comes again with another item; nothing is released."""
