"""Processes that are killed while they charge, answer, claim, publish, keep states and forget: what an oracle outside saw.

`python benches/kills.py --kills 10000` runs on SQLite, and on PostgreSQL with `--where URL`. Children are forked from a
warm parent, do what services do, write down every number that left before they go on, and are killed at a random
moment. In the end everything that left is in the store, equal; no request and no step has two answers; entries are
within the total; every charge is answered or can be finished.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import sordino as so

__all__ = ["Seen", "killed"]

KEY = bytes(range(32))
TOTAL = so.PureDP(epsilon=1e6)
TABLE = so.plan(so.Histogram(6), so.PureDP(epsilon=0.5))
COUNTS = np.arange(6)
COUNTER = so.plan(so.Continual(so.RunningSum(2**20)), so.PureDP(epsilon=1.0))
EDGES = so.plan(so.events.EdgeCount(2**16, 2**16), so.PureDP(epsilon=1.0))
# Names that come again, so that repeats meet what a death left.
_NAMES, _STEPS = 40, 3


class Seen:
    """The oracle: every number that left, by its name.

    Attributes:
        answers: What left.
        kills: Processes that were killed.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.kills = 0

    def note(self, name: str, value: object) -> None:
        """Note what left.

        Raises:
            AssertionError: Something else left under this name before.
        """
        assert self.answers.setdefault(name, value) == value, f"{name} has two answers"


def _child(where: str, write: int, seed: int) -> None:
    """Do what services do until killed."""
    chance = random.Random(seed)

    def left(name: str, value: object) -> None:
        os.write(write, (json.dumps([name, value]) + "\n").encode())

    store = so.Store(where, key=KEY, timeout=5.0)
    ledger = so.Ledger(TOTAL, store=store, lease="1 ms", attempts=100, recovery=chance.choice(["same", "redraw"]))
    while True:
        with suppress(so.errors.RequestInProgressError, so.errors.StreamInUseError, so.errors.StreamTakenError):
            if chance.random() < 0.5:
                name = f"r{chance.randrange(_NAMES)}-{seed // _NAMES}"
                left(name, TABLE.release(COUNTS, ledger=ledger, request_id=name).values.tolist())
                continue
            plan, stream_id = chance.choice([(COUNTER, "counter"), (EDGES, "edges")])
            with plan.open(ledger, store=store, stream_id=stream_id, take_over=True, keep_steps="1 s") as stream:
                for _ in range(chance.randrange(1, 6)):
                    number = stream.step // _STEPS
                    items = ([1] * _STEPS,) if plan is COUNTER else _edges(number)
                    left(f"{stream_id} {number}", np.asarray(stream.update(*items, step_id=number)).tolist())


def _edges(number: int) -> tuple[list[int], list[int]]:
    first = (2 * _STEPS * number) % 60_000
    return [first + 2 * i for i in range(_STEPS)], [first + 2 * i + 1 for i in range(_STEPS)]


def killed(where: str, kills: int, *, longest: float = 0.06, seed: int = 1, seconds: float = 1e9) -> Seen:
    """Kill so many processes, two at a time, and verify what is left.

    Args:
        where: The store.
        kills: How many.
        longest: Most seconds before a kill.
        seed: Of the moments.
        seconds: After which it ends earlier.

    Raises:
        AssertionError: Something left twice, was lost, or was not accounted for.
    """
    chance, seen, end = random.Random(seed), Seen(), time.monotonic() + seconds
    so.Store(where, key=KEY).close()
    running: list[tuple[int, int, float]] = []
    while seen.kills < kills and time.monotonic() < end:
        while len(running) < 2:
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.close(read)
                    _child(where, write, seen.kills)
                except BaseException:
                    traceback.print_exc()
                os._exit(code)
            os.close(write)
            running.append((child, read, time.monotonic() + chance.uniform(0.0, longest)))
        child, read, moment = running.pop(0)
        time.sleep(max(0.0, moment - time.monotonic()))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "a child ended by itself"
        seen.kills += 1
        with os.fdopen(read) as lines:
            for line in lines:
                if line.endswith("\n"):  # written whole: small writes to a pipe are
                    seen.note(*json.loads(line))
    for child, read, _ in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read) as lines:
            for line in lines:
                if line.endswith("\n"):
                    seen.note(*json.loads(line))
    _verify(where, seen)
    return seen


def _verify(where: str, seen: Seen) -> None:
    store = so.Store(where, key=KEY)
    ledger = so.Ledger(TOTAL, store=store, lease="1 ms", attempts=100)
    assert ledger.verify() == ledger.head
    asked = {str(entry.request_id) for entry in ledger.history}
    releases = {name for name in asked if name.startswith("r")}
    assert len(asked) == len(ledger.history), "a request was charged twice"
    assert {name for name in seen.answers if name.startswith("r")} <= releases
    time.sleep(0.01)
    for name in sorted(releases):  # also those that were left: they are finished now
        seen.note(name, TABLE.release(COUNTS, ledger=ledger, request_id=name).values.tolist())
    assert not ledger.unanswered()
    streams = 0
    plans: tuple[tuple[Any, str, Callable[[int], tuple[Any, ...]]], ...] = (
        (COUNTER, "counter", lambda _: ([1] * _STEPS,)),
        (EDGES, "edges", _edges),
    )
    for plan, name, items in plans:
        numbers = [int(key.split()[1]) for key in seen.answers if key.startswith(f"{name} ")]
        if not numbers:
            continue
        with plan.open(ledger, store=store, stream_id=name, take_over=True) as stream:
            streams += 1
            assert stream.step % _STEPS == 0, "half a step was kept"
            assert max(numbers) < stream.step // _STEPS, "a step that left is not in the store"
            for number in sorted(numbers):
                with suppress(so.errors.StepForgottenError):
                    seen.note(f"{name} {number}", np.asarray(stream.update(*items(number), step_id=number)).tolist())
    assert len(ledger.history) <= len(releases) + 2, "a stream was charged twice"


def _main() -> int:
    parser = argparse.ArgumentParser(description="Kill processes and verify what is left.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--where", help="A URL of PostgreSQL; a file of SQLite if left out.")
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seen = killed(given.where or str(Path(folder) / "store.db"), given.kills, seconds=given.seconds)
    print(
        f"{seen.kills} kills in {time.monotonic() - began:.0f} s: {len(seen.answers)} names left, each with one answer, "
        "all of them in the store; nothing overspent, nothing unanswered"
    )
    return 0


if __name__ == "__main__":
    sys.exit(_main())
