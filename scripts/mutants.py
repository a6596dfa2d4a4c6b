"""Mutation testing of the core: every mutant of the door and of the sensitivities in one build, and which tests see it.

    python scripts/mutants.py WORK [--only PART...] [--jobs N]

The sources are copied to the folder WORK, and `rust/sordino-mutants` writes all mutants into the copy; which one is
alive is said by an environment variable. Each test runs once alone, and notes which mutants it reaches. Then every
mutant meets the tests that reach it, the quickest first, until one fails. A report goes to WORK/report.tsv; mutants
that live are printed. `scripts/mutants.toml` says what is mutated.

A run can be ended and started again: what is in the report is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = "rust/sordino-core/src/"
# Files of each part, and in which of their functions; none is all.
PARTS = tomllib.loads((ROOT / "scripts/mutants.toml").read_text())
MODULE = """//! Which mutant is alive: said by the environment, or noted which of them are reached.
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};

static ALIVE: AtomicU32 = AtomicU32::new(u32::MAX);
static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
static REACHED: LazyLock<Option<Mutex<std::fs::File>>> = LazyLock::new(|| {
    let path = std::env::var("SORDINO_REACHED").ok()?;
    Some(Mutex::new(std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap()))
});

/// Whether this one is.
#[inline(always)]
pub fn is(number: u32) -> bool {
    let alive = ALIVE.load(Relaxed);
    if alive == u32::MAX { first(number) } else { alive == number }
}

#[cold]
fn first(number: u32) -> bool {
    if let Some(file) = &*REACHED {
        if !SEEN[number as usize].swap(true, Relaxed) {
            writeln!(file.lock().unwrap(), "{number}").unwrap();
        }
        return false;
    }
    let alive = std::env::var("SORDINO_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    ALIVE.store(alive, Relaxed);
    alive == number
}
"""
PROFILE = """
[profile.mutants]
inherits = "release"
opt-level = 2
lto = "off"
codegen-units = 16
strip = "none"
debug-assertions = true
overflow-checks = true

[profile.mutants.package."*"]
debug-assertions = false
overflow-checks = false
"""


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed."""
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)  # type: ignore[call-overload]


def prepare(work: Path, parts: list[str]) -> None:
    """Copy the sources, write mutants into them, and leave out those that no compiler takes."""
    tool = work / "tool"
    build = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        str(ROOT / "rust/sordino-mutants/Cargo.toml"),
    ]
    subprocess.run([*build, "--target-dir", str(tool)], check=True)
    wanted = "".join(
        "\t".join([f"{CORE}{name}.rs", *PARTS[part]["functions"]]) + "\n"
        for part in parts
        for name in PARTS[part]["files"]
    )
    copy, skipped = work / "copy", set[int]()
    while True:
        for name in ("Cargo.lock", "rust/sordino-core"):
            shutil.rmtree(copy / name, ignore_errors=True)
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy / name)
        workspace = (ROOT / "Cargo.toml").read_text()
        workspace = re.sub(r"members = .*", 'members = ["rust/sordino-core"]', workspace)
        (copy / "Cargo.toml").write_text(workspace + PROFILE)
        (copy / CORE / "mutants.rs").write_text(MODULE)
        library = copy / CORE / "lib.rs"
        library.write_text(
            library.read_text().replace("#![forbid(unsafe_code)]", "#![allow(warnings)]\npub mod mutants;")
        )
        made = run([str(tool / "release/sordino-mutants"), ",".join(map(str, skipped))], cwd=copy, input=wanted)
        assert made.returncode == 0, made.stderr
        (work / "mutants.tsv").write_text(made.stdout)
        check = run(
            ["cargo", "check", "--lib", "--tests", "--message-format", "json", *_profile(work)],
            cwd=copy,
            env=_environment(),
        )
        bad = _unviable(copy, check.stdout)
        print(f"{len(made.stdout.splitlines())} mutants, {len(skipped)} left out, {len(bad)} more", flush=True)
        if not bad:
            assert check.returncode == 0, check.stderr
            return
        skipped |= bad


def _profile(work: Path) -> list[str]:
    return ["-p", "sordino-core", "--profile", "mutants", "--target-dir", str(work / "target")]


def _environment() -> dict[str, str]:
    return os.environ | {"RUSTFLAGS": "--cap-lints=warn", "PROPTEST_RNG_SEED": "20261121", "RAYON_NUM_THREADS": "2"}


def _unviable(copy: Path, messages: str) -> set[int]:
    """Return the numbers of mutants that errors of a compiler speak of."""
    bad: set[int] = set()
    for line in messages.splitlines():
        message = json.loads(line).get("message")
        if not message or message["level"] != "error":
            continue
        for span in message["spans"]:
            text = (copy / span["file_name"]).read_bytes()
            before = text[max(0, span["byte_start"] - 60) : span["byte_start"]].decode(errors="replace")
            near = re.findall(r"mutants::is\((\d+)\) \{ [^{}]*$", before)
            inside = re.findall(rb"mutants::is\((\d+)\)", text[span["byte_start"] : span["byte_end"]])
            whole = re.findall(r"mutants::is\((\d+)\)", span["text"][0]["text"]) if span["text"] else []
            bad |= {int(number) for number in near or inside or whole}
    return bad


def tests_of(work: Path) -> list[tuple[str, str]]:
    """Build the tests and return them: a program and a name."""
    build = ["cargo", "test", "--no-run", "--lib", "--tests", "--message-format", "json", *_profile(work)]
    found = run(build, cwd=work / "copy", env=_environment())
    assert found.returncode == 0, found.stderr
    programs = [json.loads(line).get("executable") for line in found.stdout.splitlines() if '"executable"' in line]
    tests = []
    for program in filter(None, programs):
        listed = run([program, "--list", "--format", "terse"])
        tests += [
            (program, line.removesuffix(": test")) for line in listed.stdout.splitlines() if line.endswith(": test")
        ]
        ignored = run([program, "--list", "--format", "terse", "--ignored"])
        left_out = {(program, line.removesuffix(": test")) for line in ignored.stdout.splitlines()}
        tests = [test for test in tests if test not in left_out]
    return tests


def passes(work: Path, test: tuple[str, str], extra: dict[str, str], limit: float) -> bool:
    """Return whether a test passes in so many seconds."""
    program, name = test
    try:
        done = subprocess.run(
            [program, "--exact", name, "--test-threads", "1"],
            cwd=work / "copy/rust/sordino-core",
            env=_environment() | extra,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def reached(work: Path, tests: list[tuple[str, str]], jobs: int) -> dict[int, list[tuple[float, tuple[str, str]]]]:
    """Run every test alone; return for each mutant the seconds and the tests that reach it, the quickest first."""
    known = work / "reached.json"
    if not known.exists():

        def one(item: tuple[int, tuple[str, str]]) -> tuple[float, tuple[str, str], list[int]]:
            number, test = item
            notes = work / f"notes.{number}"
            notes.unlink(missing_ok=True)
            before = time.monotonic()
            assert passes(work, test, {"SORDINO_REACHED": str(notes)}, 600.0), f"{test} fails without a mutant"
            seconds = time.monotonic() - before
            lines = notes.read_text().split() if notes.exists() else []
            notes.unlink(missing_ok=True)
            return seconds, test, [int(line) for line in lines]

        with ThreadPoolExecutor(jobs) as pool:
            known.write_text(json.dumps(list(pool.map(one, enumerate(tests)))))
    found: dict[int, list[tuple[float, tuple[str, str]]]] = {}
    for seconds, test, numbers in json.loads(known.read_text()):
        for number in numbers:
            found.setdefault(number, []).append((seconds, tuple(test)))
    return {number: sorted(seen) for number, seen in found.items()}


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--longest", type=float, default=60.0, help="seconds: tests that take longer alone are not asked"
    )
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "mutants.tsv").exists() or not (work / "tests.json").exists():
        prepare(work, arguments.only)
        (work / "tests.json").write_text(json.dumps(tests_of(work)))
    tests = [(program, name) for program, name in json.loads((work / "tests.json").read_text())]
    seen = reached(work, tests, arguments.jobs)
    report = work / "report.tsv"
    done = {line.split("\t")[0] for line in report.read_text().splitlines()} if report.exists() else set()
    mutants = [line.split("\t") for line in (work / "mutants.tsv").read_text().splitlines()]

    def one(mutant: list[str]) -> str:
        meeting = [pair for pair in seen.get(int(mutant[0]), []) if pair[0] <= arguments.longest]
        verdict = "unreached" if not meeting else "lives"
        for seconds, test in meeting:
            if not passes(work, test, {"SORDINO_MUTANT": mutant[0]}, 20.0 * seconds + 10.0):
                verdict = f"killed by {test[1]}"
                break
        with report.open("a") as out:
            out.write("\t".join([*mutant, verdict]) + "\n")
        return verdict

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(one, [mutant for mutant in mutants if mutant[0] not in done]))
    lines = [line.split("\t") for line in report.read_text().splitlines()]
    for line in lines:
        if not line[-1].startswith("killed"):
            print("\t".join(line))
    print(Counter(line[-1].split(" ")[0] for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
