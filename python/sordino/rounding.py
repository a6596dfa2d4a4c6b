"""Square roots and reciprocals rounded to a chosen side, checked by exact rational comparison."""

import math
from fractions import Fraction

__all__ = ["float_down", "float_up", "reciprocal_down", "reciprocal_up", "sqrt_down", "sqrt_up"]


def float_down(value: Fraction) -> float:
    """Return the largest float that is at most the non-negative `value`."""
    number = float(value)
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


def float_up(value: Fraction) -> float:
    """Return the least float that is at least the non-negative `value`."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def sqrt_down(value: Fraction) -> float:
    """Return a float r with r**2 <= value, within two units in the last place of the root; value >= 0."""
    root = math.sqrt(value)
    while root > 0.0 and Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root


def sqrt_up(value: Fraction) -> float:
    """Return a float r with r**2 >= value, within two units in the last place of the root; value >= 0."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def reciprocal_down(value: float) -> float:
    """Return the largest float that is at most 1/value, for a positive normal `value`."""
    return float_down(1 / Fraction(value))


def reciprocal_up(value: float) -> float:
    """Return the least float that is at least 1/value, for a positive normal `value`."""
    return float_up(1 / Fraction(value))
