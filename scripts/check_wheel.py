"""Checks what is shipped: `python scripts/check_wheel.py dist/*` reads wheels and source distributions.

A wheel is one for all CPython from the oldest supported on, keeps to its platform tag, is small, and has no symbols and
no paths of the machine that built it; licences of everything in it and the list of its crates are beside it. A source
distribution has the lock. The metadata of both are what an index accepts.
"""

from __future__ import annotations

import re
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

# A wheel is larger than its goal of 3 MB, which benches/import_and_size.py shows; it grows no further unseen.
MOST_BYTES = 3_736_000
BILL = "sordino.cdx.json"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.txt")
# Where builds happen: homes, runners' work trees and temporary directories, on the systems that wheels are made for.
BUILD_PATHS = rb"/(?:home|root|Users|tmp|private/var|github|__w)/|[A-Z]:\\(?:Users|a)\\"
NATIVE = (".so", ".pyd", ".dylib")
PLATFORMS = r"(?:manylinux_2|musllinux_1)_\d+_(?:x86_64|aarch64)|macosx_\d+_\d+_(?:x86_64|arm64)|win_(?:amd64|arm64)"
SYMBOL_TABLE = 2  # of ELF section types


def has_symbols(binary: bytes) -> bool:
    """Return whether a 64-bit little-endian ELF binary has a table of symbols other than that of the dynamic linker."""
    (start,) = struct.unpack_from("<Q", binary, 0x28)
    size, count = struct.unpack_from("<HH", binary, 0x3A)
    return any(struct.unpack_from("<I", binary, start + index * size + 4)[0] == SYMBOL_TABLE for index in range(count))


def newest_glibc(binary: bytes) -> int:
    """Return the minor number of the newest version of glibc whose symbols a binary asks for."""
    return max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", binary)), default=0)


def paths_in(content: bytes) -> list[str]:
    """Return the paths of build machines in a file, each with what follows."""
    found = re.findall(rb"(?:" + BUILD_PATHS + rb")[\x21-\x7e]{0,80}", content)
    return sorted({path.decode() for path in found})


def native_faults(name: str, binary: bytes, platform: str) -> list[str]:
    """Return what is wrong with the extension."""
    faults = [f"{name} has a path of the build machine: {path}" for path in paths_in(binary)]
    if binary.startswith(b"\x7fELF") and has_symbols(binary):
        faults.append(f"{name} is not stripped")
    declared = re.match(r"manylinux_2_(\d+)_", platform)
    if declared and newest_glibc(binary) > int(declared[1]):
        faults.append(f"{name} asks for glibc 2.{newest_glibc(binary)}, newer than its tag {platform}")
    return faults


def metadata_faults(content: bytes, version: str) -> list[str]:
    """Return what an index would refuse, and a version that is not that of the file's name."""
    try:
        metadata = Metadata.from_email(content)
    except ExceptionGroup as group:
        return [f"metadata: {error}" for error in group.exceptions]
    faults = [] if str(metadata.version) == version else [f"metadata say {metadata.version}, the name {version}"]
    listed = {Path(file).name for file in metadata.license_files or []}
    return faults + [f"metadata do not list {file}" for file in LICENSES if file not in listed]


def wheel_faults(path: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    _, version, _, tags = parse_wheel_filename(path.name)
    faults = [] if path.stat().st_size <= MOST_BYTES else [f"{path.stat().st_size} bytes, more than {MOST_BYTES}"]
    if {(tag.interpreter, tag.abi) for tag in tags} != {("cp311", "abi3")}:
        faults.append("not one wheel for all CPython from 3.11 on")
    faults += [f"platform {tag.platform}" for tag in tags if not re.fullmatch(PLATFORMS, tag.platform)]
    with zipfile.ZipFile(path) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    info = f"{path.name.split('-')[0]}-{version}.dist-info"
    faults += metadata_faults(content[f"{info}/METADATA"], str(version))
    faults += [f"no {file}" for file in LICENSES if f"{info}/licenses/{file}" not in content]
    faults += [] if f"{info}/sboms/{BILL}" in content else [f"no {BILL}"]
    # Beside the package, in sordino.libs, maturin puts what a system may lack, as musl's libgcc_s; with its own list.
    native = [name for name in content if name.startswith("sordino/") and name.endswith(NATIVE)]
    faults += [] if len(native) == 1 else [f"native files: {native}"]
    for name in native:
        for tag in tags:
            faults += native_faults(name, content[name], tag.platform)
    return faults


def sdist_faults(path: Path) -> list[str]:
    """Return what is wrong with a source distribution."""
    name, version = parse_sdist_filename(path.name)
    with tarfile.open(path) as archive:
        files = set(archive.getnames())
        head = archive.extractfile(f"{name}-{version}/PKG-INFO")
        faults = metadata_faults(head.read() if head else b"", str(version))
    needed = ("Cargo.lock", "Cargo.toml", "pyproject.toml", BILL, *LICENSES)
    return faults + [f"no {file}" for file in needed if f"{name}-{version}/{file}" not in files]


def main(names: list[str]) -> int:
    """Print what is wrong with each file; return 1 if anything is."""
    bad = 0
    for path in map(Path, names):
        faults = wheel_faults(path) if path.suffix == ".whl" else sdist_faults(path)
        print(f"{path.name}: {path.stat().st_size} bytes, " + ("; ".join(faults) or "as promised"))
        bad |= bool(faults)
    return int(bad or not names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
