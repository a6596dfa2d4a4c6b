"""Square roots and reciprocals rounded to a chosen side, checked by exact rational comparison."""

import math
import sys
from decimal import Decimal
from fractions import Fraction

__all__ = ["decimal_up", "float_down", "float_up", "reciprocal_down", "reciprocal_up", "sqrt_down", "sqrt_up"]


# Roots are computed to so many binary places: more than a float has below 1.
_SHIFT = 1140


def float_down(value: Fraction) -> float:
    """Return the largest float that is at most `value`; the largest of all for a value beyond all floats."""
    try:
        number = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


def float_up(value: Fraction) -> float:
    """Return the least float that is at least `value`; infinity for a value beyond all floats."""
    return -float_down(-value) + 0.0  # no negative zero


def decimal_up(value: Fraction | float, digits: int) -> str:
    """Return a decimal of so many digits that is not below `value`, but for the last places of a float.

    A parameter that was typed as 0.1 is printed as 0.1, although the float is a little larger: the nearest decimal is
    kept if it is at most 2**-50 of the value below.
    """
    exact = Fraction(value)
    text = f"{float_up(exact):.{digits}g}"
    if text == "inf" or Fraction(text) * (1 + Fraction(1, 2**50)) >= exact:
        return text
    nearest = Decimal(text)
    return f"{float(nearest + Decimal(1).scaleb(nearest.adjusted() - digits + 1)):.{digits}g}"


def sqrt_down(value: Fraction) -> float:
    """Return the largest float whose square is at most `value`, for value >= 0."""
    return float_down(Fraction(_scaled_root(value), 1 << _SHIFT))


def sqrt_up(value: Fraction) -> float:
    """Return a float whose square is at least `value`, within two units in the last place of the root; value >= 0."""
    root = _scaled_root(value)
    exact = root * root * value.denominator == value.numerator << (2 * _SHIFT)
    return float_up(Fraction(root + (not exact), 1 << _SHIFT))


def _scaled_root(value: Fraction) -> int:
    """Return the integer part of `2**_SHIFT sqrt(value)`: no float in between, so that nothing underflows."""
    return math.isqrt((value.numerator << (2 * _SHIFT)) // value.denominator)


def reciprocal_down(value: float) -> float:
    """Return the largest float that is at most 1/value, for a positive normal `value`."""
    return float_down(1 / Fraction(value))


def reciprocal_up(value: float) -> float:
    """Return the least float that is at least 1/value, for a positive normal `value`."""
    return float_up(1 / Fraction(value))
