"""The command line: `sordino plan`, `compare`, `release`, `stream` and others. Needs the extra `cli`."""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its code; say which package is missing if one is."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        print(f"sordino: the command line needs {' and '.join(missing)}: pip install 'sordino[cli]'", file=sys.stderr)
        sys.exit(2)
    from sordino.cli.commands import application  # noqa: PLC0415 - optional extra

    application(prog_name="sordino")
