"""The one order of spending: everything that can fail, the charge, the noise, the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sordino._support.checks import name_of
from sordino.errors import DataTypeError, DuplicateRequestError, InvalidParameterError
from sordino.privacy.books import Charge
from sordino.privacy.ledger import Ledger
from sordino.privacy.requests import Answering, NoiseKey
from sordino.testing import current_key

__all__ = ["noise_beside", "opened", "released"]


def noise_beside(ledger: object) -> NoiseKey:
    """Return where noise comes from, for a release that this ledger is charged for.

    Raises:
        DataTypeError: It is neither a ledger nor None.
        InvalidParameterError: Noise is deterministic and there is a ledger.
    """
    key = current_key()
    if ledger is not None and not isinstance(ledger, Ledger):
        raise DataTypeError("ledger must be a sordino.Ledger")
    if ledger is not None and key is not None:
        raise InvalidParameterError("a ledger refuses deterministic noise: such releases are not private")
    return NoiseKey(key, key is None)


class _Opened(Protocol):
    accounted: bool

    def close(self) -> None: ...


_Stream = TypeVar("_Stream", bound=_Opened)


def opened(ledger: Ledger | None, charge: Charge, prepare: Callable[[bytes | None], _Stream]) -> _Stream:
    """Open a stream and charge for it: everything that can fail comes before the charge, every item after it.

    Args:
        ledger: Where it is charged; None leaves the stream unaccounted.
        charge: What the stream costs.
        prepare: Opens it, under a known key in tests and tutorials.

    Raises:
        SordinoError: As `Ledger.charge` and `prepare`; nothing was charged, nothing stays open.
    """
    key = noise_beside(ledger).key
    if ledger is None:
        return prepare(key)
    ledger.check(charge.cost, charge.request_id, charge.unit)
    stream = prepare(key)
    try:
        ledger.charge(charge.cost, charge.request_id, charge.label, charge.unit)
    except BaseException:
        stream.close()
        raise
    stream.accounted = True
    return stream


_Released = TypeVar("_Released")


def released(ledger: Ledger | None, how: Answering[_Released]) -> _Released:
    """Measure once and charge for it: everything that can fail comes before the charge, every noise after it.

    In memory, what was measured is attached to a named request at once: whatever interrupts what comes then, the
    request can be repeated and is answered from it. In a store, what leaves is what was kept.

    Args:
        ledger: Where it is charged; None leaves the release unaccounted.
        how: What it costs, and how it is made.

    Raises:
        SordinoError: As `Ledger.charge` and `how.prepare`; nothing was charged.
        RequestError: The request was charged for something else, or cannot be answered any more, or not now.
    """
    noise, request_id = noise_beside(ledger), how.charge.request_id
    if request_id is not None:
        name_of("request_id", request_id)
    if ledger is None:
        return how.finish(how.prepare().measure(noise))
    if ledger._requests is not None:
        return ledger._requests.answer(how)
    before = _released_before(ledger, how)
    if before is None:
        ledger.check(how.charge.cost, request_id, how.charge.unit)
        measure = how.prepare().measure
        ledger._book.add(how.charge)
        before = measure(noise)
        if request_id is not None:
            ledger.attach(request_id, before)
    release = how.finish(before)
    if request_id is not None:
        ledger._book.attach(request_id, release, instead=True)
    return release


def _released_before(ledger: Ledger, how: Answering[_Released]) -> _Released | None:
    """Return what was released for a request before, None if nothing was.

    Raises:
        DuplicateRequestError: The request was charged for something else, or failed.
    """
    request_id = how.charge.request_id
    if request_id is None or (charged := ledger.find(request_id)) is None:
        return None
    found = how.same(charged.record)
    if found is not None:
        return found
    raise DuplicateRequestError(
        "this request_id was charged before, for another plan or a failed release", charged=True, request_id=request_id
    )
