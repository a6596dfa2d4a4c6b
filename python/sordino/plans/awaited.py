"""Releases and streams from asyncio: in threads, so that a loop never waits for noise or a disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sordino._support.checks import text
from sordino.errors import DataTypeError
from sordino.plans.plan import ReleasePlan, StreamPlan

if TYPE_CHECKING:
    from sordino.privacy.ledger import Ledger
    from sordino.streams.base import OpenStream

__all__ = ["open", "release", "update"]


async def release(plan: ReleasePlan, data: object, *, ledger: Ledger, request_id: str) -> Any:
    """Release in a thread.

    A task that is cancelled does not stop the thread: the request is charged and answered, or not, as if nobody had
    looked away. So it has a name, and a repeat has the answer.

    Args:
        plan: The plan.
        data: As `ReleasePlan.release` takes them.
        ledger: Where the cost is charged.
        request_id: Name of the request.

    Raises:
        DataTypeError: It is no plan of releases, or the name is no string.
        SordinoError: As `ReleasePlan.release`.
    """
    if not isinstance(plan, ReleasePlan):
        raise DataTypeError("only a plan of releases is released")
    text("request_id", request_id)
    return await _in_thread(plan.release, data, ledger=ledger, request_id=request_id)


async def open(plan: StreamPlan, *args: Any, **options: Any) -> Any:
    """Open a stream in a thread, as `StreamPlan.open`.

    Raises:
        DataTypeError: It is no plan of streams.
        SordinoError: As `StreamPlan.open`.
    """
    if not isinstance(plan, StreamPlan):
        raise DataTypeError("only a plan of streams is opened")
    return await _in_thread(plan.open, *args, **options)


async def update(stream: OpenStream, *items: Any, step_id: str | int, **options: Any) -> Any:
    """Publish the next step in a thread, as the stream's `update`.

    A task that is cancelled does not stop the thread: so the step has a name, and a repeat has the answer.

    Raises:
        SordinoError: As the stream's `update`.
    """
    return await _in_thread(stream.update, *items, step_id=step_id, **options)  # type: ignore[attr-defined]


async def _in_thread(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    import asyncio  # noqa: PLC0415 - whoever awaits has it; others need not wait for it

    return await asyncio.to_thread(call, *args, **options)
