#!/usr/bin/env python3
"""Make, or check, the ziggurat tables in rust/sordino-core/src/door/random/tables.rs.

Widths are integers, heights exact rationals, thresholds rounded to the safe side; standard library
only. The certificates that make the sampler exact are verified again, by other means, in
random/certificates.rs.

    python scripts/make_ziggurat_tables.py            # rewrite
    python scripts/make_ziggurat_tables.py --check    # exit 1 if the file differs
"""

from __future__ import annotations

import argparse
import sys
from decimal import ROUND_FLOOR, Decimal, getcontext
from fractions import Fraction
from pathlib import Path

getcontext().prec = 90
TARGET = Path(__file__).resolve().parent.parent / "rust/sordino-core/src/door/random/tables.rs"
ABSCISSA_BITS = 55


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


class Gaussian:
    name, fraction_bits, tail_start = "GAUSSIAN", 10, 3743

    @staticmethod
    def density(x: Fraction) -> Decimal:
        return (-decimal(x * x / 2)).exp()

    @staticmethod
    def inverse(y: Fraction) -> Decimal:
        return (-2 * decimal(y).ln()).sqrt()

    @classmethod
    def base_width(cls) -> int:
        square = (1 << cls.fraction_bits) ** 2
        return cls.tail_start + -(-square // cls.tail_start)  # Mills: the tail is narrower than 1/r


class Exponential:
    name, fraction_bits, tail_start = "EXPONENTIAL", 12, 31526

    @staticmethod
    def density(x: Fraction) -> Decimal:
        return (-decimal(x)).exp()

    @staticmethod
    def inverse(y: Fraction) -> Decimal:
        return -decimal(y).ln()

    @classmethod
    def base_width(cls) -> int:
        return cls.tail_start + (1 << cls.fraction_bits)  # a tail of width exactly 1


def tables(law: type[Gaussian] | type[Exponential]) -> dict[str, list[int]]:
    one = 1 << law.fraction_bits
    first = int((law.density(Fraction(law.tail_start, one)) * 2**64).to_integral_value(ROUND_FLOOR)) + 2
    widths = [law.base_width(), law.tail_start]
    heights = [Fraction(0), Fraction(first, 2**64)]
    area = widths[0] * heights[1]
    for i in range(1, 256):
        heights.append(heights[i] + area / widths[i])
        if i == 255:
            break
        guess = int((law.inverse(heights[i + 1]) * one).to_integral_value(ROUND_FLOOR))
        while guess > 0 and law.density(Fraction(guess - 1, one)) <= decimal(heights[i + 1]):
            guess -= 1
        while law.density(Fraction(guess, one)) > decimal(heights[i + 1]):
            guess += 1
        widths.append(guess)
    assert heights[256] >= 1 > heights[255], "256 layers must cover the density"
    accept = []
    for i in range(255):
        span = Decimal(2 ** (ABSCISSA_BITS + law.fraction_bits)) / widths[i]
        accept.append(int((law.inverse(heights[i + 1]) * span).to_integral_value(ROUND_FLOOR)))
        edge = Fraction(accept[i] * widths[i], 2 ** (ABSCISSA_BITS + law.fraction_bits))
        assert law.density(edge) >= decimal(heights[i + 1]), "threshold on the safe side"
    accept.append(0)
    fixed = [h.numerator * 2**64 // h.denominator for h in heights]
    return {
        "WIDTH": widths,
        "ACCEPT": accept,
        "HEIGHT": fixed[:256],
        "RISE": [fixed[i + 1] - fixed[i] for i in range(256)],
    }


def exponentials(step_bits: int, count: int) -> list[int]:
    """floor(2^64 exp(-j / 2^step_bits)), the first saturated to 2^64 - 1."""
    values = []
    for j in range(count):
        power = (-Decimal(j) / 2**step_bits).exp() * 2**64
        values.append(min(int(power.to_integral_value(ROUND_FLOOR)), 2**64 - 1))
    return values


def array(name: str, doc: str, kind: str, values: list[int]) -> str:
    lines, line = [], "   "
    for value in values:
        item = f" {value},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    body = "\n".join([*lines, line])
    return f"/// {doc}\n#[rustfmt::skip]\npub(super) static {name}: [{kind}; {len(values)}] = [\n{body}\n];\n"


def render() -> str:
    parts = [
        "//! Ziggurat tables, made by `scripts/make_ziggurat_tables.py`; do not edit.\n",
        "// Long decimal literals are machine output.\n#![allow(clippy::unreadable_literal)]\n",
    ]
    docs = {
        "WIDTH": ("u64", "Layer widths `X_i` in units of `2^-FRACTION_BITS`."),
        "ACCEPT": ("u64", "Below this 55-bit abscissa the whole cell is under the density."),
        "HEIGHT": ("u64", "`floor(2^64 y_i)`: lower edge of layer `i`."),
        "RISE": ("u64", "`floor(2^64 y_{i+1}) - floor(2^64 y_i)`."),
    }
    for law in (Gaussian, Exponential):
        for key, values in tables(law).items():
            kind, doc = docs[key]
            parts.append(array(f"{law.name}_{key}", doc, kind, values))
    parts.append(array("EXP_COARSE", "`floor(2^64 exp(-j/16))`.", "u64", exponentials(4, 256)))
    parts.append(array("EXP_FINE", "`floor(2^64 exp(-j/512))`.", "u64", exponentials(9, 32)))
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    text = render()
    if parser.parse_args().check:
        same = TARGET.read_text() == text
        sys.stderr.write("tables are up to date\n" if same else f"{TARGET} differs from its generator\n")
        return 0 if same else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
