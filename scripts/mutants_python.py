"""Mutation testing of the rules of composition: each mutant of a module in a forked process, against tests.

    python scripts/mutants_python.py [--only MODULE...] [--jobs N] [--report FILE]

A process that has everything imported is forked for every mutant. The child gives functions the code of the mutant,
which reaches whoever imported them by name, and runs the tests until one fails. Mutants that live are printed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import inspect
import os
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("composition", "mixed_rule", "schedule", "laplace_composition", "calibration", "terms", "shares", "costs")
TESTS = ("accounting", "mixed_rule", "schedule", "calibration", "privacy", "stored_ledgers")
_LIMIT = 300.0

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.USub: (ast.UAdd,),
}
_CALLS = {
    "max": "min",
    "min": "max",
    "any": "all",
    "all": "any",
    "float_up": "float_down",
    "float_down": "float_up",
    "sqrt_down": "sqrt_up",
    "sqrt_up": "sqrt_down",
    "ceil": "floor",
    "floor": "ceil",
    "nextafter": None,
}


class Mutant:
    """One change of a tree, at a line."""

    def __init__(self, line: int, was: str, becomes: str, tree: ast.Module) -> None:
        self.line, self.was, self.becomes, self.tree = line, was, becomes, tree


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = [node for function in functions for node in ast.walk(function)]
    for place, node in enumerate(ast.walk(tree)):
        if any(node is other for other in inside):
            for change in _changes(node):
                changed = copy.deepcopy(tree)
                target = next(other for number, other in enumerate(ast.walk(changed)) if number == place)
                change(target)
                yield Mutant(node.lineno, ast.unparse(node), ast.unparse(target), changed)  # type: ignore[attr-defined]


def _changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    """Yield what can be done to a node: functions that do it to a copy."""

    def sets(name: str, value: object) -> Callable[[ast.AST], None]:
        return lambda target: setattr(target, name, value)

    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.AugAssign):
        yield from (sets("op", other()) for other in _OPERATORS.get(type(node.op), ()))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (sets("ops", [other()]) for other in _OPERATORS.get(type(node.ops[0]), ()))
    elif isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        yield sets("value", node.value + 1 if isinstance(node.value, int) else node.value * 0.75)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield sets("value", not node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if (other := _CALLS.get(name)) is not None:
            yield lambda target: setattr(target.func, "id" if isinstance(node.func, ast.Name) else "attr", other)  # type: ignore[attr-defined]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield from (sets("test", ast.Constant(value)) for value in (True, False))
    elif isinstance(node, ast.Raise):
        yield sets("exc", ast.Call(ast.Name("RuntimeError", ast.Load()), [], []))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield sets("value", ast.Constant(None))


def functions_of(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """Return the functions of a module by their qualified names, those of its classes too."""
    found: dict[str, types.FunctionType] = {}

    def collect(space: dict[str, object]) -> None:
        for value in space.values():
            for function in (value, getattr(value, "fget", None), getattr(value, "__func__", None)):
                function = inspect.unwrap(function) if callable(function) else function  # noqa: PLW2901
                if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
                    found[function.__qualname__] = function
            if isinstance(value, type) and value.__module__ == module.__name__:
                collect(dict(vars(value)))

    collect(dict(vars(module)))
    return found


def applied(module: types.ModuleType, mutant: Mutant) -> bool:
    """Give the functions of a module the code of a mutant; return whether any has another code now."""
    code = compile(ast.fix_missing_locations(mutant.tree), module.__file__ or "", "exec")
    codes: dict[str, types.CodeType] = {}
    todo = [code]
    while todo:
        for constant in todo.pop().co_consts:
            if isinstance(constant, types.CodeType):
                codes[constant.co_qualname] = constant
                todo.append(constant)
    changed = False
    for name, function in functions_of(module).items():
        new = codes.get(name)
        if new is not None and new != function.__code__ and new.co_freevars == function.__code__.co_freevars:
            function.__code__ = new
            changed = True
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
    return changed


def verdict(module: types.ModuleType, mutant: Mutant, tests: list[str]) -> str:
    """Fork, run the tests against a mutant, and say what became of it."""
    child = os.fork()
    if child == 0:
        status = 3
        with contextlib.suppress(BaseException):
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            import pytest  # noqa: PLC0415 - imported by the parent

            if applied(module, mutant):
                status = 4
                seen = "ignore::pytest.PytestAssertRewriteWarning"  # what the parent has imported
                code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", seen, *tests])
                status = {0: 0, 1: 1}.get(int(code), 4)
        os._exit(status)
    end = time.monotonic() + _LIMIT
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            assert code != 4, "pytest does not run"
            return {0: "lives", 3: "no other code"}.get(code, "killed")
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return "killed"
        time.sleep(0.02)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(MODULES), metavar="MODULE")
    parser.add_argument("--tests", nargs="*", default=[f"tests/privacy/test_{name}.py" for name in TESTS])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=Path, default=Path("mutants_python.tsv"))
    arguments = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "tests"))
    for name in ("numpy", "scipy.stats", "hypothesis", "pytest", "sordino", "sordino.testing"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    done = set()
    if arguments.report.exists():
        done = {tuple(line.split("\t")[:4]) for line in arguments.report.read_text().splitlines()}
    work = []
    for name in arguments.only:
        module = importlib.import_module(f"sordino.privacy.{name}")
        source = Path(module.__file__ or "").read_text()
        work += [(name, module, mutant) for mutant in mutants_of(source)]

    def one(item: tuple[str, types.ModuleType, Mutant]) -> str:
        name, module, mutant = item
        flat = [" ".join(text.split())[:200] for text in (mutant.was, mutant.becomes)]
        key = (name, str(mutant.line), *flat)
        if key in done:
            return "done"
        found = verdict(module, mutant, arguments.tests)
        with arguments.report.open("a") as out:
            out.write("\t".join([*key, found]) + "\n")
        return found

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(one, work))
    lines = [line.split("\t") for line in arguments.report.read_text().splitlines()]
    for line in lines:
        if line[-1] == "lives":
            print("\t".join(line))
    print(Counter(line[-1] for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
