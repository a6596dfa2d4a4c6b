"""The check of the site finds what it is there for; the site itself is built by `make docs`."""

import pytest
from shipped import script

check_site = script("check_site")
PAGE = '<h2 id="here">Here</h2><a href="{}">to</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "page.html").write_text(PAGE.format("../index.html#here"))
    (tmp_path / "index.html").write_text(PAGE.format("deep/page.html#here"))
    (tmp_path / "dot.png").write_bytes(b"")
    return tmp_path


GOOD = ("#here", "page.html", "../dot.png", "/dot.png", "../index.html?q#here", "https://example.org/#x")
DEAD = ("#there", "page.html#there", "../index.html#there", "gone.html", "page", "../deep/", "dot.png", "/page.html")


@pytest.mark.parametrize("address", GOOD)
def test_links_that_lead_somewhere_pass(site, address):
    (site / "deep" / "page.html").write_text(PAGE.format(address))
    assert check_site.link_faults(site) == []


@pytest.mark.parametrize("address", DEAD)
def test_dead_links_are_found(site, address):
    (site / "deep" / "page.html").write_text(PAGE.format(address))
    (fault,) = check_site.link_faults(site)
    assert fault.startswith(f"deep/page.html: {address}: no such")


@pytest.mark.parametrize("tag", ['img src="{}"', 'script src="{}"', 'link rel="stylesheet" href="{}"'])
@pytest.mark.parametrize("address", ["https://example.org/x", "//example.org/x", "gone.png"])
def test_what_is_loaded_is_of_the_site(site, tag, address):
    (site / "index.html").write_text(f"<{tag.format(address)}>" + PAGE.format(""))
    assert len([fault for fault in check_site.link_faults(site) if address in fault]) == 1


def test_a_site_without_pages_is_a_fault(tmp_path):
    assert check_site.link_faults(tmp_path) == ["no pages"]


def test_whatever_a_build_complains_of_is_a_fault():
    said = "Build started\n\x1b[32mNo issues found\x1b[0m\n{}\nBuild finished in 3.68s\n"
    assert check_site.complaints(said.format("")) == []
    for word in ("griffe: a.py:1: No type for parameter 'x'", "\x1b[33mWarning:\x1b[0m page does not exist"):
        assert len(check_site.complaints(said.format(word))) == 1
