"""Imports point downwards, and the picture of the house is the house."""

import importlib.util
from pathlib import Path

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


def test_the_picture_is_the_house():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert house.written(text) == text, "python scripts/house.py --write"
