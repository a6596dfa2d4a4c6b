"""The Rust core: exact noise, strategies and the door. Private; use the names of `sordino`."""

from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Door",
    "Measured",
    "Strategy",
    "Workload",
    "__version__",
    "answer",
    "decode",
    "fit",
    "gaussian_noise",
    "laplace_noise",
    "select",
]

__version__: str

@final
class Workload:
    """A validated workload."""

    @staticmethod
    def histogram(len: int) -> Workload: ...
    @staticmethod
    def circular(kernel: NDArray[np.float64]) -> Workload: ...
    @staticmethod
    def linear(kernel: NDArray[np.float64], len: int, center: int) -> Workload: ...
    @staticmethod
    def group(radices: list[int], kernel: NDArray[np.float64]) -> Workload: ...
    @staticmethod
    def marginals(radices: list[int], sets: list[list[int]], weights: list[float]) -> Workload: ...
    @staticmethod
    def matrix(rows: int, columns: int, entries: NDArray[np.float64]) -> Workload: ...
    @property
    def input_len(self) -> int | None: ...
    @property
    def answers_len(self) -> int: ...
    def row_squares(self) -> NDArray[np.float64]: ...
    def row(self, index: int) -> NDArray[np.float64]: ...

@final
class Strategy:
    """A built strategy."""

    def __new__(
        cls, workload: Workload, mechanism: str, law: Literal["gaussian", "laplace"], branching: int = 2
    ) -> Strategy: ...
    @property
    def measured_len(self) -> int: ...
    @property
    def geometry(self) -> Literal["l2", "l1", "blocks"]: ...
    @property
    def ideal_mean_square(self) -> float | None: ...
    def variances(self) -> NDArray[np.float64]: ...
    def unit_variances(self) -> NDArray[np.float64]: ...
    def column(self, cell: int) -> NDArray[np.float64] | None: ...
    def weights(self, row: NDArray[np.float64]) -> NDArray[np.float64]: ...

@final
class Door:
    """A fitted lattice and noise."""

    @property
    def grid(self) -> int: ...
    @property
    def quarter_units(self) -> int: ...
    @property
    def sensitivity(self) -> tuple[float, float, float]:
        """Ideal sensitivity, and what encoding and rounding add, in units of the input."""
    @property
    def noise(self) -> float: ...
    def measure(
        self, strategy: Strategy, cells: NDArray[np.int64 | np.float64 | np.uint8], key: bytes | None = None
    ) -> Measured:
        """Publish cells or record codes under a fresh key, or a known one (not private)."""

@final
class Measured:
    """What was published."""

    @property
    def units(self) -> NDArray[np.int64]: ...
    @property
    def grid(self) -> int: ...
    def values(self) -> NDArray[np.float64]: ...

def fit(
    strategy: Strategy,
    relation: str,
    records: int,
    per_cell: int | None,
    max_value: int,
    fraction_bits: int,
    noise_ratio: float,
) -> Door:
    """Fit lattice and noise to a strategy, unit, domain and noise ratio."""

def decode(strategy: Strategy, measured: Measured) -> NDArray[np.float64]:
    """Answers of the strategy's workload from what was measured."""

def answer(
    strategy: Strategy, measured: Measured, workload: Workload
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Answers of another workload, and their variances at unit noise."""

def select(scores: NDArray[np.float64], sensitivity: float, epsilon: float, key: bytes | None = None) -> int:
    """Index of the noisy maximum."""

def gaussian_noise(count: int, quarter_units: int, key: bytes | None = None) -> NDArray[np.int64]:
    """Exact rounded Gaussian integers."""

def laplace_noise(count: int, quarter_units: int, key: bytes | None = None) -> NDArray[np.int64]:
    """Exact rounded Laplace integers."""
