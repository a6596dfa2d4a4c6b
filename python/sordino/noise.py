"""The exact sampler, for research. Noise, not a guarantee: what to add it to, and how much, is the hard part."""

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer, positive
from sordino.errors import InvalidParameterError
from sordino.testing import current_key

__all__ = ["gaussian", "laplace"]


def _quarters(name: str, value: float) -> int:
    quarters = 4.0 * positive(name, value, least=0.25, most=2.0**46)
    if quarters != int(quarters):
        raise InvalidParameterError(f"{name} must be a multiple of 1/4, from 1/4 to 2**46")
    return int(quarters)


def _count(value: int) -> int:
    return integer("count", value, least=0, most=2**30)


def gaussian(count: int, std_in_units: float) -> NDArray[np.int64]:
    """Return integers `round(std_in_units · Z)`, Z standard Gaussian, exactly distributed.

    Args:
        count: How many, from 0 to 2**30.
        std_in_units: Standard deviation before rounding: a multiple of 1/4, from 1/4 to 2**46.

    Returns:
        Shape (count,).

    Raises:
        DataTypeError: An argument is no number.
        InvalidParameterError: An argument is out of range.
        EntropyError: The operating system gives no randomness.
    """
    return _core.gaussian_noise(_count(count), _quarters("std_in_units", std_in_units), current_key())


def laplace(count: int, scale_in_units: float) -> NDArray[np.int64]:
    """Return integers `round(scale_in_units · Z)`, Z Laplace of scale 1 (variance 2), exactly distributed.

    Args:
        count: How many, from 0 to 2**30.
        scale_in_units: Scale before rounding: a multiple of 1/4, from 1/4 to 2**46.

    Returns:
        Shape (count,).

    Raises:
        DataTypeError: An argument is no number.
        InvalidParameterError: An argument is out of range.
        EntropyError: The operating system gives no randomness.
    """
    return _core.laplace_noise(_count(count), _quarters("scale_in_units", scale_in_units), current_key())
