"""Shared fixtures: hypothesis profiles, and a silenced deterministic key."""

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import settings

import sordino as so

# What runs in the background of a shell ignores Ctrl-C, and so would the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("fast", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("slow", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("SORDINO_HYPOTHESIS", "fast"))


@pytest.fixture
def known_noise() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(bytes(32)):
            yield


@pytest.fixture(scope="session")
def postgres():
    """A server of PostgreSQL, one for each process of tests; its path is short, as that of a socket must be."""
    from postgres import Server

    with tempfile.TemporaryDirectory(prefix="sordino", dir="/tmp") as folder:
        server = Server(folder)
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request, tmp_path):
    """Where a store is made: a new file, or a new database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres").fresh()
