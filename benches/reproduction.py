"""Every figure and table of the five papers that can be made again, by correct mechanisms, beside what the papers say.

Tables go to `docs/reproduction.md`, pictures to `docs/assets/reproduction`. The papers' data are used where they are handed on;
the page says what stands in their place where they are not.

Run `python benches/reproduction.py`, or name some: `python benches/reproduction.py smooth`. `SORDINO_BENCH_QUICK=1` makes a short
run, which writes nothing.
"""

import importlib
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from generated import machine, written
from harness import quick
from papers.result import table

_HERE = Path(__file__).resolve().parent
_DOCS = _HERE.parent / "docs"
PAPERS = ("fourier", "smooth", "constant_matters", "compressive", "geometry")


def _write(name: str, pictures: tuple[str, ...], made: str) -> None:
    page, assets = _DOCS / "reproduction.md", _DOCS / "assets" / "reproduction"
    page.write_text(written(page.read_text(), name, f"{machine()}\n\n{made}"))
    assets.mkdir(exist_ok=True)
    for picture in pictures:
        shutil.copyfile(_HERE / "pictures" / picture, assets / picture)


def _main() -> None:
    match sys.argv[1:]:
        case ["--section", name]:
            print(json.dumps([asdict(result) for result in importlib.import_module(f"papers.{name}").results()]))
        case names if set(names) <= set(PAPERS):
            for name in names or PAPERS:
                paper = importlib.import_module(f"papers.{name}")
                made = table(paper.results())
                print(f"## {name}\n\n{made}\n", flush=True)
                if not quick():
                    _write(name, paper.PICTURES, made)
        case _:
            sys.exit(f"usage: python {sys.argv[0]} [{' | '.join(PAPERS)}]...")


if __name__ == "__main__":
    _main()
