"""Every tool is locked by hashes, at one version, and installed by nothing else."""

import re

import pytest
from shipped import ROOT, WORKFLOWS, locked, text

LISTS = sorted(path.stem for path in (ROOT / "requirements").glob("*.in"))
INSTALL = re.compile(r"\bpip(?:\[@\]\}\")? install\b|^PIP_INSTALL :=")


def test_every_list_has_a_lock_and_is_renewed():
    assert sorted(path.stem for path in (ROOT / "requirements").glob("*.txt")) == LISTS
    rule = text("Makefile").split("\nlock: ", 1)[1].split("\n\n", 1)[0]
    assert [name for name in LISTS if not re.search(rf"\b{name}\b", rule)] == []


@pytest.mark.parametrize("name", LISTS)
def test_every_package_has_hashes(name):
    entries = re.split(r"^(?=[\w.-]+==)", text(f"requirements/{name}.txt"), flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked(name))
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)] == []


@pytest.mark.parametrize("name", [name for name in LISTS if name != "dev"])
def test_what_is_locked_twice_is_the_same(name):
    dev = locked("dev")
    assert {one: version for one, version in locked(name).items() if dev.get(one, version) != version} == {}


def test_nothing_is_installed_without_hashes():
    files = [ROOT / "Makefile", *WORKFLOWS, *(ROOT / "scripts").glob("*.sh")]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    installs = [line for line in lines if INSTALL.search(line) and not line.lstrip().startswith("#")]
    assert len(installs) >= 6
    # What we built ourselves has no hash in a lock, and is looked for nowhere else.
    assert [line for line in installs if "--require-hashes" not in line and "--no-index" not in line] == []
