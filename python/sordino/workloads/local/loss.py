"""Convex losses of one parameter, by their derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.checks import positive
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError

if TYPE_CHECKING:
    from sordino.workloads.base import Array

__all__ = ["LocalLoss"]


@dataclass(frozen=True)
class LocalLoss:
    """A loss `l(theta; d)` that is convex and 1-Lipschitz in theta, for a parameter and values within the same bounds.

    `LocalLoss.absolute()` is `|theta - d|`: its minimiser is the median, and the same reports give the distribution and
    all quantiles. `LocalLoss.huber(width)` is quadratic near d. Others are given by two functions.

    Attributes:
        name: 'absolute', 'huber', or what the caller named it.
        derivative: Of (theta, d), an array and a number, the derivative in theta: from -1 to 1, not decreasing in it.
        value: Of (theta, d), the loss itself, from 0 to the length of the bounds, asked for the lower bound of theta
            alone; None if the level of the risk is not wanted.
        width: Of 'huber'.
    """

    name: str
    derivative: Callable[[Array, float], Array]
    value: Callable[[float, float], float] | None = None
    width: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.derivative):
            raise DataTypeError("a loss needs a name and its derivative, a function of theta and a value")
        if self.value is not None and not callable(self.value):
            raise DataTypeError("value must be a function of theta and a value, or None")
        if self.width is not None:
            positive("width", self.width)
        if self.name == "absolute" and (self.derivative is not _sign or self.value is not None):
            raise InvalidParameterError("only LocalLoss.absolute() is named 'absolute'; its level needs no value")

    @staticmethod
    def absolute() -> LocalLoss:
        """Return `|theta - d|`."""
        return LocalLoss("absolute", _sign)

    @staticmethod
    def huber(width: float) -> LocalLoss:
        """Return `(theta - d)^2/(2 width)` near d, `|theta - d| - width/2` further off.

        Args:
            width: Where it becomes linear, in units of the values.

        Raises:
            InvalidParameterError: The width is not positive.
        """
        width = positive("width", width)

        def derivative(theta: Array, d: float) -> Array:
            return np.asarray(np.clip((theta - d) / width, -1.0, 1.0))

        def value(theta: float, d: float) -> float:
            away = abs(theta - d)
            return away * away / (2.0 * width) if away < width else away - width / 2.0

        return LocalLoss("huber", derivative, value, width)

    @property
    def level(self) -> bool:
        """Whether clients send the loss at the lower bound, beside the derivative."""
        return self.value is not None

    def to_json(self) -> dict[str, Any]:
        """Return the loss as a record.

        Raises:
            InvalidParameterError: It is given by functions, which no file holds.
        """
        if self.name == "absolute":
            return {"name": "absolute"}
        if self.width is not None:
            return {"name": "huber", "width": self.width}
        raise InvalidParameterError("a loss that is given by functions cannot be written to a file")

    @staticmethod
    def from_json(record: object) -> LocalLoss:
        """Return the loss of a record.

        Raises:
            PlanFileError: It describes no loss.
        """
        match record:
            case {"name": "absolute"}:
                return LocalLoss.absolute()
            case {"name": "huber", "width": width}:
                return LocalLoss.huber(width)
        raise PlanFileError("the plan's loss is unknown")


def _sign(theta: Array, d: float) -> Array:
    return np.where(theta >= d, 1.0, -1.0)
