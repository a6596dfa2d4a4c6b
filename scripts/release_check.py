"""Checks that everything which says a version says the same: `python scripts/release_check.py [--tag v0.1.0]`.

Without a tag the changelog may still call the version unreleased; with one it has a dated heading, which the citation
repeats. Nothing is built, tagged or sent.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _cited(text: str, key: str) -> str | None:
    found = re.search(rf'^{key}: "?([^"\n]+)"?$', text, re.MULTILINE)
    return found[1] if found else None


def version(root: Path = ROOT) -> str:
    """Return the version of the workspace, which all others repeat."""
    return str(_toml(root / "Cargo.toml")["workspace"]["package"]["version"])


def faults(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return where a version differs from that of the workspace, and what a tag still lacks."""
    own = version(root)
    dependencies = _toml(root / "Cargo.toml")["workspace"]["dependencies"]
    stated = {
        "sordino-core in Cargo.toml": dependencies["sordino-core"]["version"].removeprefix("="),
        **{
            f"rust/{crate}/Cargo.toml": _toml(root / "rust" / crate / "Cargo.toml")["package"]["version"]
            for crate in ("sordino-bench", "sordino-fuzz", "sordino-mutants")
        },
        "CITATION.cff": _cited((root / "CITATION.cff").read_text(encoding="utf-8"), "version"),
    }
    for package in _toml(root / "Cargo.lock")["package"]:
        if package["name"].startswith("sordino-"):
            stated[f"{package['name']} in Cargo.lock"] = package["version"]
    found = [f"{place} says {other}, the workspace {own}" for place, other in stated.items() if other != own]
    if "version" not in _toml(root / "pyproject.toml")["project"]["dynamic"]:
        found.append("pyproject.toml has a version of its own")
    return found + _changelog_faults(root, own, tag)


def _changelog_faults(root: Path, own: str, tag: str | None) -> list[str]:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## \[{re.escape(own)}\] - (\d{{4}}-\d\d-\d\d)$", text, re.MULTILINE)
    if tag is None:
        open_heading = re.search(r"^## \[Unreleased\]$", text, re.MULTILINE)
        return [] if dated or open_heading else [f"CHANGELOG.md has neither [{own}] nor [Unreleased]"]
    found = [] if tag == f"v{own}" else [f"the tag is {tag}, the version {own}"]
    if not dated:
        return [*found, f"CHANGELOG.md has no heading [{own}] with a date"]
    cited = _cited((root / "CITATION.cff").read_text(encoding="utf-8"), "date-released")
    return found if cited == dated[1] else [*found, f"CITATION.cff says {cited}, CHANGELOG.md {dated[1]}"]


def main() -> int:
    """Print what does not agree; return 1 if anything does not."""
    parser = argparse.ArgumentParser(description="Check the versions of a release.")
    parser.add_argument("--tag", help="the tag that is to be released, as in v0.1.0")
    found = faults(tag=parser.parse_args().tag)
    print("\n".join(found) or "versions agree")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
