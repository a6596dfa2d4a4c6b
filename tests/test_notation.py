"""NOTATION.md and README.md: names that exist, and as many words as can be read."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import sordino as so

ROOT = Path(__file__).resolve().parent.parent
TABLES = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "NOTATION.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
]
SYMBOLS = [cells for cells in TABLES if len(cells) == 4 and cells[0] != "symbol"]


def classes():
    """Return every class of the package, by name; several may have one."""
    found = {}
    for module in pkgutil.walk_packages(so.__path__, "sordino."):
        if not module.name.startswith(("sordino.cli", "sordino.tables.engines")):
            for name, value in vars(importlib.import_module(module.name)).items():
                if inspect.isclass(value):
                    found.setdefault(name, set()).add(value)
    return found


def has(kind, name):
    fields = {field for base in kind.__mro__ for field in getattr(base, "__annotations__", {})}
    sources = [
        inspect.getsource(base)
        for base in kind.__mro__
        if base.__module__.startswith("sordino.") and base.__module__ != "sordino._core"
    ]
    set_there = any(re.search(rf"self\.{name}\b[^=(\n]*= ", source) for source in sources)
    return hasattr(kind, name) or name in fields or set_there


def test_names_of_python_exist():
    known = classes()
    wrong = [
        f"{owner}.{name}"
        for _, _, _, python in SYMBOLS
        for owner, name in re.findall(r"`(?:\w+\.)*([A-Z]\w+)\.(\w+)", python)
        if not any(has(kind, name) for kind in known.get(owner, ()))
    ]
    assert not wrong


def test_files_of_rust_exist():
    core = ROOT / "rust" / "sordino-core" / "src"
    files = {path.relative_to(core).as_posix() for path in core.rglob("*")}
    named = [path for _, _, rust, _ in SYMBOLS for path in re.findall(r"`([\w/]+(?:\.rs|/))`", rust)]
    assert named
    assert not [path for path in named if not any(f"/{file}".endswith(f"/{path.rstrip('/')}") for file in files)]


@pytest.mark.parametrize("words", [600])
def test_the_readme_is_read_in_three_minutes(words):
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= words
