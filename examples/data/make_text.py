"""Build alice.txt: "Alice's Adventures in Wonderland" by Lewis Carroll (1865), lower-cased, in plain ASCII.

Source: ``alice29.txt`` of the Canterbury corpus, as the crate ``brotli`` 7.0.0 carries it among its test data.

    curl -LO https://static.crates.io/crates/brotli/brotli-7.0.0.crate
    python make_text.py --source brotli-7.0.0.crate

What is kept
    The story, from the heading of Chapter I to the last sentence: title, edition and "THE END" are left out, and so is
    the end-of-file mark of DOS. Letters are lower-cased. One line for each paragraph: runs of white space within it
    become one space. Punctuation stays as it is.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

from making import options

MEMBER = "brotli-7.0.0/testdata/alice29.txt"
MEMBER_SHA256 = "7467306ee0feed4971260f3c87421154a05be571d944e9cb021a5713700c38f0"


def read_source(path: Path) -> bytes:
    """Return the text as the crate has it."""
    with tarfile.open(path, "r:gz") as crate:
        member = crate.extractfile(MEMBER)
        if member is None:
            raise SystemExit(f"{MEMBER} is not a file")
        text = member.read()
    if hashlib.sha256(text).hexdigest() != MEMBER_SHA256:
        raise SystemExit(f"{MEMBER} is not the text that was expected")
    return text


def plain(source: bytes) -> str:
    """Return the story: lower-cased paragraphs, one a line."""
    text = source.decode("ascii").replace("\r\n", "\n")
    story = text[text.index("CHAPTER I\n") : text.index("THE END")]
    paragraphs = (" ".join(block.split()) for block in re.split(r"\n(?=\s)", story))
    return "".join(f"{paragraph.lower()}\n" for paragraph in paragraphs if paragraph)


def main() -> None:
    """Write the text and print its size."""
    crate = Path("brotli-7.0.0.crate")
    args = options("Build the lower-cased text from the crate brotli 7.0.0.", "alice.txt", default=crate)
    text = plain(read_source(args.source))
    args.out.write_bytes(text.encode("ascii"))
    print(f"characters: {len(text)}, of which a to z: {sum('a' <= c <= 'z' for c in text)}")
    print(f"lines: {text.count(chr(10))}, distinct characters: {len(set(text))}")


if __name__ == "__main__":
    main()
