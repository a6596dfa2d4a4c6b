"""Runs a notebook as Jupyter would, cell by cell, without Jupyter.

`python scripts/notebook.py examples/published.ipynb` runs it; `--write` keeps in the file what the cells show. A cell
shows what its last expression is: as a picture, as a page, else as text.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

__all__ = ["outputs"]


def outputs(path: Path) -> list[list[dict[str, Any]]]:
    """Return what each code cell of a notebook shows, run in order in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_shown(cell, names) for cell in _code(json.loads(path.read_text(encoding="utf-8")))]


def _code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _shown(cell: dict[str, Any], names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"data": _data(value), "metadata": {}}
        found.append({"output_type": "execute_result", "execution_count": None, **data})
    return found


def _data(value: Any) -> dict[str, Any]:
    if hasattr(value, "_repr_png_"):
        return {"image/png": base64.b64encode(value._repr_png_()).decode()}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png")
        return {"image/png": base64.b64encode(picture.getvalue()).decode()}
    if hasattr(value, "_repr_html_"):
        return {"text/html": _lines(value._repr_html_())}
    return {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run a notebook, and keep what it shows if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--write", action="store_true", help="keep what the cells show")
    given = parser.parse_args()
    shown = outputs(given.path)
    if given.write:
        notebook = json.loads(given.path.read_text(encoding="utf-8"))
        for number, (cell, own) in enumerate(zip(_code(notebook), shown, strict=True), 1):
            cell["execution_count"] = number
            cell["outputs"] = own
        given.path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
