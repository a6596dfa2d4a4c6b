"""The documentation tells the truth: its code runs, its outputs appear, its tables are computed anew."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

import sordino as so
from command_line import sordino

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$", re.M | re.S)
_NUMBER = re.compile(r"^\**([0-9]+\.?[0-9]*)\**$")
_ROW_WORKLOAD = re.compile(r"^`(so\..*)`$")


class Block(NamedTuple):
    language: str
    body: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["language"], found["body"], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_pages_are_found() -> None:
    found = {block.language for page in PAGES for block in blocks(page)}
    assert {"python", "console", "text"} <= found
    assert "README.md" in map(name, PAGES)
    # Every fence is closed, or a page would silently lose its blocks.
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.M)
        assert len(fences) == 2 * len(blocks(page)), name(page)


# Seconds each: they compute tables anew.
HEAVY = (
    "docs/tutorial.md",
    "docs/mechanisms/streams.md",
    "docs/mechanisms/filters-stream.md",
    "docs/errata-continual.md",
)


def weighed(page: Path) -> ParameterSet:
    return pytest.param(page, marks=[pytest.mark.slow] if name(page) in HEAVY else [], id=name(page))


@pytest.mark.filterwarnings("ignore:deterministic noise")
@pytest.mark.parametrize("page", [weighed(p) for p in PAGES if any(b.language == "python" for b in blocks(p))])
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page share a namespace; a `text` block must be in what was printed before it."""
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        if block.language == "python":
            # Blank lines in front keep the page's line numbers in tracebacks.
            code = compile("\n" * block.line + block.body, str(page), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
        elif block.language == "text":
            assert block.body in printed.getvalue(), f"{name(page)}:{block.line}: this was not printed"


def commands(block: Block) -> list[list[str]]:
    """Command lines of a console block: `$ ` starts one, a backslash continues it."""
    joined = block.body.replace("\\\n", " ")
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.language == "console" for b in blocks(p))], ids=name)
@pytest.mark.filterwarnings("ignore:deterministic noise")
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`$ sordino ...` lines of console blocks run in order in one folder; `csv`, `toml` and `python` blocks make files."""
    monkeypatch.chdir(tmp_path)
    ran, namespace = 0, {"__name__": "__docs__"}
    for block in blocks(page):
        if block.language in {"csv", "toml"} and block.body.startswith("# "):
            first, _, rest = block.body.partition("\n")
            file = tmp_path / first.removeprefix("# ").strip()
            file.write_text(rest, encoding="utf-8")
        if block.language == "python":
            exec(compile(block.body, str(page), "exec", dont_inherit=True), namespace)
        if block.language != "console":
            continue
        for command in commands(block):
            assert command[0] == "sordino", f"{name(page)}:{block.line}: only sordino is run"
            result = sordino(*command[1:])
            assert result.exit_code == 0, f"{name(page)}:{block.line}: {command}\n{result.output}"
            ran += 1
    assert ran > 0


def table(page: Path, header: str) -> list[list[str]]:
    """Rows of the Markdown table whose first column is called `header`, its header row first."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {header} |"))
    end = next(i for i in range(start, len(lines) + 1) if i == len(lines) or not lines[i].startswith("|"))
    rows = [lines[start], *lines[start + 2 : end]]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


@pytest.mark.slow
def test_readme_table_is_computed() -> None:
    """Numbers agree with `compare` to the digits shown, dashes where nothing serves, bold what auto takes."""
    header, *rows = table(ROOT / "docs" / "which-mechanism.md", "workload")
    assert len(rows) >= 5
    for row in rows:
        found = _ROW_WORKLOAD.match(row[0])
        assert found, row[0]
        workload = eval(found[1], {"so": so})
        comparison = so.compare(workload, so.ApproxDP(epsilon=1.0, delta=1e-6))
        errors = {str(each["mechanism"]): each["rmse"] for each in comparison.rows}
        bound = comparison.bound
        assert bound is not None
        errors["Gaussian bound"] = bound.value
        for column, cell in zip(header[1:], row[1:], strict=True):
            if cell == "\N{EN DASH}":
                assert column not in errors, (row[0], column)
                continue
            number = _NUMBER.match(cell)
            assert number, cell
            digits = len(number[1].partition(".")[2])
            assert f"{errors[column]:.{digits}f}" == number[1], (row[0], column)
            assert cell.startswith("**") == (column == comparison.chosen), (row[0], column)


@pytest.mark.slow
def test_readme_stream_table_is_computed() -> None:
    """The same for streams, mechanism by mechanism."""
    header, *rows = table(ROOT / "docs" / "which-mechanism.md", "stream")
    assert len(rows) >= 3
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    for row in rows:
        described, _, horizon = row[0].partition(", ")
        found = _ROW_WORKLOAD.match(described)
        assert found, row[0]
        workload = eval(found[1], {"so": so})
        chosen_horizon: Literal["hard", "soft"] = "soft" if horizon == "soft" else "hard"
        chosen = so.plan(so.Continual(workload, horizon=chosen_horizon), privacy)
        assert chosen.fit.bound is not None
        for column, cell in zip(header[1:], row[1:], strict=True):
            if cell == "\N{EN DASH}":
                with pytest.raises(so.errors.UnsupportedMechanismError):
                    so.plan(so.Continual(workload, horizon=chosen_horizon), privacy, mechanism=column)
                continue
            number = _NUMBER.match(cell)
            assert number, cell
            error = chosen.fit.bound.value
            if column != "Gaussian bound":
                error = so.plan(so.Continual(workload, horizon=chosen_horizon), privacy, mechanism=column).rmse
            digits = len(number[1].partition(".")[2])
            assert f"{error:.{digits}f}" == number[1], (row[0], column)
            assert cell.startswith("**") == (f"{column}-gaussian" == chosen.mechanism), (row[0], column)


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize(
    "page",
    [ROOT / n for n in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "NOTATION.md")],
    ids=name,
)
def test_files_that_are_linked_exist(page: Path) -> None:
    """The site builder checks docs/; these pages are read in the repository."""
    for link in links(page.read_text(encoding="utf-8")):
        if not link.startswith(("http:", "https:", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "assets").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 200_000, picture.name
    used = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(picture.name in used for picture in pictures)
