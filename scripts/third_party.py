"""Writes what a wheel contains of other people's work: THIRD-PARTY-LICENSES.txt and sordino.cdx.json.

`python scripts/third_party.py` writes them, `--check` fails if they are not current. The first has the licences of
every crate that is compiled in: one under "MIT or another" is used under MIT, and notices that are MIT's words with
other names share one text. The second is a bill of materials in CycloneDX. It takes the place of maturin's, which has
paths of the machine and the time in it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# What wheels are made for: .github/workflows/wheels.yml.
TARGETS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
)
HEAD = """What sordino's wheels contain of other people's work, and its licences.
Made by scripts/third_party.py from Cargo.lock; do not edit.

Rust's standard library is compiled in too: MIT OR Apache-2.0, Copyright (c) The Rust Project Contributors.
The sources of every crate, faer's parts under the Mozilla Public License among them, are at https://crates.io/crates/NAME."""
NOTICE = re.compile(r"^\W*(copyright (?!notice|holder)|\(c\) |©).*", re.IGNORECASE)
TITLE = re.compile(r"^\W*(the )?mit licen[sc]e\W*(\(mit\))?\W*$", re.IGNORECASE)
LICENSE_FILE = re.compile(r"(licen[sc]e|copying|notice|unlicense)", re.IGNORECASE)


def _cargo(*arguments: str) -> str:
    return subprocess.run(
        ["cargo", *arguments, "--locked", "--quiet"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def shipped() -> list[dict[str, Any]]:
    """Return what cargo knows of every crate in a wheel: no macros, build scripts or tests, and not our own."""
    targets = [word for target in TARGETS for word in ("--target", target)]
    edges = ("--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    lines = _cargo("tree", "--package", "sordino-py", *targets, *edges).splitlines()
    found = {tuple(line.split()[:2]) for line in lines if line}
    known = json.loads(_cargo("metadata", "--format-version", "1"))["packages"]
    ours = [one for one in known if (one["name"], f"v{one['version']}") in found and one["source"] is not None]
    clarified = {one["crate"]: one["expression"] for one in _toml("deny.toml")["licenses"]["clarify"]}
    for one in ours:
        one["license"] = clarified.get(one["name"], one["license"].replace("/", " OR "))
    return sorted(ours, key=lambda one: (one["name"], one["version"]))


def split(text: str) -> tuple[list[str], str]:
    """Return the copyright notices of a text, and its other words without layout and title."""
    lines = text.splitlines()
    notices = [line.strip() for line in lines if NOTICE.match(line)]
    rest = [line for line in lines if not NOTICE.match(line) and not TITLE.match(line)]
    return notices, re.sub(r"\W+", " ", " ".join(rest)).lower().removeprefix(" all rights reserved").strip()


def texts(package: dict[str, Any], words: str) -> Iterator[str]:
    """Yield the licences under which we use a crate; `words` are those of MIT, which some crates name and leave out."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and LICENSE_FILE.match(file.name))
    if "MIT" in package["license"].split(" OR "):
        files = [file for file in files if "mit" in file.name.lower()] or files
    found = [file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip() for file in files]
    yield from found
    if "MIT" in package["license"].split(" AND ") and not any(words[:40] in split(text)[1] for text in found):
        by = ", ".join(re.sub(r" *<.*?>", "", author) for author in package["authors"])
        yield f"Copyright (c) {by or 'the authors of ' + package['name']}\n\n{words}"
    elif not found:
        raise SystemExit(f"{package['name']} has no licence file, and more to choose than MIT: say here what holds")


def licences(packages: list[dict[str, Any]]) -> str:
    """Return the texts of all licences."""
    mit = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8")
    words = split(mit)[1]
    short: list[str] = []
    others: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        title = f"{package['name']} {package['version']} ({package['license']})"
        for text in texts(package, words):
            notices, rest = split(text)
            if rest == words:
                short += [title, *(f"    {line}" for line in notices)]
            else:
                others[text].append(title)
    parts = [HEAD, "\n\n".join(["MIT License", "\n".join(short), mit.split("\n\n", 2)[2].strip()])]
    parts += ["\n".join([*titles, "", text]) for text, titles in sorted(others.items(), key=lambda item: item[1])]
    return f"\n\n{'=' * 80}\n\n".join(parts) + "\n"


def bill(packages: list[dict[str, Any]]) -> str:
    """Return the list of crates in CycloneDX, with the checksums of the lock."""
    sums = {(one["name"], one["version"]): one.get("checksum") for one in _toml("Cargo.lock")["package"]}
    own = _toml("Cargo.toml")["workspace"]["package"]
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:cargo/{one['name']}@{one['version']}",
            "name": one["name"],
            "version": one["version"],
            "hashes": [{"alg": "SHA-256", "content": sums[one["name"], one["version"]]}],
            "licenses": [{"expression": one["license"]}],
            "purl": f"pkg:cargo/{one['name']}@{one['version']}",
        }
        for one in packages
    ]
    product = {
        "type": "library",
        "bom-ref": f"pkg:pypi/sordino@{own['version']}",
        "name": "sordino",
        "version": own["version"],
        "licenses": [{"expression": own["license"]}],
        "purl": f"pkg:pypi/sordino@{own['version']}",
    }
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
    }
    return json.dumps(whole, indent=1) + "\n"


def main() -> int:
    """Write both files, or say whether they are current."""
    packages = shipped()
    files = {"THIRD-PARTY-LICENSES.txt": licences(packages), "sordino.cdx.json": bill(packages)}
    stale = []
    for name, text in files.items():
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)}: not what Cargo.lock says; python scripts/third_party.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
