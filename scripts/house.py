"""The house as it is: layers, modules, lines of code, imports between layers; read from the sources.

`python scripts/house.py` prints the figures, `--write` puts the picture into CONTRIBUTING.md; `tests/test_house.py`
holds that imports point downwards.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import sys
import tokenize
from collections import Counter
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "sordino"
LAYERS = {
    "errors": "exceptions",
    "testing": "known randomness for tests",
    "_support": "checked arguments, private numbers, files, records, processes",
    "storage": "where ledgers and steps are kept",
    "privacy": "guarantees, units, costs, calibration, composition, the ledger",
    "workloads": "what is asked: tables, filters, Continual; events, smooth, local",
    "accuracy": "bounds, certificates, half widths",
    "mechanisms": "Request to Fit: a family is a catalogue, a fit, a Family",
    "releases": "what was published at once, and what follows from it",
    "streams": "what is published while it arrives",
    "plans": "one Plan, one Comparison, one planner",
    "tables": "from records to bounded counts",
    "reporting": "metrics, one page about what was published",
    "plots": "pictures, reached through _support/extras",
    "cli": "the command line",
}
# What users type: names of other layers, nothing of their own.
FACADES = {"__init__", "adaptive", "aio", "events", "smooth", "local", "sketches", "optimal", "noise", "training"}
OPEN = "<!-- made by scripts/house.py -->"
FILES, END = f"<!-- files, {OPEN[5:]}", "<!-- end of files -->"
SOURCES = (
    "python/sordino",
    "rust/sordino-core/src",
    "rust/sordino-py/src",
    "tests/conformance",
    "tests/benches",
    "benches",
)
KINDS, HEADS = {".py", ".rs"}, ("__init__.py", "mod.rs", "lib.rs")
# From a call to what leaves: module, what is defined there, and what it does.
WAYS = {
    "release": [
        ("plans.planner", "plan", "asks who serves the workload"),
        ("mechanisms.families", "family_of", "finds the family"),
        ("mechanisms.family", "Family", "checks the request, chooses a fit"),
        ("plans.plan", "ReleasePlan", "release(data, ledger=...)"),
        ("privacy.spending", "released", "read, charge, measure, attach, finish"),
        ("releases.making", "making", "how this fit reads, measures, finishes"),
        ("releases.release", "Release", "answers, and what follows for free"),
    ],
    "stream": [
        ("plans.planner", "plan", "as for a release"),
        ("mechanisms.stream.family", "best_stream", "chooses a fit of the stream"),
        ("plans.plan", "StreamPlan", "open(ledger, store=...)"),
        ("privacy.spending", "opened", "build all that can fail, charge"),
        ("streams.opening", "opened_stream", "which class publishes what"),
        ("streams.base", "OpenStream", "update: read the items of a step"),
        ("streams.counter", "Stream", "prepare, store, commit: the core"),
    ],
}


def name(path: Path) -> str:
    """Return a module's dotted name below `sordino`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def is_facade(module: str) -> bool:
    """Return whether a module only gives names to users: at the root, or of a package."""
    return module in FACADES or module.endswith("__init__")


def imported(path: Path) -> list[tuple[str, bool, int]]:
    """Return what a module imports of the package: dotted names, whether inside of a function, and the line."""
    found: list[tuple[str, bool, int]] = []

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "sordino":
                below = (child.module or "")[len("sordino") :].lstrip(".")
                found.extend(
                    (target, inside, child.lineno) for target in ([below] if below else [a.name for a in child.names])
                )
            visit(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(path.read_text(encoding="utf-8")), inside=False)
    return [entry for entry in found if not entry[0].startswith("_core")]


def circles() -> list[list[str]]:
    """Return modules that reach each other by imports, those for annotations and inside of functions too."""
    known = {module for module in modules() if not is_facade(module)}
    reached = {module: {target for target, _, _ in imported(modules()[module])} & known for module in known}
    for between in sorted(known):
        for targets in reached.values():
            if between in targets:
                targets.update(reached[between])
    within = sorted(module for module in known if module in reached[module])
    found: list[list[str]] = []
    for module in within:
        if not any(module in circle for circle in found):
            found.append([other for other in within if other in reached[module] and module in reached[other]])
    return found


def lines_of_code(path: Path) -> int:
    """Return the lines that are neither blank, nor comment, nor docstring."""
    text = path.read_text(encoding="utf-8")
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for child in getattr(node, "body", []) if isinstance(getattr(node, "body", []), list) else []:
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                strings.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - strings)


def modules() -> dict[str, Path]:
    """Return all modules by name."""
    return {name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def upward() -> list[str]:
    """Return every import that points to a later layer."""
    order = list(LAYERS)
    found = []
    for module, path in modules().items():
        if is_facade(module):
            continue
        own = order.index(module.split(".")[0])
        for target, _, line in imported(path):
            top = target.split(".")[0]
            if top in LAYERS and order.index(top) > own:
                found.append(f"{module}:{line} -> {target}")
    return found


def picture() -> str:
    """Return the layers as a diagram, and those of ten imports or more between them."""
    counts: Counter[str] = Counter()
    arrows: Counter[tuple[str, str]] = Counter()
    for module, path in modules().items():
        top = module.split(".")[0]
        if top not in LAYERS:
            continue
        counts[top] += 1
        for target, _, _ in imported(path):
            other = target.split(".")[0]
            if other in LAYERS and other != top and not is_facade(module):
                arrows[top, other] += 1
    boxes = [f'  {layer}["<b>{layer}</b><br/>{what}<br/>modules: {counts[layer]}"]' for layer, what in LAYERS.items()]
    strong = [f"  {one} --> {other}" for (one, other), number in sorted(arrows.items()) if number >= 10]
    return "\n".join([OPEN, "```mermaid", "flowchart BT", *boxes, *strong, "```", ""])


def way(what: str) -> str:
    """Return a way as a diagram.

    Raises:
        LookupError: Something on it is not where it is said to be.
    """
    boxes = []
    for number, (module, what_is_there, does) in enumerate(WAYS[what]):
        tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.ClassDef
        if not any(isinstance(node, kinds) and node.name == what_is_there for node in tree.body):
            raise LookupError(f"{module} has no {what_is_there}")
        place = module.replace(".", "/")
        boxes.append(f'  {what}{number}["<b>{place}.py</b><br/>{what_is_there}: {does}"]')
    arrows = "  " + " --> ".join(f"{what}{number}" for number in range(len(boxes)))
    return "\n".join([f"<!-- {what}, {OPEN[5:]}", "```mermaid", "flowchart LR", *boxes, arrows, "```", ""])


def concept(path: Path) -> str:
    """Return the one thing that a file is about: the first sentence of its documentation, without links."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = itertools.takewhile(lambda line: line.startswith("//!"), text.splitlines())
        said = "\n".join(line[3:].strip() for line in lines)
    first = " ".join(said.split("\n\n")[0].split())
    return re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", re.split(r"(?<=\.)\s", first)[0]).rstrip(".:")


def files() -> str:
    """Return every source file by folder, with its concept."""
    lines = [FILES]
    paths = [path for root in SOURCES for path in (ROOT / root).rglob("*.*") if path.suffix in KINDS]
    for folder in sorted({path.parent for path in paths if path.parent.name != "tests"}):
        said = {path.name: concept(path) for path in sorted(folder.iterdir()) if path.suffix in KINDS}
        heads = [said.pop(head) for head in HEADS if head in said]
        entries = [f"- `{file}` {what}" for file, what in said.items() if what and file != "tests.rs"]
        if entries:
            lines += ["", f"`{folder.relative_to(ROOT)}/` {'; '.join(filter(None, heads))}".rstrip(), "", *entries]
    return "\n".join([*lines, "", END, ""])


def written(text: str) -> str:
    """Return CONTRIBUTING.md with the pictures and the files as they are now."""
    for mark, picture_now in ((OPEN, picture), *((f"<!-- {what}, {OPEN[5:]}", partial(way, what)) for what in WAYS)):
        before, rest = text.split(mark, 1)
        text = before + picture_now() + rest.split("```\n", 1)[1]
    before, rest = text.split(FILES, 1)
    return before + files() + rest.split(END + "\n", 1)[1]


if __name__ == "__main__":
    page = ROOT / "CONTRIBUTING.md"
    if "--write" in sys.argv:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    sizes = sorted(((lines_of_code(path), module) for module, path in modules().items()), reverse=True)
    print(f"{sum(size for size, _ in sizes)} lines of code in {len(sizes)} modules; largest: {sizes[:3]}")
    print(f"{len(upward())} imports upwards")
