"""The Rust core: exact noise, strategies and the door. Private; use the names of `sordino`."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AboveThreshold",
    "Basis",
    "Discrepancy",
    "Door",
    "GraphEvents",
    "GrownTree",
    "KeyLists",
    "LazyStream",
    "LowerBounds",
    "Measured",
    "NestedGroups",
    "PanPrivateTree",
    "Participants",
    "PathDoor",
    "PointFeatures",
    "PointSums",
    "Recovered",
    "Searched",
    "Sketch",
    "SketchOperator",
    "SpanningForest",
    "SparsityScores",
    "Strategy",
    "Stream",
    "StreamDoor",
    "StreamPlan",
    "TableDoor",
    "Tally",
    "Waves",
    "Words",
    "Workload",
    "__version__",
    "answer",
    "balanced_root",
    "balanced_rows",
    "block_gram",
    "box_sums",
    "checkpoint_header",
    "clipped_sum",
    "condensed",
    "decay_bound",
    "decode",
    "dense",
    "dense_strategy",
    "discrepancy",
    "exchange",
    "fit",
    "forks",
    "gaussian_noise",
    "in_phase",
    "isotonic",
    "joined_prefixes",
    "joint_errors",
    "keep_keys",
    "key_columns",
    "key_weight",
    "laplace_noise",
    "lower_bounds",
    "minimum_ellipsoid",
    "nearest_cells",
    "nearest_tables",
    "optimize_strategy",
    "p_identity",
    "p_identity_of_line",
    "prefix_bound",
    "project",
    "project_measure",
    "publish_keys",
    "recover",
    "recover_keys",
    "renew_owner",
    "root_diagonal",
    "seal",
    "search_cut",
    "several_strategy",
    "tell_subset",
    "top_down",
    "tree_blocks",
    "unbiased_table",
    "unseal",
    "watch_forks",
    "whole_table",
    "whole_top_down",
]

__version__: str

_Bytes: TypeAlias = bytes
# Integers, or where the name of each row begins and the bytes of all.
_Names: TypeAlias = NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.uint8]]
_Relation: TypeAlias = tuple[str, int, int | None, bool]

@final
class Waves:
    """The waves of a circle of twice so many steps."""

    def __new__(cls, steps: int) -> Waves: ...
    @property
    def variance(self) -> float: ...
    @property
    def largest(self) -> float: ...
    @property
    def codes(self) -> int: ...
    def tell(self, rows: NDArray[np.int64], bits: int, flips: int, key: bytes | None = None) -> NDArray[np.uint64]: ...
    def sums(self, codes: NDArray[np.uint64]) -> NDArray[np.int64]: ...
    def distribution(self, means: NDArray[np.float64]) -> NDArray[np.float64]: ...

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
    def marginals(
        radices: list[int], sets: list[list[int]], weights: list[float], total_share: float = 0.0
    ) -> Workload: ...
    @staticmethod
    def marginal_queries(queries: list[Workload], sets: list[list[int]], weights: list[float]) -> Workload: ...
    @staticmethod
    def matrix(rows: int, columns: int, entries: NDArray[np.float64]) -> Workload: ...
    @staticmethod
    def sparse(
        rows: int,
        columns: int,
        starts: NDArray[np.int64],
        indices: NDArray[np.int64],
        entries: NDArray[np.float64],
    ) -> Workload: ...
    @staticmethod
    def ranges(len: int) -> Workload: ...
    @staticmethod
    def intervals(len: int, first: NDArray[np.int64], last: NDArray[np.int64], weights: list[float]) -> Workload: ...
    @staticmethod
    def union(parts: list[Workload]) -> Workload: ...
    @staticmethod
    def tail(first: int, of: Workload) -> Workload: ...
    @staticmethod
    def kronecker(factors: list[Workload]) -> Workload: ...
    @property
    def input_len(self) -> int | None: ...
    @property
    def answers_len(self) -> int: ...
    @property
    def is_listed(self) -> bool: ...
    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def distinct_cells(self) -> tuple[NDArray[np.int64], int | None] | None: ...
    def row(self, index: int) -> NDArray[np.float64]: ...

@final
class Strategy:
    """A built strategy."""

    def __new__(
        cls, workload: Workload, mechanism: str, law: Literal["gaussian", "laplace"], branching: int = 2
    ) -> Strategy: ...
    @staticmethod
    def factored(
        workload: Workload,
        factors: list[NDArray[np.float64]],
        law: str,
        blocks: list[int] | None = None,
        body: bool = False,
        whole: bool = False,
    ) -> Strategy: ...
    @staticmethod
    def split(
        workload: Workload, strategies: list[Strategy], weights: list[float], unit: _Relation, objective: str
    ) -> Strategy: ...
    @staticmethod
    def of_merged_cells(workload: Workload, merged: Strategy) -> Strategy: ...
    @staticmethod
    def balanced_union(workload: Workload, weights: list[float]) -> Strategy: ...
    @staticmethod
    def weighted_tree_union(workload: Workload, weights: list[float]) -> Strategy: ...
    @staticmethod
    def fourier_filters(workload: Workload, weights: list[float], unit: _Relation) -> Strategy: ...
    @staticmethod
    def nested_product(workload: Workload, unit: _Relation) -> Strategy: ...
    @staticmethod
    def p_identity(workload: Workload, sums: NDArray[np.float64]) -> Strategy: ...
    @staticmethod
    def p_identity_of_blocks(workload: Workload, sums: NDArray[np.float64]) -> Strategy: ...
    @staticmethod
    def p_identity_product(workload: Workload, sums: list[NDArray[np.float64] | None]) -> Strategy: ...
    @staticmethod
    def joint(
        workload: Workload, weights: list[float], law: str, along: list[NDArray[np.float64]], shares: list[float]
    ) -> Strategy: ...
    @staticmethod
    def marginal_queries(workload: Workload, matrices: list[NDArray[np.float64] | None], law: str) -> Strategy: ...
    @staticmethod
    def common(workload: Workload, law: str, ratio: float) -> Strategy:
        """All cells with noise of their own and common noise: `ratio` of the deviations, or whole, of the rates."""
    @staticmethod
    def sketched(workload: Workload, operator: SketchOperator, law: str, sparsity: int) -> Strategy: ...
    @staticmethod
    def keyed(operator: SketchOperator, law: Literal["gaussian", "laplace"]) -> Strategy:
        """The sums of a sketch of keys that nobody lists."""
    @staticmethod
    def summed(
        features: PointFeatures,
        weights: NDArray[np.float64] | list[list[float]],
        law: str,
        count_weight: float,
    ) -> Strategy:
        """Sums over points with weights of the features, of the axes, or none."""
    def refined(self, door: Door) -> Strategy | None:
        """Return the strategy as it answers under a door's noise, if rows have noise of different sizes."""
    def decode(self, measured: NDArray[np.float64]) -> NDArray[np.float64]: ...
    @property
    def measured_len(self) -> int: ...
    def multiplied(self, cells: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """What is measured of cells that are no integers, without noise."""
    @property
    def has_transpose(self) -> bool: ...
    @property
    def geometry(self) -> Literal["l2", "l1", "blocks", "boxes", "body", "common"]: ...
    @property
    def ideal_mean_square(self) -> float | None: ...
    def variances(self) -> NDArray[np.float64]: ...
    def spread(self) -> tuple[float, float | None] | None:
        """Mean and largest variance of the answers, where they are known without listing them."""
    def cells(self, measured: Measured) -> NDArray[np.float64] | None:
        """The table that the answers are read off, where what was measured determines it."""
    def merged_cells(self, measured: Measured) -> NDArray[np.float64] | None:
        """The same; of cells that are measured as one their sum, in the place of the first of them."""
    def box_variances(self, shape: list[int], first: list[int], last: list[int]) -> NDArray[np.float64]:
        """Variances of sums over boxes of a table at unit noise."""
    @property
    def common_noise(self) -> float:
        """Variance of the noise that all measured numbers have in common, at unit noise."""
    def residual_variances(self, sets: Sequence[Sequence[int]]) -> list[float] | None: ...
    def unit_variances(self) -> NDArray[np.float64]: ...
    def column(self, cell: int) -> NDArray[np.float64] | None: ...
    def weights(self, row: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def answer_weights(self, answer: int, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights that decoding gives what was measured in this answer of the strategy's own workload."""

@final
class NestedGroups:
    """The groups of a workload, of which any two are nested or disjoint."""

    def __new__(cls, workload: Workload) -> NestedGroups: ...
    def bound(self, weights: NDArray[np.float64] | None = None) -> float: ...
    def strategy(
        self,
        law: str,
        weights: NDArray[np.float64] | None = None,
        unit: _Relation | None = None,
        most: int | None = None,
    ) -> Strategy: ...

@final
class Searched:
    """What a search found: a strategy and its certificate."""

    @property
    def strategy(self) -> NDArray[np.float64]: ...
    @property
    def blocks(self) -> list[int] | None: ...
    @property
    def query_weights(self) -> NDArray[np.float64]: ...
    @property
    def cell_weights(self) -> NDArray[np.float64]: ...
    @property
    def changes(self) -> NDArray[np.int8] | None: ...
    @property
    def lower(self) -> float | None: ...
    @property
    def upper(self) -> float: ...
    @property
    def iterations(self) -> int: ...
    @property
    def interrupted(self) -> bool: ...

_Report: TypeAlias = Callable[[int, float], object] | None

@final
class LowerBounds:
    """Lower bounds on the error of any mechanism."""

    @property
    def determinant(self) -> tuple[float, int]: ...
    @property
    def spectral(self) -> tuple[float, list[int]]: ...
    @property
    def volume(self) -> tuple[float, float]: ...
    @property
    def volume_error(self) -> float: ...

@final
class Discrepancy:
    """An interval around the hereditary discrepancy, and signs."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def entry(self) -> float: ...
    @property
    def determinant(self) -> tuple[float, int]: ...
    @property
    def spectral(self) -> tuple[float, int]: ...
    @property
    def weighted(self) -> tuple[float, int]: ...
    @property
    def walk(self) -> float: ...
    @property
    def banaszczyk(self) -> float: ...
    @property
    def gamma_2(self) -> tuple[float, float]: ...
    @property
    def signs(self) -> NDArray[np.int8]: ...
    @property
    def found(self) -> float: ...

def p_identity_of_line(
    workload: Workload,
    weights: list[float] | None,
    starts: list[NDArray[np.float64]],
    alone: bool,
    limits: tuple[float, int],
    progress: _Report,
) -> Searched: ...
def lower_bounds(queries: NDArray[np.float64], most: int, cell_weights: NDArray[np.float64]) -> LowerBounds: ...
def discrepancy(queries: NDArray[np.float64], gap: float, starts: int, seed: int) -> Discrepancy: ...
def dense(workload: Workload) -> NDArray[np.float64]: ...
def optimize_strategy(
    queries: NDArray[np.float64],
    objective: str,
    gap: float,
    iterations: int,
    start: NDArray[np.float64] | None,
    progress: _Report,
) -> Searched: ...
def several_strategy(
    queries: NDArray[np.float64], most: int, signed: bool, gap: float, iterations: int, progress: _Report
) -> Searched: ...
def balanced_root(queries: NDArray[np.float64], progress: _Report) -> Searched: ...
def balanced_rows(queries: NDArray[np.float64]) -> NDArray[np.float64]: ...
def minimum_ellipsoid(queries: NDArray[np.float64], gap: float, iterations: int, progress: _Report) -> Searched: ...
def dense_strategy(
    queries: NDArray[np.float64], coefficients: str, law: str, gap: float, iterations: int, progress: _Report
) -> Searched: ...
def p_identity(
    queries: NDArray[np.float64],
    starts: list[NDArray[np.float64]],
    alone: bool,
    limits: tuple[float, int],
    progress: _Report,
) -> Searched: ...
def nearest_cells(
    strategy: Strategy,
    measured: NDArray[np.float64],
    constraint: str,
    size: float,
    tolerance: float,
    iterations: int,
) -> tuple[NDArray[np.float64], float, int]: ...
def project(
    columns: NDArray[np.float64],
    target: NDArray[np.float64],
    constraint: str,
    size: float,
    tolerance: float,
    iterations: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], float, int]: ...
def search_cut(
    weights: NDArray[np.float64], goal: Literal["minimum", "maximum", "sparsest"]
) -> tuple[NDArray[np.bool_], float, bool]:
    """Return a side of the best cut that is found, its weight, and whether no cut is better."""

def project_measure(
    factors: list[NDArray[np.float64]],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    max_iterations: int,
    progress: _Report = None,
) -> tuple[NDArray[np.float64], float, int]:
    """Probabilities on a tensor grid whose features are nearest to a target, duality gap and iterations.

    Factor j has shape (T_j, G_j); target and weights are flat in C order, of T_1·…·T_d numbers, the result of
    G_1·…·G_d. Minimises half of the sum of (weight·(feature - target))².
    """

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
    @property
    def scale(self) -> float:
        """What the privacy rests on: Gaussian standard deviation, or Laplace scale."""
    @property
    def discrete(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Steps, rates and lengths of the runs of rows with discrete noise; empty for noise on the grid."""
    @property
    def staircase(self) -> tuple[float, float, int, int] | None:
        """Step, privacy loss, width and first step of staircase noise on a single number, else None."""
    def measure(
        self,
        strategy: Strategy,
        cells: NDArray[np.int64 | np.float64 | np.uint8]
        | tuple[NDArray[np.int64], NDArray[np.int64]]
        | Sketch
        | PointSums,
        key: bytes | None = None,
    ) -> Measured:
        """Publish cells, record codes, a sketch or sums of points under a fresh key, or a known one (not private)."""
    def published(self, units: NDArray[np.int64]) -> Measured:
        """Return what this door published before, in its units."""

@final
class PathDoor:
    """A fitted lattice and noise for trees that grow where records are."""

    @staticmethod
    def fit(
        shape: tuple[int, int],
        growth: Literal["adaptive", "full"],
        law: Literal["gaussian", "laplace"],
        parts: _Relation,
        max_value: int,
        noise_ratio: float,
    ) -> PathDoor: ...
    @property
    def grid(self) -> int: ...
    @property
    def quarter_units(self) -> int: ...
    @property
    def noise(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def sensitivity(self) -> tuple[float, float, float]: ...
    def measure(
        self, cells: NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.int64]], key: bytes | None = None
    ) -> Measured:
        """Publish counts of a tree under a fresh key, or a known one (not private)."""
    def published(self, units: NDArray[np.int64]) -> Measured: ...
    def grown(self, measured: Measured) -> GrownTree:
        """Return the tree that was published."""
    def dense_square(self, axes: tuple[str, str]) -> float:
        """Mean squared error of queries by noise alone, if the tree grows down to every cell."""

@final
class TableDoor:
    """A fitted lattice and noise for tables that are measured where an estimate is furthest off, and which they are."""

    @staticmethod
    def fit(
        strategy: Strategy,
        levels: list[int],
        sets: list[list[int]],
        weights: list[float],
        parts: _Relation,
        max_value: int,
        noise_ratio: float,
    ) -> TableDoor: ...
    @property
    def grid(self) -> int: ...
    @property
    def quarter_units(self) -> int: ...
    @property
    def noise(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def sensitivity(self) -> tuple[float, float, float]: ...
    def measure(self, strategy: Strategy, cells: NDArray[np.int64 | np.uint8], key: bytes | None = None) -> Measured:
        """Publish tables that a strategy counts, under a fresh key or a known one (not private)."""
    def published(self, units: NDArray[np.int64]) -> Measured: ...
    def looks(self, measured: Measured) -> list[tuple[int, NDArray[np.float64], float]]:
        """What was published, table by table: number, cells with noise, their variance."""
    def agreed(
        self, measured: Measured, total: float | None, shrink: bool
    ) -> tuple[NDArray[np.float64], float, float, int]:
        """Tables that agree, of all candidates, with the gap over the noise, what was mixed in, and iterations."""

@final
class GrownTree:
    """A tree that has grown."""

    def regions(self) -> NDArray[np.int64]:
        """First cell, and one behind the last, on two axes: four numbers a node."""
    def depths(self) -> NDArray[np.int64]: ...
    def undecided(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The last measurement of every node on which nothing was decided, and its variance; else no numbers."""
    def measured(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Everything that was measured: boxes as in `regions`, counts with noise, variances."""
    def counts(self) -> NDArray[np.float64]: ...
    def cells(self) -> NDArray[np.float64]: ...

@final
class Measured:
    """What was published."""

    @property
    def units(self) -> NDArray[np.int64]: ...
    @property
    def grid(self) -> int: ...
    def values(self) -> NDArray[np.float64]: ...

_Pattern: TypeAlias = tuple[int, int, int, int, int, int, float | None]
_Items: TypeAlias = NDArray[np.int64 | np.float64]

@final
class StreamPlan:
    """A built mechanism for a stream."""

    def __new__(
        cls,
        filter: str,
        parameters: list[float],
        mechanism: str,
        law: Literal["gaussian", "laplace"],
        horizon: Literal["hard", "soft", "unbounded"],
        length: int,
        objective: Literal["mean", "max"],
        degree: int | None = None,
        participations: tuple[int, int] = ...,
    ) -> StreamPlan: ...
    @property
    def steps(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def operations(self) -> float: ...
    @property
    def no_negative_products(self) -> bool:
        """Whether no product of two columns of the strategy is negative."""
    @property
    def falling_products(self) -> bool:
        """Whether products of columns never grow with their distance."""
    def read_operations(self, step: int) -> float:
        """Operations that reading one coordinate takes, where nothing is computed before it is read."""
    def worst_steps(self, steps: int) -> NDArray[np.uint64]:
        """Steps at which the variance of a sum may be largest, where few of very many are."""
    def parameters(self) -> bytes:
        """SHA-256 of the numbers that the noise depends on besides the recipe."""
    def sensitivity(self, patterns: Sequence[_Pattern]) -> float:
        """Of patterns that concern different coordinates, together."""
    def variances(self, steps: NDArray[np.uint64]) -> NDArray[np.float64]: ...
    def fit(
        self,
        patterns: Sequence[_Pattern],
        max_value: int,
        fraction_bits: int,
        noise_ratio: float,
        common: tuple[float, int] | None = None,
    ) -> StreamDoor:
        """Fit lattice and noise; with noise in common, of a ratio to that of each of so many coordinates."""

@final
class StreamDoor:
    """A fitted lattice and noise for a stream."""

    @property
    def grid(self) -> int: ...
    @property
    def quarter_units(self) -> int: ...
    @property
    def sensitivity(self) -> tuple[float, float, float]:
        """Ideal sensitivity, and what encoding and rounding add, in units of the items."""
    @property
    def noise(self) -> float: ...
    @property
    def scale(self) -> float:
        """What the privacy rests on: Gaussian standard deviation, or Laplace scale."""
    @property
    def common(self) -> float | None:
        """Noise that all coordinates of a step have in common, over that of each."""
    @property
    def discrete(self) -> tuple[float, float] | None:
        """Step and rate of discrete noise, if it is."""

@final
class SketchOperator:
    """A random matrix of signs from a public seed."""

    def __new__(cls, kind: str, cells: int, measurements: int, seed: int, nonzeros: int) -> SketchOperator: ...
    @property
    def description(self) -> tuple[str, int, int, int, int]:
        """Kind, cells, measurements, seed, entries of a sparse column."""
    @property
    def column_entries(self) -> int: ...
    def column(self, cell: int) -> NDArray[np.int64]: ...
    def apply(self, x: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def adjoint(self, y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class Sketch:
    """Integer sums that grow and merge; as private as the data."""

    def __new__(cls, operator: SketchOperator) -> Sketch: ...
    @staticmethod
    def from_bytes(bytes: _Bytes) -> Sketch: ...
    def to_bytes(self) -> bytes: ...
    @property
    def operator(self) -> SketchOperator: ...
    def update_one(self, cell: int, count: int) -> None: ...
    def update(self, cells: NDArray[np.int64], counts: NDArray[np.int64] | None = None) -> None: ...
    def add_table(self, table: NDArray[np.int64]) -> None: ...
    def merge(self, other: Sketch) -> None: ...
    def copy(self) -> Sketch: ...
    def sums(self) -> NDArray[np.int64]:
        """The sums: private, for what a stream is fed with."""

@final
class PointFeatures:
    @staticmethod
    def chebyshev(
        bounds: list[tuple[float, float]],
        degrees: list[int],
        points: int,
        indices: NDArray[np.uint32] | None = None,
    ) -> PointFeatures: ...
    @staticmethod
    def kernel(bounds: list[tuple[float, float]], mixings: list[NDArray[np.float64]], points: int) -> PointFeatures: ...
    @staticmethod
    def cells(bounds: list[tuple[float, float]], counts: list[int], points: int) -> PointFeatures: ...
    @staticmethod
    def declared(
        bounds: list[tuple[float, float]],
        profile: str,
        scales: list[float],
        centres: NDArray[np.float64],
        weights: NDArray[np.float64],
        tolerance: float,
        points: int,
        whitening: NDArray[np.float64] | None = None,
    ) -> PointFeatures: ...
    @property
    def features(self) -> int: ...
    @property
    def bits(self) -> int: ...
    @property
    def mark(self) -> int: ...
    def indices(self) -> NDArray[np.uint32] | None: ...
    def decoding(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...
    def whitening(self) -> NDArray[np.float64] | None: ...
    def contract(self, values: NDArray[np.float64], axes: list[NDArray[np.float64]]) -> NDArray[np.float64]: ...

@final
class PointSums:
    def __new__(cls, features: PointFeatures) -> PointSums: ...
    @staticmethod
    def from_bytes(features: PointFeatures, bytes: bytes) -> PointSums: ...
    def to_bytes(self) -> bytes: ...
    @property
    def count(self) -> int: ...
    def add(self, points: NDArray[np.float64]) -> None: ...
    def merge(self, other: PointSums) -> None: ...
    def copy(self) -> PointSums: ...
    def sums(self) -> NDArray[np.int64]: ...

@final
class GraphEvents:
    """What edges add to a function of a growing graph."""

    def __new__(cls, function: str, vertices: int, max_degree: int | None, k: int) -> GraphEvents: ...
    def rows(
        self, first: int, source: NDArray[np.int64], target: NDArray[np.int64], ends: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """What the edges of every step from `first` change, row by row: private."""
    @property
    def bytes(self) -> int: ...
    def close(self) -> None: ...

@final
class SpanningForest:
    """What weighted edges add to the cost of a minimum spanning forest."""

    def __new__(cls, vertices: int, max_weight: int) -> SpanningForest: ...
    def rows(
        self,
        first: int,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        weights: NDArray[np.int64],
        ends: NDArray[np.uint64],
    ) -> NDArray[np.int64]:
        """What the edges of every step from `first` change: private."""
    @property
    def bytes(self) -> int: ...
    def close(self) -> None: ...

@final
class Words:
    """What letters add to the counts of short words."""

    def __new__(cls, kind: str, alphabet: int, longest: int) -> Words: ...
    def rows(self, first: int, letters: NDArray[np.int64], ends: NDArray[np.uint64]) -> NDArray[np.int64]:
        """What the letters of every step from `first` add, row by row: private."""
    def feed(self, counters: LazyStream, letters: NDArray[np.int64], ends: NDArray[np.uint64]) -> None: ...
    @property
    def bytes(self) -> int: ...
    def close(self) -> None: ...

@final
class LazyStream:
    """Open running sums that are read by coordinate."""

    def __new__(cls, plan: StreamPlan, door: StreamDoor, dim: int, key: bytes | None = None) -> LazyStream: ...
    @property
    def step(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    def advance(
        self, coordinates: NDArray[np.uint64], amounts: NDArray[np.int64], ends: NDArray[np.uint64]
    ) -> None: ...
    def read(self, coordinates: NDArray[np.uint64]) -> NDArray[np.float64]: ...
    def rekey(self) -> None:
        """Takes a fresh key for the noise of all steps from here on."""
    def sealed(self, key: _Bytes, place: _Bytes) -> _Bytes:
        """The keys, sealed."""
    @staticmethod
    def unsealed(
        plan: StreamPlan, door: StreamDoor, dim: int, key: _Bytes, place: _Bytes, sealed: _Bytes
    ) -> LazyStream: ...
    def close(self) -> None: ...

@final
class AboveThreshold:
    """Segments of a stream that end when a noisy count comes above a noisy threshold."""

    def __new__(cls, threshold: int, sensitivity: int, epsilon: float, key: bytes | None = None) -> AboveThreshold: ...
    @property
    def scale(self) -> float: ...
    @property
    def step(self) -> int: ...
    def push(self, first: int, items: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Items at which segments end (public), and their exact counts (private); the same again for the same items."""
    def sealed(self, key: _Bytes, place: _Bytes) -> bytes:
        """Noise and the running segment, sealed."""
    def go_on(self, key: _Bytes, place: _Bytes, sealed: _Bytes, step: int) -> None:
        """Go on from what was sealed after so many steps."""
    def held(self, first: int) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]] | None:
        """Steps, ends and counts of the items taken in last, if those were the steps from `first`."""
    def close(self) -> None: ...

@final
class Tally:
    """What is kept of all users' records; as private as the data."""

    def __new__(
        cls, seed: Sequence[int], cells: int, max_cells: int, per_cell: int, max_records: int, height: int
    ) -> Tally: ...
    @staticmethod
    def from_bytes(bytes: _Bytes) -> Tally: ...
    def to_bytes(self) -> _Bytes: ...
    def update(self, users: _Names, cells: NDArray[np.int32], values: NDArray[np.uint32]) -> None: ...
    def merge(self, other: Tally) -> None: ...
    def same_rule(self, other: Tally) -> bool: ...
    def table(self) -> NDArray[np.int64]: ...

@final
class Participants:
    """The steps of a stream that users took part in; as private as the data."""

    def __new__(cls, most: int, apart: int) -> Participants: ...
    @staticmethod
    def from_bytes(bytes: _Bytes) -> Participants: ...
    def to_bytes(self) -> _Bytes: ...
    def admitted(self, users: _Names, cells: NDArray[np.int32]) -> NDArray[np.int32]: ...
    def advance(self) -> None: ...
    @property
    def bounds(self) -> tuple[int, int]: ...
    @property
    def step(self) -> int: ...

@final
class KeyLists:
    """The keys of every user; as private as the data."""

    def __new__(cls) -> KeyLists: ...
    def update(self, users: _Names, keys: NDArray[np.int32]) -> None: ...
    def weights(
        self, seed: Sequence[int], order: NDArray[np.uint32], taken: NDArray[np.bool_], most: int, shared: bool
    ) -> NDArray[np.int64]: ...

def key_weight(keys: int, shared: bool) -> int: ...
def publish_keys(
    weights: NDArray[np.int64], quarter_units: int, threshold: int, key: _Bytes | None = None
) -> list[int]: ...
def keep_keys(users: NDArray[np.uint64], thresholds: Sequence[int], key: _Bytes | None = None) -> list[int]: ...

@final
class PanPrivateTree:
    """Running sums that bear one look at their state."""

    def __new__(cls, plan: StreamPlan, door: StreamDoor, dim: int, key: bytes | None = None) -> PanPrivateTree: ...
    @property
    def step(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def update(self, item: NDArray[np.int64]) -> None: ...
    def answers(self) -> NDArray[np.float64]: ...
    def close(self) -> None: ...

@final
class Basis:
    """An orthonormal basis, built in or given by two functions."""

    @staticmethod
    def named(name: str, len: int) -> Basis: ...
    @staticmethod
    def custom(
        len: int,
        analyze: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        synthesize: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        column_l1: float,
        relative_error: float,
    ) -> Basis: ...
    @property
    def len(self) -> int: ...
    @property
    def column_l1(self) -> float: ...
    def analyze(self, x: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def synthesize(self, c: NDArray[np.float64]) -> NDArray[np.float64]: ...

@final
class Recovered:
    """What a recovery found."""

    @property
    def support(self) -> NDArray[np.int64]: ...
    @property
    def coefficients(self) -> NDArray[np.float64]: ...
    @property
    def residual(self) -> float: ...
    @property
    def iterations(self) -> int: ...
    @property
    def converged(self) -> bool: ...
    @property
    def interrupted(self) -> bool: ...

@final
class SparsityScores:
    """What is public about the choice of a sparsity."""

    def __new__(
        cls,
        candidates: list[int],
        penalties: list[float],
        parts: tuple[str, int, int | None, bool],
        max_value: int,
        fraction_bits: int,
        epsilon: float,
    ) -> SparsityScores: ...
    def sensitivity(self, basis: Basis) -> float: ...
    def select(self, basis: Basis, cells: NDArray[np.int64 | np.float64], key: bytes | None = None) -> int: ...

def clipped_sum(records: NDArray[np.float64 | np.float32], clip_norm: float) -> NDArray[np.float64]:
    """Rows clipped to a Euclidean norm, and added up."""

def recover(
    operator: SketchOperator,
    basis: Basis,
    y: NDArray[np.float64],
    algorithm: str,
    sparsity: int | None,
    noise: float,
    iterations: int,
    threshold: tuple[float, bool] | None,
    progress: Callable[[int, float], object] | None,
) -> Recovered: ...
def recover_keys(
    operator: SketchOperator,
    keys: NDArray[np.uint64],
    y: NDArray[np.float64],
    algorithm: str,
    sparsity: int | None,
    noise: float,
    iterations: int,
    threshold: float | None = None,
    robust: float | None = None,
) -> Recovered: ...
def key_columns(operator: SketchOperator, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """`2 row + 1` for a plus, `2 row` for a minus: of every entry of the columns of keys, column by column."""

def nearest_tables(
    levels: Sequence[int],
    sets: Sequence[Sequence[int]],
    subsets: Sequence[Sequence[int]],
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    total: float,
    tolerance: float,
    iterations: int,
    limits: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> tuple[NDArray[np.float64], float, float, int]: ...
def top_down(
    starts: NDArray[np.int64], values: NDArray[np.float64], variances: NDArray[np.float64], total: float
) -> NDArray[np.float64]:
    """Return counts of a hierarchy: the children of each node are not negative and add up to it."""

def whole_top_down(starts: NDArray[np.int64], values: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return the same in whole numbers, in proportion to values that are not negative."""

def whole_table(
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    empty: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return a table in whole numbers with these margins, flat."""

def unbiased_table(values: NDArray[np.float64], columns: int, seed: int) -> NDArray[np.int64]:
    """Return a random table of whole numbers whose expectation is `values`, flat, with so many columns."""

def exchange(
    codes: NDArray[np.uint16],
    levels: Sequence[int],
    pairs: Sequence[Sequence[int]],
    tables: NDArray[np.int64],
    sweeps: int,
    seed: int,
) -> NDArray[np.float64]:
    """Exchange values of records, in place, until their tables of pairs come no nearer; squared distances left."""

def isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]: ...

@final
class Stream:
    """An open stream."""

    def __new__(cls, plan: StreamPlan, door: StreamDoor, dim: int, key: _Bytes | None = None) -> Stream: ...
    @staticmethod
    def restore(plan: StreamPlan, door: StreamDoor, dim: int, key: _Bytes, checkpoint: _Bytes) -> Stream: ...
    @property
    def step(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    def answers(self) -> NDArray[np.float64]: ...
    def update_one(self, item: float) -> float:
        """Publish one item of one coordinate."""
    def update(self, items: _Items, whole: bool) -> NDArray[np.float64]:
        """Publish a batch; unless it is taken as a whole, a signal may end it between two steps."""
    def prepare(self, items: _Items, name: str | None = None, whole: bool = False) -> None:
        """Publish a batch that nobody sees before it is stored: until `commit`, `held` returns it."""
    def held(self) -> tuple[int, str | None, NDArray[np.float64], NDArray[np.int64]] | None:
        """First step, name, answers and lattice increments of the batch that is not stored yet."""
    def commit(self) -> None:
        """Say that it is stored; once more changes nothing."""
    def replay(self, items: _Items, published: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Answers again, or nothing if other increments were published for these steps."""
    def skip(self, published: NDArray[np.int64]) -> None:
        """Go on to the end of steps that were published when the state was elsewhere: noise needs no items."""
    def rekey(self) -> None:
        """Take a fresh key for all samples from here on."""
    def sealed_key(self, key: _Bytes, place: _Bytes) -> _Bytes:
        """Return the key, sealed."""
    def take_key(self, key: _Bytes, place: _Bytes, sealed: _Bytes) -> None:
        """Take a sealed key for all samples from here on."""
    def checkpoint(self, key: _Bytes, header: _Bytes, held: bool = False) -> _Bytes:
        """Return the state, sealed; behind a batch that waits to be stored only if that is said."""
    def close(self) -> None: ...

def fit(
    strategy: Strategy,
    parts: tuple[str, int, int | None, bool],
    max_value: int,
    fraction_bits: int,
    noise_ratio: float,
) -> Door:
    """Fit lattice and noise to a strategy, unit, domain and noise ratio."""

def decode(strategy: Strategy, measured: Measured) -> NDArray[np.float64]:
    """Answers of the strategy's workload from what was measured."""

def box_sums(cells: NDArray[np.float64], shape: list[int], first: list[int], last: list[int]) -> NDArray[np.float64]:
    """Sums of the cells of a table over boxes."""

def answer(
    strategy: Strategy, measured: Measured, workload: Workload
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Answers of another workload, and their variances at unit noise."""

def condensed(workload: Workload, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Few rows R with `RᵀR = Aᵀ diag(weights) A`, shape (rows, cells)."""

def decay_bound(steps: int, decay: float) -> float:
    """Lower bound on the error of `y_t = decay y_(t-1) + x_t` of every Gaussian strategy at noise multiplier 1."""

def prefix_bound(steps: int, averages: bool, objective: str) -> float:
    """Lower bound on the error of running sums, or averages, of every Gaussian strategy at noise multiplier 1."""

def root_diagonal(workload: Workload, weights: list[float] | None = None) -> NDArray[np.float64]:
    """Diagonal of `(AᵀA)^(1/2)`, or a lower bound of it, for ranges and running sums with others on one line."""

def in_phase(workload: Workload, weights: list[float]) -> tuple[float, float, float]:
    """`Σ_j s_j`, `Σ_j s_j²` and `(Σ_k |λ_k|^(2/3))^(3/2)/L` of filters of one series, with the weights of parts."""

def joined_prefixes(workload: Workload) -> float:
    """A lower bound on the sum of the singular values of intervals, 0 where many have an end in common."""

def block_gram(workload: Workload, weights: list[float], block: int) -> NDArray[np.float64]: ...
def joint_errors(
    asked: Workload, weights: NDArray[np.float64] | None, law: str, rows: NDArray[np.float64]
) -> tuple[float, list[tuple[float, float]]]: ...
def tree_blocks(workload: Workload, weights: list[float] | None = None) -> list[tuple[int, int]]:
    """Sizes of the blocks that a weighted tree measures, and their weights, of a union whose parts have these."""

def checkpoint_header(checkpoint: bytes) -> bytes:
    """The public header of a checkpoint."""

def seal(key: _Bytes, place: _Bytes, message: _Bytes) -> bytes:
    """Seal a message under a key, bound to a place."""

def unseal(key: _Bytes, place: _Bytes, sealed: _Bytes) -> bytes:
    """What was sealed."""

def tell_subset(
    rows: NDArray[np.int64], size: int, bits: int, flips: int, key: bytes | None = None
) -> NDArray[np.uint32]:
    """Messages of clients: sets of places, a row each."""

def watch_forks(byte: memoryview) -> None:
    """Say where a byte is that the system empties in a child; it is 1 otherwise."""

def forks() -> int:
    """How many forks lead to this process."""

def renew_owner() -> None:
    """Say that this process is a child that was forked."""

def gaussian_noise(count: int, quarter_units: int, key: bytes | None = None) -> NDArray[np.int64]:
    """Exact rounded Gaussian integers."""

def laplace_noise(count: int, quarter_units: int, key: bytes | None = None) -> NDArray[np.int64]:
    """Exact rounded Laplace integers."""
