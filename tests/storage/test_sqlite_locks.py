"""Locks of SQLite belong to a process: whoever opens a store must not take away those of another thread."""

import subprocess
import sys

import sordino as so
from sordino.storage.sqlite import _made

_OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0.0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    print("locked")
else:
    print("free")
"""


def _seen_from_elsewhere(path):
    return subprocess.run(
        [sys.executable, "-c", _OTHER, path], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_another_store_in_the_same_process_leaves_a_transaction_its_locks(tmp_path):
    path = str(tmp_path / "store.db")
    seen = []

    def script(transaction):
        transaction.rows("SELECT count(*) FROM meta")
        seen.append(_seen_from_elsewhere(path))
        # Whatever an opening does before SQLite itself opens the file; its own transaction must wait for this one.
        _made(tmp_path / "store.db")
        seen.append(_seen_from_elsewhere(path))

    store = so.Store(path)
    store.write(script)
    assert seen == ["locked", "locked"]
    assert _seen_from_elsewhere(path) == "free"


def test_a_file_is_made_for_its_owner_alone_and_nothing_is_left_beside_it(tmp_path):
    with so.Store(tmp_path / "store.db"):
        assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o600
        assert not [each for each in tmp_path.iterdir() if not each.name.startswith("store.db")]
