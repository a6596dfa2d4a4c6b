"""A server of PostgreSQL for the slow tests: started by them, in a folder of its own, ended with them."""

import os
import pwd
import secrets
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

HOW = "the slow tests need PostgreSQL's server: apt-get install postgresql"


def binary(name):
    """Return a program of PostgreSQL; fail, with how to get it, where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        pytest.fail(HOW)
    return path


class Server:
    """A server on a socket in its folder, run as the user postgres where the tests run as root."""

    def __init__(self, folder, *options):
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.options = options
        self._own()
        self._run(binary("initdb"), "-D", self.data, "-A", "trust", "-U", "sordino", "--no-sync")
        self.start()

    def _own(self):
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            for above in self.folder.parents:
                if above.stat().st_uid == 0 and above.stat().st_mode & 0o77 == 0:
                    above.chmod(above.stat().st_mode | 0o011)

    def _run(self, *command):
        as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        with (self.folder / "log").open("ab") as log:
            subprocess.run([*as_user, *map(str, command)], check=True, stdout=log, stderr=log, cwd=self.folder)

    def start(self):
        said = " ".join(("-c listen_addresses=", f"-k {self.folder}", *self.options))
        self._run(binary("pg_ctl"), "-D", self.data, "-w", "-o", said, "-l", self.data / "log", "start")

    def stop(self, mode="immediate"):
        self._run(binary("pg_ctl"), "-D", self.data, "-w", "-m", mode, "stop")

    def url(self, database):
        return f"postgresql://sordino@/{database}?host={self.folder}"

    def fresh(self):
        """Return the URL of a new database."""
        name = f"d{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)
