"""All that says a version says the same, and a tag needs more."""

import pytest
import yaml
from shipped import ROOT, script, text

release_check = script("release_check")
CRATES = ("sordino-bench", "sordino-fuzz", "sordino-mutants")
FILES = (
    *("CHANGELOG.md", "CITATION.cff", "Cargo.lock", "Cargo.toml", "pyproject.toml"),
    *(f"rust/{crate}/Cargo.toml" for crate in CRATES),
)


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text(name), encoding="utf-8")
    return tmp_path


def test_they_agree():
    assert release_check.faults() == []


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("CITATION.cff", '\nversion: "'),
        ("Cargo.lock", 'name = "sordino-core"\nversion = "'),
        ("Cargo.toml", 'path = "rust/sordino-core", version = "='),
        *((f"rust/{crate}/Cargo.toml", f'name = "{crate}"\nversion = "') for crate in CRATES),
    ],
)
def test_one_that_differs_is_found(tree, name, before):
    said = (tree / name).read_text(encoding="utf-8")
    assert said.count(before) == 1
    (tree / name).write_text(said.replace(before, before + "9"), encoding="utf-8")
    assert len(release_check.faults(tree)) == 1


def test_a_tag_needs_its_version_and_one_date(tree):
    version = release_check.version(tree)
    dated = text("CHANGELOG.md").replace("## [Unreleased]", f"## [{version}] - 2026-12-01")
    (tree / "CHANGELOG.md").write_text(dated, encoding="utf-8")
    (tree / "CITATION.cff").write_text(text("CITATION.cff") + 'date-released: "2026-12-01"\n', encoding="utf-8")
    assert release_check.faults(tree, tag=f"v{version}") == []
    assert len(release_check.faults(tree, tag="v9.9.9")) == 1
    (tree / "CITATION.cff").write_text(text("CITATION.cff") + 'date-released: "2026-12-02"\n', encoding="utf-8")
    assert len(release_check.faults(tree, tag=f"v{version}")) == 1
    (tree / "CHANGELOG.md").write_text(text("CHANGELOG.md").replace(f"## [{version}]", "##"), encoding="utf-8")
    assert release_check.faults(tree, tag=f"v{version}") != []


def test_the_citation_has_what_its_format_requires():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert all("name" in author or "family-names" in author for author in cited["authors"])
