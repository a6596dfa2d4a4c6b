"""Imports point downwards, and the picture of the house is the house."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sordino

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
house = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(house)


def test_imports_point_downwards():
    assert house.upward() == []


def test_every_module_has_its_layer():
    lost = [name for name in house.modules() if name.split(".")[0] not in house.LAYERS and not house.is_facade(name)]
    assert lost == []


# A union of workloads is a workload, and a class of kernels has queries: each is an operator of the other.
CIRCLES = [
    ["workloads.base", "workloads.union"],
    ["workloads.smooth.queries", "workloads.smooth.query_classes"],
]


def test_no_modules_need_each_other():
    """Not for annotations and not late either, but for two operators."""
    assert house.circles() == CIRCLES


def test_nothing_else_is_imported_late():
    """But for what is optional: the command line, and what an executor of Spark or a registry of extras loads."""
    late = {
        (name, target)
        for name, path in house.modules().items()
        if not name.startswith("cli")
        for target, inside, _ in house.imported(path)
        if inside
    }
    assert late == {tuple(CIRCLES[0]), tuple(reversed(CIRCLES[1]))}


def test_facades_define_nothing():
    for name in house.FACADES - {"__init__", "noise"}:
        text = (house.PACKAGE / f"{name}.py").read_text(encoding="utf-8")
        assert "def " not in text
        assert "class " not in text


def test_names_are_fetched_from_where_they_are_imported_for_types():
    tree = ast.parse((house.PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [(node.module, alias.name) for node in typed.body for alias in node.names]
    made = {name: module.removeprefix("sordino.") for module, name in imports if module != "sordino"}
    modules = {name for module, name in imports if module == "sordino"}
    assert made == vars(sordino)["_MADE_IN"]
    assert {*made, *modules, "__version__"} == set(sordino.__all__)
    assert all(getattr(sordino, name) is not None for name in sordino.__all__)
    assert set(sordino.__all__) <= set(dir(sordino))
    assert sordino.report.__name__ == "report"  # no package has the name of a function
    assert not {path.stem for path in house.PACKAGE.iterdir()} & made.keys()


def test_importing_sordino_loads_the_core_alone():
    program = "import sys, sordino; print(*sorted(name for name in sys.modules if name.startswith('sordino')))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert loaded.split() == ["sordino", "sordino._core"]


_AT_ONCE = """
import sys, threading, sordino
sys.setswitchinterval(1e-5)
names = ["report", "plan", "metrics", "tables", "Ledger", "restore", "tabulate", "Store", "adaptive", "RunningSum", "aio"]
start, found = threading.Barrier(len(names)), []
def fetch(name):
    start.wait()
    found.append(getattr(sordino, name))
threads = [threading.Thread(target=fetch, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == len(names)
"""


def test_threads_fetch_different_names_at_once():
    """Each found half of a package in every second process, before one waited for another."""
    for _ in range(8):
        subprocess.run([sys.executable, "-c", _AT_ONCE], check=True)


_FORKED = """
import os, signal, sys, threading, time, sordino
sys.setswitchinterval(1e-5)
fetching = threading.Thread(target=lambda: sordino.plan)
fetching.start()
time.sleep(0.02)
child = os.fork()
if child == 0:
    signal.alarm(20)
    sordino.Ledger, sordino.plan
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
fetching.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_children_forked_while_a_thread_fetches_names_fetch_them_too():
    """They waited for ever for a lock whose holder was not in them."""
    for _ in range(3):
        command = [sys.executable, "-W", "ignore", "-c", _FORKED]
        assert subprocess.run(command, check=True, capture_output=True).stderr == b""


def test_the_picture_is_the_house():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert house.written(text) == text, "python scripts/house.py --write"
