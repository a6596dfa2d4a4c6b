"""The checks of packages find what they are there for."""

import struct

import pytest
from shipped import script, text

check_wheel, third_party = script("check_wheel"), script("third_party")
MACHINES = ("/root/.cargo/faer/lib.rs", "/home/me/x.rs", "/Users/me/x.rs", r"C:\Users\me\x.rs", r"D:\a\x.rs")


@pytest.mark.parametrize("path", MACHINES)
def test_paths_of_machines_are_found(path):
    assert check_wheel.paths_in(b"\0panicked at " + path.encode() + b"\0") == [path]


def test_mapped_paths_pass():
    assert check_wheel.paths_in(b"\0/cargo/registry/faer/lib.rs\0/rust/library/core/lib.rs\0/tmp\0") == []


@pytest.mark.parametrize(("kind", "found"), [(2, True), (11, False)])
def test_symbols_are_found(kind, found):
    head = bytearray(64)
    struct.pack_into("<Q", head, 0x28, len(head))
    struct.pack_into("<HH", head, 0x3A, 64, 2)
    sections = struct.pack("<II", 0, 0).ljust(64, b"\0") + struct.pack("<II", 1, kind).ljust(64, b"\0")
    assert check_wheel.has_symbols(bytes(head) + sections) is found


def test_a_tag_older_than_what_is_asked_for_is_found():
    binary = b"\0GLIBC_2.14\0GLIBC_2.34\0GLIBC_2.2.5\0"
    assert check_wheel.native_faults("x.so", binary, "manylinux_2_34_x86_64") == []
    assert len(check_wheel.native_faults("x.so", binary, "manylinux_2_28_x86_64")) == 1


def test_metadata_that_an_index_refuses_are_found():
    listed = "".join(f"License-File: {name}\n" for name in check_wheel.LICENSES)
    head = f"Metadata-Version: 2.4\nName: sordino\nVersion: 0.1.0\n{listed}"
    assert check_wheel.metadata_faults(head.encode(), "0.1.0") == []
    assert len(check_wheel.metadata_faults(head.encode(), "0.2.0")) == 1
    assert len(check_wheel.metadata_faults(f"{head}License-Expression: Mine\n".encode(), "0.1.0")) == 1


def test_licences_that_share_words_are_told_from_others():
    mit = text("LICENSE-MIT")
    notices, words = third_party.split(mit)
    assert notices == ["Copyright (c) 2026 the sordino authors"]
    assert third_party.split(mit.replace("2026 the sordino authors", "somebody else"))[1] == words
    assert third_party.split(mit.replace("free of charge", "for a fee"))[1] != words
