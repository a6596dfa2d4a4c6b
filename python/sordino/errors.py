"""The exceptions of sordino: one base class whose children are also standard exceptions.

Messages name what was wrong, what was expected and what to do. They never contain private values, and an
exception that replaces another one is raised ``from None`` so that the chain cannot carry them either.
"""

from typing import Any

__all__ = [
    "AnswerExpiredError",
    "BudgetExceededError",
    "BusyError",
    "CheckpointError",
    "DataTypeError",
    "DuplicateRequestError",
    "EntropyError",
    "ForkError",
    "HorizonError",
    "InputChangedError",
    "InputFileError",
    "InvalidParameterError",
    "KeyMissingError",
    "MissingDependencyError",
    "OutcomeUnknownError",
    "PlanFileError",
    "RequestError",
    "RequestInProgressError",
    "RequestLostError",
    "RollbackError",
    "ServiceError",
    "ShapeError",
    "SordinoError",
    "StepConflictError",
    "StepForgottenError",
    "StepPendingError",
    "StepStoreError",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreError",
    "StoreVersionError",
    "StreamClosedError",
    "StreamInUseError",
    "StreamTakenError",
    "TermsError",
    "UnitError",
    "UnsupportedCostError",
    "UnsupportedMechanismError",
    "WrongKeyError",
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


class ServiceError(SordinoError):
    """What a service can act on without reading text.

    Attributes:
        charged: Whether the request was charged; None if that is not known.
        retry: Whether the same call may succeed later; seconds to wait where they are known.
        request_id: The request, where there is one.
        status: The HTTP status that says the same: 409, 410, 429, 500 or 503.
    """

    status = 500

    def __init__(
        self,
        message: str,
        *,
        charged: bool | None = False,
        retry: bool | float = False,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.charged = charged
        self.retry = retry
        self.request_id = request_id


class RequestError(ServiceError, RuntimeError):
    """Raised when a request cannot be answered, or not now; nothing is spent a second time."""

    status = 409


class DuplicateRequestError(RequestError):
    """Raised when a request id has been charged before, for something else; nothing is spent a second time."""


class RequestInProgressError(RequestError):
    """Raised when somebody else is answering the request: `retry` says when to ask again."""

    status = 429


class RequestLostError(RequestError):
    """Raised when a request was charged and cannot be answered any more: its process died, or it was given up."""

    status = 410


class AnswerExpiredError(RequestError):
    """Raised when a request was answered so long ago that its answer was not kept."""

    status = 410


class InputChangedError(RequestError):
    """Raised when an unfinished request is repeated with other input than it was charged for."""


class StoreError(ServiceError, OSError):
    """Raised when a store of ledgers and streams cannot be used."""

    status = 503


class StoreBusyError(StoreError):
    """Raised when others kept a store locked for longer than its timeout; nothing has changed."""


class OutcomeUnknownError(StoreError):
    """Raised when a store went away before it said whether it kept something: ask again under the same name."""


class StoreVersionError(StoreError):
    """Raised when a store was written by another version of sordino, or holds something else."""

    status = 500


class TermsError(StoreError, ValueError):
    """Raised when a ledger is opened with other terms than it was made with."""

    status = 409


class RollbackError(StoreError):
    """Raised when a database is another one than the store was made in, or went back in time: commits may be lost."""

    status = 500


class StoreCorruptError(StoreError):
    """Raised when what a store holds does not belong together: it was altered, or damaged."""

    status = 500


class KeyMissingError(ServiceError, ValueError):
    """Raised when something secret would be stored, or read, and the store has no key."""


class WrongKeyError(ServiceError, ValueError):
    """Raised when what a store sealed belongs to another key or place, or was altered."""


class StreamInUseError(ServiceError, RuntimeError):
    """Raised when a stream is open elsewhere; `take_over=True` takes it from there."""

    status = 409


class StreamTakenError(ServiceError, RuntimeError):
    """Raised by a stream that was taken over elsewhere: nothing was released, and nothing will be."""

    status = 409


class StepForgottenError(ServiceError, LookupError):
    """Raised when a step was published so long ago that its answer was not kept."""

    status = 410


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


class StepPendingError(StepStoreError):
    """Raised when an earlier batch is not stored yet: call `resume`, or give it again under its own `step_id`."""


class BusyError(SordinoError, RuntimeError):
    """Raised in a handler of a signal that came into the middle of a call of the same object; nothing is done."""


class StepConflictError(SordinoError, RuntimeError):
    """Raised when a step that was released comes again with another item; nothing is released."""
