"""The lemmas of clamping and rounding, for all integers of 64 bits and all real numbers: proved by an SMT solver.

What is proved is written here as it is in `lattice.rs`, `domain.rs` and `door/measure.rs`; property tests there hold the code
to the same statements.
"""

import pytest

z3 = pytest.importorskip("z3")
pytestmark = pytest.mark.slow

# Wide enough that no sum and no shift of what is looked at wraps.
BITS = 136
VALUE_LIMIT, OUTPUT_LIMIT = 1 << 61, 1 << 62


def proved(claim, *given):
    """Fail unless a claim holds for everything that satisfies what is given."""
    solver = z3.Solver()
    solver.set("timeout", 120_000)
    solver.add(*given, z3.Not(claim))
    assert solver.check() == z3.unsat, solver


def word(name):
    """Return an integer of 64 bits, in room for more."""
    return z3.SignExt(BITS - 64, z3.BitVec(name, 64))


def clamped(value, limit):
    return z3.If(value > limit, limit, z3.If(value < -limit, -limit, value))


def half_up(value):
    """Return the integer next to a real number, `⌊v + ½⌋`."""
    return z3.ToInt(value + z3.RealVal("1/2"))


def test_the_solver_finds_what_is_wrong():
    a, b = word("a"), word("b")
    with pytest.raises(AssertionError):
        proved(a - b <= 5)
    x = z3.Real("x")
    with pytest.raises(AssertionError):
        proved(half_up(2 * x) == 2 * half_up(x))


def test_clamping_brings_nobody_further_apart():
    a, b, limit = word("a"), word("b"), word("limit")
    difference = clamped(a, limit) - clamped(b, limit)
    proved(z3.And(difference >= 0, difference <= a - b), a >= b, limit > 0)


def test_clamping_keeps_a_unit_of_one_sign():
    """What is added stays added, in every cell, however many of them are at their bounds."""
    a, added, limit = word("a"), word("added"), word("limit")
    moved = clamped(a + added, limit) - clamped(a, limit)
    proved(z3.And(moved >= 0, moved <= added), added >= 0, limit > 0)


@pytest.mark.parametrize("exponent", [-62, -61, -60, -33, -8, -1, 0, 1, 2, 8, 33, 62, 63, 70])
def test_integers_to_the_lattice(exponent):
    """A neighbour moves by no more than it did where the lattice divides 1, and by one step more where it is coarser."""

    def to_units(value):
        if exponent <= 0:
            shift = -exponent
            limit = VALUE_LIMIT >> shift if shift < 61 else 0
            outside = z3.If(value > limit, z3.BitVecVal(VALUE_LIMIT, BITS), z3.BitVecVal(-VALUE_LIMIT, BITS))
            return z3.If(z3.And(value <= limit, value >= -limit), value << min(shift, 61), outside)
        shift = min(exponent, 63)
        return clamped((value + (1 << (shift - 1))) >> shift, VALUE_LIMIT)

    a, b = word("a"), word("b")
    moved = to_units(b) - to_units(a)
    proved(z3.And(to_units(a) <= VALUE_LIMIT, to_units(a) >= -VALUE_LIMIT))
    if exponent <= 0:
        proved(z3.And(moved >= 0, moved <= (b - a) << -exponent), b >= a)
    else:
        proved(z3.And(moved >= 0, (moved - 1) << min(exponent, 63) < b - a), b >= a)


def test_what_is_published_is_the_sum_clamped():
    """Saturation and clamping follow from the sum of value and noise: nothing else of the value is in the number."""
    value, noise = word("value"), word("noise")
    low, high = -(1 << 63), (1 << 63) - 1
    total = value + noise
    saturated = z3.If(total > high, high, z3.If(total < low, low, total))
    proved(clamped(saturated, OUTPUT_LIMIT) == clamped(total, OUTPUT_LIMIT))


def test_rounding_commutes_with_integers():
    """`g·round((v + z)/g) = v + g·round(z/g)` for `v` on the lattice: noise on it is the continuous mechanism, rounded."""
    value, noise = z3.Int("value"), z3.Real("noise")
    proved(half_up(z3.ToReal(value) + noise) == value + half_up(noise))


def test_rounding_keeps_whole_records_whole():
    """Cells that differ by at most so many steps stay within so many, and within one more where those are no integer."""
    x, y, steps = z3.Real("x"), z3.Real("y"), z3.Int("steps")
    moved = half_up(y) - half_up(x)
    proved(z3.And(moved >= 0, moved <= steps), y >= x, y - x <= z3.ToReal(steps))
    proved(z3.ToReal(moved) < y - x + 1, y >= x)
