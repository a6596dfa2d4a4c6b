"""No key stays in memory behind a stream, and no child of a process goes on with its noise, however it was made."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sordino as so
from sordino._support import processes

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

STREAM = "so.plan(so.Continual(so.RunningSum(64)), so.GaussianDP(mu=1.0))"
# What is planned, and what is done with it: after that nothing of a key may be left.
USES = {
    "closed": (STREAM, "s = plan.open(); s.update([1, 2]); s.close()"),
    "dropped": (STREAM, "s = plan.open(); s.update(1); del s"),
    "restored": (
        STREAM,
        "s = plan.open(store=store()); s.update(1); c = s.checkpoint(bytes(32)); s.close(); "
        "s = so.restore(c, bytes(32), store()); s.close()",
    ),
    "lazy": (
        "so.plan(so.Continual(so.events.WeightedGraph(400, 16, max_weight=1.0), reads='lazy'), so.GaussianDP(mu=1.0))",
        "s = plan.open(); s.update(1, 2); s.weights(1, 2); s.close()",
    ),
    "segments": (
        "so.plan(so.events.RareCount(64, 64), so.PureDP(epsilon=1.0), mechanism='above')",
        "s = plan.open(); s.update([1, 2]); s.close()",
    ),
    "pan-private, in use": (
        "so.plan(so.Continual(so.RunningHistogram(16, 16), pan_private=True), so.PureDP(epsilon=1.0))",
        "s = plan.open(); s.update([1, 2])",
    ),
    "releases": ("so.plan(so.Histogram(64), so.GaussianDP(mu=1.0))", "for _ in range(16): plan.release(np.arange(64))"),
    "a report": (
        "so.plan(so.local.LocalSurvey(1000, intervals=16), so.PureDP(epsilon=1.0))",
        "plan.encode_client(0.3)",
    ),
}
PROGRAM = """
import gc, sys, tempfile
import numpy as np, sordino as so
folder = tempfile.mkdtemp()
store = lambda: so.streams.FileStepStore(folder + "/s")
plan = {plan}
print(flush=True); sys.stdin.readline()
{run}
gc.collect()
print(flush=True); sys.stdin.readline()
"""


def keys_in(process):
    """Return what stands behind the constant of ChaCha in the memory of a process: keys."""
    found = set()
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        where, rights = line.split()[:2]
        if "rw" not in rights:
            continue
        low, high = (int(end, 16) for end in where.split("-"))
        with Path(f"/proc/{process}/mem").open("rb", 0) as memory, contextlib.suppress(OSError):
            memory.seek(low)
            content = memory.read(high - low)
            place = content.find(b"expand 32-byte k")
            while place >= 0:
                key = content[place + 16 : place + 48]
                if len(set(key)) > 16:  # no zeros, no text
                    found.add(key)
                place = content.find(b"expand 32-byte k", place + 1)
    return found


@linux
@pytest.mark.parametrize("use", USES)
def test_no_key_stays(use):
    plan, run = USES[use]
    program = [sys.executable, "-c", PROGRAM.format(plan=plan, run=run)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        try:
            before = keys_in(child.pid)
        except PermissionError:
            child.kill()
            pytest.skip("may not read the memory of a child")
        print(file=child.stdin, flush=True)
        child.stdout.readline()
        after = keys_in(child.pid)
        print(file=child.stdin, flush=True)
    assert not after - before


NAME_SPACES = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
def apart(fork=os.fork):
    if libc.unshare(0x20000000):
        print("may not")
        sys.exit()
    child = fork()
    if child:
        os.waitpid(child, 0)
    return child == 0
if not apart():
    sys.exit()
import sordino as so
stream = so.plan(so.Continual(so.RunningSum(4)), so.GaussianDP(mu=1.0)).open()
ledger = so.Ledger(so.PureDP(epsilon=1.0))
store = so.streams.InMemoryStepStore()
storage = so.Store(":memory:")
table = so.plan(so.Continual(so.RunningSum(4), dim=2), so.GaussianDP(mu=1.0)).open()
sketch = so.sketches.Sketch(8, 4)
sums = so.plan(so.smooth.SmoothQueries(1, points=9, bounds=(0, 1), query_class=so.smooth.GaussianKernels(0.5)),
               so.PureDP(epsilon=1.0)).sums()
lazy = so.plan(so.Continual(so.events.WeightedGraph(500, 9), reads="lazy"), so.GaussianDP(mu=1.0)).open()
apart({fork})
uses = {"batch": lambda: stream.update([5, 6]), "stream": lambda: stream.update(5),
        "ledger": lambda: ledger.charge(so.privacy.PureCost(1.0)),
        "table": lambda: table.update([1, 2]), "sketch": lambda: sketch.update(3), "cells": lambda: sketch.update([3, 4]),
        "bytes": sketch.to_bytes, "points": lambda: sums.update([[0.5]]), "lazy": lambda: lazy.update(1, 2),
        "storage": lambda: so.Ledger(so.PureDP(epsilon=1.0), store=storage), "store": lambda: store.acquire("x", new=True)}
uses = dict([(name, uses.pop(name)) for name in {first}] + list(uses.items()))
for name, use in uses.items():
    try:
        use()
        print(os.getpid(), name, "works", flush=True)
    except so.SordinoError:
        print(os.getpid(), name, "refuses", flush=True)
"""


@linux
@pytest.mark.parametrize("fork", ["os.fork", "libc.fork"])
@pytest.mark.parametrize("first", ["stream", "batch", "sketch", "cells", "bytes", "table", "points", "lazy", "store"])
def test_the_first_process_of_two_name_spaces_is_not_the_same(fork, first):
    """Both have the number 1; one has the stream. Whatever is used first."""
    program = NAME_SPACES.replace("{fork}", fork).replace("{first}", repr([first]))
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    if "may not" in said:
        pytest.skip("needs the right to make a name space")
    names = {line.split()[1] for line in said.splitlines()}
    assert len(names) == 11
    for name in names:
        lines = sorted(line for line in said.splitlines() if name in line.split())
        assert lines == [f"1 {name} refuses", f"1 {name} works"]


RAW = """
import ctypes, os, sordino as so
stream = so.plan(so.Continual(so.RunningSum(4)), so.GaussianDP(mu=1.0)).open()
os.getpid = lambda: 1
if ctypes.CDLL(None).{fork} == 0:
    try:
        stream.update(5)
        os._exit(1)
    except so.errors.ForkError:
        os._exit(2)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@linux
@pytest.mark.parametrize("fork", ["fork()", "syscall(57)"])
def test_forks_that_python_does_not_see_are_seen(fork):
    """By a page of memory that the system empties in the child; the process ids are made equal here."""
    if not processes.WATCHED or os.uname().machine != "x86_64":
        pytest.skip("this system empties no page, or has another number for the call")
    said = subprocess.run([sys.executable, "-c", RAW.format(fork=fork)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "2"


def test_a_process_is_itself():
    assert processes.this_process() == processes.this_process()
    with so.plan(so.Continual(so.RunningSum(4)), so.PureDP(epsilon=1.0)).open() as stream:
        stream.update(1)
