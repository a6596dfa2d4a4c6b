"""Filters of a series: convolution with a public kernel, and the ones that have names."""

from functools import cached_property
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from sordino import _core
from sordino._support.checks import flag, integer, numbers, one_of, positive, real
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.workloads.base import MAX_LENGTH, Array, Spec, Workload, length_of, steps_of

__all__ = [
    "BandPass",
    "Boundary",
    "Convolution",
    "Difference",
    "ExponentialSmoothing",
    "Filter",
    "MovingAverage",
    "PolynomialDecay",
    "RunningAverage",
    "RunningSum",
    "SlidingWindow",
]

Boundary: TypeAlias = Literal["circular", "causal", "same", "valid"]
"""circular: the series is a ring. causal: `y_t = sum_j h_j x_(t-j)`, nothing before the start.
same: the filter is centred, `y_t = sum_j h_j x_(t+c-j)`, `c = (len(h) - 1) // 2`, nothing outside.
valid: causal without a warm-up, from the first step that meets all taps on: `length - len(h) + 1` answers."""


# Taps below this are zero: they change no answer, and their squares would underflow.
_NEGLIGIBLE = 1e-150


def _boundary(value: object) -> Boundary:
    boundary: Boundary = one_of("boundary", value, get_args(Boundary))
    return boundary


def _looks_back(name: str, boundary: Boundary) -> None:
    """Refuse a boundary that a kernel as long as the series has no use for."""
    if boundary not in {"causal", "circular"}:
        raise InvalidParameterError(f"{name} looks back to the start: boundary 'causal' or 'circular'")


class Filter(Workload):
    """A convolution of a series of `length` steps with a kernel.

    Attributes:
        length: Steps of the series; as many answers, but for the boundary 'valid'. None for a stream of unknown length.
        boundary: What happens at the ends.
    """

    per_cell: ClassVar[bool] = True

    length: int | None
    boundary: Boundary

    @property
    def steps(self) -> int:
        """The length, for a release of the whole series.

        Raises:
            UnsupportedMechanismError: The series has no length, or one beyond 2**26 steps.
        """
        if self.length is None or self.length > MAX_LENGTH:
            raise UnsupportedMechanismError(
                "a series without a length, or with more than 2**26 steps, is released step by step: Continual"
            )
        return self.length

    @cached_property
    def kernel(self) -> Array:
        """Taps `h_0, h_1, ...`, shape (taps,), read-only."""
        return numbers("kernel", self._taps())

    def _taps(self) -> Array:
        raise NotImplementedError

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(length,)`."""
        return (self.steps,)

    @property
    def center(self) -> int:
        """Tap that meets the step itself: 0 unless the boundary is 'same'."""
        return (len(self.kernel) - 1) // 2 if self.boundary == "same" else 0

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(length,)`; without a warm-up the steps that have an answer."""
        return (self.steps - self.first_step,)

    @property
    def first_step(self) -> int:
        """Step that the first answer belongs to: 0 unless the boundary is 'valid'."""
        return len(self.kernel) - 1 if self.boundary == "valid" else 0

    @cached_property
    def has_windows(self) -> bool:
        """Whether every answer is a multiple of a sum of neighbouring steps, of more than one: all taps are equal."""
        return self.boundary != "circular" and len(self.kernel) > 1 and float(np.ptp(self.kernel)) == 0.0

    def _build(self) -> _core.Workload:
        kernel = self.kernel
        if self.boundary == "circular":
            if len(kernel) > self.steps:
                raise InvalidParameterError("a circular kernel must not be longer than the series")
            return _core.Workload.circular(np.pad(kernel, (0, self.steps - len(kernel))))
        if self.boundary == "causal":
            kernel = kernel[: self.steps]  # later taps never meet the series
        if self.boundary == "valid":
            if len(kernel) > self.steps:
                raise InvalidParameterError("with boundary='valid' the kernel must not be longer than the series")
            return _core.Workload.tail(self.first_step, _core.Workload.linear(kernel, self.steps, 0))
        return _core.Workload.linear(np.ascontiguousarray(kernel), self.steps, self.center)


class Convolution(Filter):
    """Convolution with any kernel.

    `y_i = sum_j h_j x_(i-j)`, indices modulo `length` when circular.

    Args:
        kernel: Taps, shape (taps,), finite, not all zero.
        length: Steps of the series; the number of taps if None.
        boundary: 'circular', 'causal', 'same' or 'valid'.

    Raises:
        DataTypeError: The kernel is no one-dimensional array of numbers.
        InvalidParameterError: A size or the boundary is out of range, or the kernel is empty, zero or not finite.
    """

    kind: ClassVar[str] = "convolution"

    def __init__(self, kernel: object, length: int | None = None, boundary: Boundary = "circular") -> None:
        self._kernel = numbers("kernel", kernel)
        self.length = length_of("length", len(self._kernel) if length is None else length)
        self.boundary = _boundary(boundary)
        _ = self.core

    def _taps(self) -> Array:
        return self._kernel

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"kernel": self.kernel, "length": self.length, "boundary": self.boundary}


class MovingAverage(Filter):
    """Mean of the last `window` steps (centred with boundary 'same').

    `y_t = (1/window) sum_(j<window) x_(t-j)`; steps before the start count as zero, or with boundary 'valid' the first
    answer is that of step `window - 1`.

    Args:
        window: Steps in the mean, at most `length`.
        length: Steps of the series; None for a stream of unknown length.
        boundary: 'causal', 'same', 'valid' or 'circular'.

    Raises:
        DataTypeError: A size is no integer.
        InvalidParameterError: A size or the boundary is out of range.
    """

    kind: ClassVar[str] = "moving_average"

    def __init__(self, window: int, length: int | None = None, boundary: Boundary = "causal") -> None:
        self.length = steps_of("length", length)
        self.window = length_of("window", window)
        if self.length is not None and self.window > self.length:
            raise InvalidParameterError(f"window {self.window} is longer than the series of {self.length} steps")
        self.boundary = _boundary(boundary)

    def _taps(self) -> Array:
        return np.full(self.window, 1.0 / self.window)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"window": self.window, "length": self.length, "boundary": self.boundary}


class SlidingWindow(MovingAverage):
    """Sum of the last `window` steps: `y_t = sum_(j<window) x_(t-j)`, as `MovingAverage` times `window`."""

    kind: ClassVar[str] = "sliding_window"

    def _taps(self) -> Array:
        return np.ones(self.window)


class ExponentialSmoothing(Filter):
    """Exponentially decaying weights `decay**j`; normalised, their sum over an infinite past is 1.

    `y_t = (1 - decay) sum_j decay**j x_(t-j)`, without the factor if not normalised.

    Args:
        decay: Strictly between 0 and 1.
        length: Steps of the series; None for a stream of unknown length.
        normalized: Whether to multiply by `1 - decay`.
        boundary: 'causal' or 'circular'.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
    """

    kind: ClassVar[str] = "exponential_smoothing"

    def __init__(
        self, decay: float, length: int | None = None, normalized: bool = True, boundary: Boundary = "causal"
    ) -> None:
        self.decay = real("decay", decay)
        if not 0.0 < self.decay < 1.0:
            raise InvalidParameterError(f"decay must lie strictly between 0 and 1, got {self.decay}")
        self.length = steps_of("length", length)
        self.normalized = flag("normalized", normalized)
        self.boundary = _boundary(boundary)
        _looks_back("exponential smoothing", self.boundary)

    def _taps(self) -> Array:
        taps = self.decay ** np.arange(self.steps, dtype=np.float64)
        if self.normalized:
            taps *= 1.0 - self.decay
        taps[taps < _NEGLIGIBLE] = 0.0
        return taps

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "decay": self.decay,
            "length": self.length,
            "normalized": self.normalized,
            "boundary": self.boundary,
        }


class PolynomialDecay(Filter):
    """Polynomially decaying weights: `y_t = sum_j (j + 1)**-exponent x_(t-j)`.

    Args:
        exponent: Positive, at most 20.
        length: Steps of the series.
        boundary: 'causal' or 'circular'.

    Raises:
        DataTypeError: An argument is no number.
        InvalidParameterError: An argument is out of range.
    """

    kind: ClassVar[str] = "polynomial_decay"

    def __init__(self, exponent: float, length: int, boundary: Boundary = "causal") -> None:
        self.exponent = positive("exponent", exponent, most=20.0)
        self.length = length_of("length", length)
        self.boundary = _boundary(boundary)
        _looks_back("polynomial decay", self.boundary)
        _ = self.core

    def _taps(self) -> Array:
        return (np.arange(self.steps, dtype=np.float64) + 1.0) ** -self.exponent

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"exponent": self.exponent, "length": self.length, "boundary": self.boundary}


class BandPass(Filter):
    """The ideal band-pass filter of a ring: frequencies from `low` to `high` pass, others are removed.

    Args:
        low: Lowest frequency in cycles per step, from 0.
        high: Highest frequency, at most 1/2.
        length: Steps of the series.

    Raises:
        DataTypeError: An argument is no number.
        InvalidParameterError: The band is empty on the grid `k/length`, or out of range.
    """

    kind: ClassVar[str] = "band_pass"
    boundary: Boundary = "circular"

    def __init__(self, low: float, high: float, length: int) -> None:
        self.low, self.high = real("low", low), real("high", high)
        if not 0.0 <= self.low <= self.high <= 0.5:
            raise InvalidParameterError("a band must satisfy 0 <= low <= high <= 1/2 (cycles per step)")
        self.length = length_of("length", length)
        _ = self.core

    def _taps(self) -> Array:
        frequencies = np.fft.rfftfreq(self.steps)
        passed = (frequencies >= self.low) & (frequencies <= self.high)
        if not passed.any():
            raise InvalidParameterError("no frequency k/length lies in the band: widen it")
        taps: Array = np.fft.irfft(passed.astype(np.float64), self.steps)
        return taps

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"low": self.low, "high": self.high, "length": self.length}


class Difference(Filter):
    """Differences of consecutive steps, `order` times: `y_t = x_t - x_(t-1)` for order 1.

    Args:
        length: Steps of the series.
        order: How often, 1 to 16.
        boundary: 'causal' (the first step differs from zero), 'valid' (the first `order` steps have no answer), or
            'circular'.

    Raises:
        DataTypeError: A size is no integer.
        InvalidParameterError: A size or the boundary is out of range.
    """

    kind: ClassVar[str] = "difference"

    def __init__(self, length: int, order: int = 1, boundary: Boundary = "causal") -> None:
        self.length = length_of("length", length)
        self.order = integer("order", order, least=1, most=16)
        self.boundary = _boundary(boundary)
        _ = self.core

    def _taps(self) -> Array:
        taps = np.ones(1)
        for _ in range(self.order):
            taps = np.convolve(taps, [1.0, -1.0])
        return taps

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length, "order": self.order, "boundary": self.boundary}


class RunningSum(Filter):
    """Running totals: `y_t = x_0 + ... + x_t`; over a histogram, the cumulative distribution.

    Args:
        length: Steps of the series; None for a stream of unknown length.

    Raises:
        DataTypeError: The length is no integer.
        InvalidParameterError: The length is out of range.
    """

    kind: ClassVar[str] = "running_sum"
    boundary: Boundary = "causal"

    def __init__(self, length: int | None = None) -> None:
        self.length = steps_of("length", length)

    def _taps(self) -> Array:
        return np.ones(self.steps)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length}


class RunningAverage(Workload):
    """Mean of all steps so far: `y_t = (x_1 + ... + x_t)/t`; released step by step, as a `Continual`.

    Args:
        length: Steps of the series; None for a stream of unknown length.

    Raises:
        DataTypeError: The length is no integer.
        InvalidParameterError: The length is out of range.
    """

    kind: ClassVar[str] = "running_average"

    def __init__(self, length: int | None = None) -> None:
        self.length = steps_of("length", length)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length}

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(length,)`.

        Raises:
            UnsupportedMechanismError: The series has no length.
        """
        if self.length is None:
            raise UnsupportedMechanismError(
                "a series without a length is released step by step: sordino.Continual(...)"
            )
        return (self.length,)

    def _build(self) -> _core.Workload:
        raise UnsupportedMechanismError("running averages are released step by step: sordino.Continual(...)")
