"""Releases and streams from asyncio: what waits for noise or a disk runs in threads."""

from sordino.plans.awaited import open, release, update

__all__ = ["open", "release", "update"]
