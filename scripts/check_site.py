"""Builds the site and reads it again: `python scripts/check_site.py` fails for what a strict build lets pass.

`zensical build --strict` counts dead links and anchors of pages. Complaints about docstrings it prints and counts not;
links from docstrings, pictures and entries of the menu it does not look at. So whatever it says is a fault here, and
every address on every page is followed: to a file of the site, to an anchor there. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
# All that a build says if nothing is wrong.
WELL = re.compile(r"Build started|No issues found|Build finished in .+|")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
LOADED = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "track", "video"}


class Link(NamedTuple):
    tag: str
    address: str


class Page(HTMLParser):
    """What a page has of anchors and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[Link] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in {"href", "src"} or (tag == "object" and name == "data"):
                self.links.append(Link(tag, value or ""))


def complaints(said: str) -> list[str]:
    """Return the lines of a build's output that are not those of a build without fault."""
    lines = [COLOURS.sub("", line).rstrip() for line in said.splitlines()]
    return [line for line in lines if not WELL.fullmatch(line)]


def link_faults(site: Path) -> list[str]:
    """Return the links of a site that lead nowhere, and what its pages load from elsewhere."""
    files = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    pages = {file: Page((site / file).read_text(encoding="utf-8")) for file in files if file.endswith(".html")}
    faults = [] if pages else ["no pages"]
    for name, page in sorted(pages.items()):
        for tag, address in page.links:
            to = urlsplit(address)
            if to.scheme or to.netloc:
                faults += [f"{name}: {tag} loads {address}"] if tag in LOADED and to.scheme != "data" else []
                continue
            # Pages are files; only the one for addresses that do not exist says where it is by the root.
            path = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), unquote(to.path)))[1:]
            target = path if to.path else name
            if target not in files:
                faults.append(f"{name}: {address}: no such file")
            elif to.fragment and target in pages and unquote(to.fragment) not in pages[target].anchors:
                faults.append(f"{name}: {address}: no such anchor")
    return faults


def main() -> int:
    """Build, print what is wrong; return 1 if anything is."""
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(
        build, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    faults = complaints(done.stdout)
    if done.returncode == 0:
        faults += link_faults(ROOT / "site")
    print("\n".join(faults) or "site: every link leads somewhere")
    return int(bool(faults or done.returncode))


if __name__ == "__main__":
    sys.exit(main())
