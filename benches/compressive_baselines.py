"""Sketches, bases, recoveries and the paper's own algorithms in numpy and scipy, as a careful user would write them.

Sketches have entries `+-1` (or 0) and no scale: a sketch of integers is exact, and its noise is calibrated to integer
sensitivities. Divide by the root of the entries in a column (`k`, or `s`) for columns of norm 1. Noise here is in
floating point: not private.

Source of what is called the paper: Li, Zhang, Winslett and Yang, "Compressive mechanism", WPES 2011.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

__all__ = [
    "BernoulliSketch",
    "HadamardSketch",
    "Sketch",
    "SparseSketch",
    "cosamp",
    "cosine",
    "debiased",
    "explicit",
    "fista",
    "haar",
    "hadamard_butterflies",
    "hadamard_products",
    "inverse_cosine",
    "inverse_haar",
    "lasso",
    "leaked",
    "literal_continual",
    "niht",
    "omp",
    "operator",
    "sparsity_probabilities",
    "sparsity_scores",
    "transform_sensitivity",
]

Array = NDArray[np.float64]
Transform = Callable[[Array], Array]
"""An orthonormal transform of the last axis."""


class Sketch(Protocol):
    """A public matrix of `rows` x `columns` with equally many entries `+-1` in every column."""

    rows: int
    columns: int
    entries: int
    """In each column: its sensitivity in L1, and its square in L2."""

    def forward(self, x: NDArray[np.number]) -> Array:
        """Return the sketch of a vector."""
        ...

    def adjoint(self, y: Array) -> Array:
        """Return the transpose times a vector."""
        ...

    def dense(self, start: int, stop: int) -> Array:
        """Return rows `start .. stop` of the matrix."""
        ...


class BernoulliSketch:
    """Independent signs, made anew in blocks of columns from a seed and multiplied by BLAS: the paper's matrix.

    A block of 256 columns stays in the cache. Bits are unpacked and used as 0 and 1, since `y = 2 B x - sum x`;
    products are in single precision where that is exact, for integers of `sum |x| < 2^24`.
    """

    _BLOCK = 256

    def __init__(self, rows: int, columns: int, seed: int = 1) -> None:
        """Keep the seed; `rows` is a multiple of 8."""
        if rows % 8:
            raise ValueError(f"rows must be a multiple of 8, got {rows}")
        self.rows = self.entries = rows
        self.columns = columns
        self._seed = seed

    def _packed(self, start: int) -> NDArray[np.uint8]:
        """Return a block of columns, transposed: `(at most _BLOCK, rows / 8)` bytes."""
        width = min(self._BLOCK, self.columns - start)
        rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([self._seed, start])))
        return np.frombuffer(rng.bytes(width * self.rows // 8), dtype=np.uint8).reshape(width, self.rows // 8)

    def _bits(self, start: int) -> NDArray[np.uint8]:
        return np.unpackbits(self._packed(start), axis=1)

    def forward(self, x: NDArray[np.number]) -> Array:
        """Return the sketch of a vector."""
        total = float(np.abs(x).sum())
        single = np.issubdtype(x.dtype, np.integer) and total < 2**24
        values = x.astype(np.float32 if single else np.float64)
        y = np.zeros(self.rows)
        for start in range(0, self.columns, self._BLOCK):
            part = values[start : start + self._BLOCK]
            # Skipping blocks of zeros would tell an observer of the time where the data are.
            y += np.asarray(part @ self._bits(start).astype(values.dtype), dtype=np.float64)
        return 2.0 * y - float(x.sum())

    def adjoint(self, y: Array) -> Array:
        """Return the transpose times a vector."""
        starts = range(0, self.columns, self._BLOCK)
        x: Array = np.concatenate([self._bits(start).astype(np.float64) @ y for start in starts])
        return 2.0 * x - float(y.sum())

    def dense(self, start: int, stop: int) -> Array:
        """Return rows `start .. stop` of the matrix, multiples of 8."""
        blocks = range(0, self.columns, self._BLOCK)
        bits = [np.unpackbits(self._packed(block)[:, start // 8 : stop // 8], axis=1).T for block in blocks]
        return np.asarray(2.0 * np.hstack(bits) - 1.0)


def hadamard_butterflies(x: NDArray[np.number]) -> Array:
    """Return `H x` for Sylvester's matrix of signs by `log2 n` passes of sums and differences.

    The last axis, a power of two, is transformed.
    """
    n = x.shape[-1]
    y: Array = x.astype(np.float64)
    other = np.empty(x.shape)
    half = 1
    while half < n:
        a, b = (z.reshape(*x.shape[:-1], -1, 2, half) for z in (y, other))
        np.add(a[..., 0, :], a[..., 1, :], out=b[..., 0, :])
        np.subtract(a[..., 0, :], a[..., 1, :], out=b[..., 1, :])
        y, other = other, y
        half *= 2
    return y


def hadamard_products(x: NDArray[np.number]) -> Array:
    """Return `H x` by products with `scipy.linalg.hadamard(32)`: `H_n` is a Kronecker product of them and of a rest.

    scipy has the matrix only, not the fast transform; matrix products of BLAS replace five passes each.
    """
    shape = x.shape
    n = shape[-1]
    y = x.astype(np.float64).reshape(-1, n)
    left = n
    while left > 1:
        order = min(32, left)
        # The last digit of the index is transformed and becomes the first one; after all digits they are in order.
        y = np.matmul(scipy.linalg.hadamard(order, dtype=np.float64), y.reshape(len(y), n // order, order).mT)
        y = y.reshape(-1, n)
        left //= order
    return y.reshape(shape)


class HadamardSketch:
    """Random rows of the Hadamard transform of the data with random signs: subsampled, randomised (SRHT)."""

    def __init__(
        self,
        rows: int,
        columns: int,
        seed: int = 1,
        transform: Callable[[NDArray[np.number]], Array] = hadamard_products,
    ) -> None:
        """Draw signs and rows; `columns` is a power of two."""
        rng = np.random.default_rng(seed)
        self.rows = self.entries = rows
        self.columns = columns
        self._signs = rng.choice(np.array([-1.0, 1.0]), columns)
        self._chosen = np.sort(rng.choice(columns, rows, replace=False))
        self._transform = transform

    def forward(self, x: NDArray[np.number]) -> Array:
        """Return the sketch of a vector."""
        return np.asarray(self._transform(x * self._signs)[self._chosen])

    def adjoint(self, y: Array) -> Array:
        """Return the transpose times a vector."""
        full = np.zeros(self.columns)
        full[self._chosen] = y
        return self._signs * self._transform(full)

    def dense(self, start: int, stop: int) -> Array:
        """Return rows `start .. stop` of the matrix."""
        units = np.zeros((stop - start, self.columns))
        units[np.arange(stop - start), self._chosen[start:stop]] = 1.0
        return self._signs * self._transform(units)


class SparseSketch:
    """A sign in one row of each of `entries` blocks of rows, for every column."""

    def __init__(self, rows: int, columns: int, entries: int = 4, seed: int = 1) -> None:
        """Draw rows and signs; `entries` divides `rows`."""
        if rows % entries:
            raise ValueError(f"entries must divide rows, got {entries} and {rows}")
        rng = np.random.default_rng(seed)
        self.rows, self.columns, self.entries = rows, columns, entries
        block = rows // entries
        self._places = rng.integers(0, block, (entries, columns)) + block * np.arange(entries)[:, None]
        self._signs = rng.choice(np.array([-1.0, 1.0]), (entries, columns))

    def forward(self, x: NDArray[np.number]) -> Array:
        """Return the sketch of a vector: `np.bincount`, one block at a time."""
        y = np.zeros(self.rows)
        for places, signs in zip(self._places, self._signs, strict=True):
            y += np.bincount(places, signs * x, self.rows)
        return y

    def forward_add_at(self, x: NDArray[np.number]) -> Array:
        """Return the same by `np.add.at`."""
        y = np.zeros(self.rows)
        np.add.at(y, self._places, self._signs * x)
        return y

    def plain_forward(self) -> Callable[[list[int]], list[int]]:
        """Return what sketches a table in plain Python, by lists of places and signs that are made before."""
        blocks = list(zip(self._places.tolist(), self._signs.astype(np.int64).tolist(), strict=True))

        def forward(x: list[int]) -> list[int]:
            y = [0] * self.rows
            for places, signs in blocks:
                for place, sign, count in zip(places, signs, x, strict=True):
                    y[place] += sign * count
            return y

        return forward

    def adjoint(self, y: Array) -> Array:
        """Return the transpose times a vector."""
        x = np.zeros(self.columns)
        for places, signs in zip(self._places, self._signs, strict=True):
            x += signs * y[places]
        return x

    def dense(self, start: int, stop: int) -> Array:
        """Return rows `start .. stop` of the matrix."""
        rows = np.zeros((stop - start, self.columns))
        entry, column = np.nonzero((self._places >= start) & (self._places < stop))
        rows[self._places[entry, column] - start, column] = self._signs[entry, column]
        return rows

    def matrix(self) -> scipy.sparse.csc_array:
        """Return the matrix in scipy's compressed columns: what a user of scipy multiplies by."""
        pointers = np.arange(0, self.entries * self.columns + 1, self.entries)
        parts = self._signs.T.ravel(), self._places.T.ravel(), pointers
        return scipy.sparse.csc_array(parts, shape=(self.rows, self.columns))


def haar(x: NDArray[np.number]) -> Array:
    """Return the orthonormal Haar coefficients of the last axis, a power of two: the mean, then coarse to fine."""
    out = np.empty(x.shape)
    low = x.astype(np.float64)
    while (n := low.shape[-1]) > 1:
        even, odd = low[..., ::2], low[..., 1::2]
        out[..., n // 2 : n] = (even - odd) * math.sqrt(0.5)
        low = (even + odd) * math.sqrt(0.5)
    out[..., :1] = low
    return out


def inverse_haar(c: Array) -> Array:
    """Return the vectors of these Haar coefficients."""
    low = c[..., :1].astype(np.float64)
    while (n := low.shape[-1]) < c.shape[-1]:
        high = c[..., n : 2 * n]
        both = np.empty((*c.shape[:-1], n, 2))
        np.add(low, high, out=both[..., 0])
        np.subtract(low, high, out=both[..., 1])
        low = both.reshape(*c.shape[:-1], 2 * n) * math.sqrt(0.5)
    return low


def cosine(x: NDArray[np.number]) -> Array:
    """Return the orthonormal cosine transform (DCT-II) of the last axis."""
    return np.asarray(scipy.fft.dct(x.astype(np.float64), norm="ortho"))


def inverse_cosine(c: Array) -> Array:
    """Return the vectors of these cosine coefficients."""
    return np.asarray(scipy.fft.idct(c, norm="ortho"))


def operator(sketch: Sketch, analysis: Transform, synthesis: Transform) -> LinearOperator:
    """Return `A = Phi Psi`, coefficients to measurements, columns of `Phi` of norm 1."""
    scale = 1.0 / math.sqrt(sketch.entries)
    return LinearOperator(
        (sketch.rows, sketch.columns),
        matvec=lambda c: scale * sketch.forward(synthesis(np.ravel(c))),
        rmatvec=lambda y: scale * analysis(sketch.adjoint(np.ravel(y))),
        dtype=np.float64,
    )


def explicit(sketch: Sketch, analysis: Transform, block: int = 64) -> Array:
    """Return `A = Phi Psi` as an array in Fortran order; each row is the transform of a row of `Phi`.

    8 bytes an entry: 2 GiB at 4096 x 2^16. `block` rows at a time, a multiple of 8.
    """
    A = np.empty((sketch.rows, sketch.columns), order="F")
    for start in range(0, sketch.rows, block):
        stop = min(start + block, sketch.rows)
        A[start:stop] = analysis(sketch.dense(start, stop)) / math.sqrt(sketch.entries)
    return A


def _largest(c: Array, count: int) -> NDArray[np.intp]:
    return np.argpartition(np.abs(c), len(c) - count)[len(c) - count :]


def _least_squares(A: LinearOperator, y: Array, support: NDArray[np.intp], steps: int, start: Array) -> Array:
    """Return the coefficients on a support that fit best: LSQR from a start, sub-columns by scattering."""

    def scattered(z: Array) -> Array:
        c = np.zeros(A.shape[1])
        c[support] = np.ravel(z)
        return c

    part = LinearOperator(
        (A.shape[0], len(support)), matvec=lambda z: A.matvec(scattered(z)), rmatvec=lambda r: A.rmatvec(r)[support],
        dtype=np.float64,
    )  # fmt: skip
    return scattered(lsqr(part, y, atol=1e-8, btol=1e-8, iter_lim=steps, x0=start[support])[0])


def debiased(A: LinearOperator, y: Array, c: Array, steps: int = 50) -> Array:
    """Return the least-squares fit on the support of `c`, at most half as many coefficients as measurements."""
    support = np.flatnonzero(c)
    most = A.shape[0] // 2
    return _least_squares(A, y, support if len(support) <= most else _largest(c, most), steps, c)


def cosamp(A: LinearOperator, y: Array, sparsity: int, *, iterations: int = 30, steps: int = 20) -> Array:
    """Return `sparsity` coefficients by compressive sampling matching pursuit, LSQR inside, no matrix.

    Ends when the residual falls by less than one part in 10^4; the best iterate is returned.

    Source: Needell and Tropp 2009, Algorithm 2.1. `2 sparsity` new columns join `sparsity` kept ones.
    """
    c = best = np.zeros(A.shape[1])
    residual, least = y, float(np.linalg.norm(y))
    for _ in range(iterations):
        proxy = A.rmatvec(residual)
        support = np.union1d(_largest(proxy, min(2 * sparsity, len(proxy))), np.flatnonzero(c))
        fit = _least_squares(A, y, support, steps, c)
        c = np.zeros(len(fit))
        kept = _largest(fit, sparsity)
        c[kept] = fit[kept]
        residual = y - A.matvec(c)
        norm = float(np.linalg.norm(residual))
        if norm >= least * (1.0 - 1e-4):
            return c if norm < least else best
        best, least = c, norm
    return best


def niht(A: LinearOperator, y: Array, sparsity: int, *, iterations: int = 300, tolerance: float = 1e-6) -> Array:
    """Return `sparsity` coefficients by normalised iterative hard thresholding.

    The step is the exact one on the current support; a step that changes the support is cut until it is a descent.

    Source: Blumensath and Davies 2010, section III (c = 0.01, kappa = 2).
    """
    slack = 0.01
    c = np.zeros(A.shape[1])
    residual = y
    support = _largest(A.rmatvec(y), sparsity)
    for _ in range(iterations):
        gradient = A.rmatvec(residual)
        direction = np.zeros(len(c))
        direction[support] = gradient[support]
        image = A.matvec(direction)
        power = float(image @ image)
        if power == 0.0:
            break
        step = float(direction @ direction) / power
        while True:
            moved = c + step * gradient
            kept = _largest(moved, sparsity)
            new = np.zeros(len(c))
            new[kept] = moved[kept]
            change = new - c
            if np.array_equal(np.sort(kept), np.sort(support)):
                break
            image = A.matvec(change)
            most = (1.0 - slack) * float(change @ change) / max(float(image @ image), 1e-300)
            if step <= most:
                break
            step = min(step / (2.0 * (1.0 - slack)), most)
        c, support = new, kept
        residual = y - A.matvec(c)
        if np.linalg.norm(change) <= tolerance * np.linalg.norm(c):
            break
    return c


def fista(A: LinearOperator, y: Array, penalty: float, *, iterations: int = 500, tolerance: float = 1e-7) -> Array:
    """Return the least of `½‖A c - y‖² + penalty ‖c‖_1` by accelerated proximal steps of length `1 / ‖A‖²`.

    The norm is from twenty power iterations, raised by 5 %; momentum restarts when it points uphill.

    Source: Beck and Teboulle 2009; restart: O'Donoghue and Candès 2015, the gradient scheme.
    """
    v = np.random.default_rng(1).normal(size=A.shape[1])
    square = 1.0
    for _ in range(20):
        v = A.rmatvec(A.matvec(v / np.linalg.norm(v)))
        square = float(np.linalg.norm(v))
    step = 1.0 / (1.05 * square)
    c = z = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(iterations):
        moved = z - step * A.rmatvec(A.matvec(z) - y)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0.0)
        change = new - c
        if (z - new) @ change > 0.0:
            t = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        z = new + (t - 1.0) / following * change
        c, t = new, following
        if np.linalg.norm(change) <= tolerance * max(float(np.linalg.norm(c)), 1e-300):
            break
    return c


def omp(A: Array, y: Array, sparsity: int, *, keep: bool = True) -> Array:
    """Return `sparsity` coefficients by scikit-learn's orthogonal matching pursuit on an explicit matrix.

    `keep=False` lets it permute the columns of `A` in place instead of copying the matrix.
    """
    from sklearn.linear_model import orthogonal_mp  # noqa: PLC0415 - of the benchmarks only

    return np.asarray(orthogonal_mp(A, y, n_nonzero_coefs=sparsity, copy_X=keep))


def lasso(A: Array, y: Array, penalty: float, *, steps: int = 1000, tolerance: float = 1e-4) -> Array:
    """Return the least of `½‖A c - y‖² + penalty ‖c‖_1` by scikit-learn's coordinate descent on an explicit matrix."""
    from sklearn.linear_model import Lasso  # noqa: PLC0415 - of the benchmarks only

    model = Lasso(alpha=penalty / len(y), fit_intercept=False, copy_X=False, max_iter=steps, tol=tolerance)
    return np.asarray(model.fit(A, y).coef_)


def literal_continual(signs: Array, stream: NDArray[np.number], epsilon: float, rng: np.random.Generator) -> Array:
    """Return what the paper's continual mechanism releases, `(T, k)`: it is *not* epsilon-private but `k epsilon`.

    The paper's Appendix C runs one binary counter for each of the `k` measurements, and gives each the whole epsilon:
    nodes have Laplace noise of scale `(log2 T + 1) / (sqrt(k) epsilon)`, since one item moves one counter by
    `1 / sqrt k`. But one item moves all `k` of them.

    Args:
        signs: `(k, T)`, entries `+-1`; measurement `i` at step `t` counts `signs[i, t] stream[t] / sqrt k`.
        stream: `(T,)`, T a power of two.
        epsilon: Of each counter.
        rng: Of the noise.
    """
    k, steps = signs.shape
    levels = steps.bit_length()
    scale = levels / (math.sqrt(k) * epsilon)
    exact, noisy = np.zeros((levels, k)), np.zeros((levels, k))
    out = np.empty((steps, k))
    for t in range(1, steps + 1):
        closed = (t & -t).bit_length() - 1
        exact[closed] = exact[:closed].sum(axis=0) + signs[:, t - 1] * (stream[t - 1] / math.sqrt(k))
        noisy[closed] = exact[closed] + rng.laplace(0.0, scale, k)
        exact[:closed] = noisy[:closed] = 0.0
        out[t - 1] = noisy.sum(axis=0)
    return out


def leaked(
    released: Array, signs: Array, stream: NDArray[np.number], other: NDArray[np.number], epsilon: float
) -> float:
    """Return the logarithm of how much likelier a release of `literal_continual` is under `stream` than under `other`.

    An epsilon-private mechanism keeps it within `+-epsilon` for neighbours. The release at `t` minus the one at
    `t - 2^i`, `i` the lowest bit of `t`, is the noisy node that `t` closed: all nodes can be read, and no more is
    there.
    """
    k, steps = signs.shape
    scale = steps.bit_length() / (math.sqrt(k) * epsilon)
    padded = np.vstack([np.zeros(k), released])
    sums = [np.vstack([np.zeros(k), np.cumsum(signs.T * (x / math.sqrt(k))[:, None], axis=0)]) for x in (stream, other)]
    ends = np.arange(1, steps + 1)
    starts = ends - (ends & -ends)
    nodes, own, others = (table[ends] - table[starts] for table in (padded, *sums))
    return float((np.abs(nodes - others) - np.abs(nodes - own)).sum() / scale)


def transform_sensitivity(n: int, basis: str) -> float:
    """Return `c = max_j ‖Psi^T e_j‖_1`, how much one record moves the coefficients in L1, for `haar` or `dct`.

    Haar: `n^(-1/2) + sum_l 2^(-l/2)`, l from 1 to log2 n. DCT: the largest column, by the definition in `n^2` steps;
    about `0.9003 sqrt n`.
    """
    if basis == "haar":
        return 1.0 / math.sqrt(n) + sum(math.exp2(-level / 2.0) for level in range(1, n.bit_length()))
    frequencies = np.arange(1, n) * (np.pi / (2 * n))
    starts = range(0, n, 256)
    blocks = (np.abs(np.cos(np.outer(2 * np.arange(j, min(j + 256, n)) + 1, frequencies))).sum(axis=1) for j in starts)
    return 1.0 / math.sqrt(n) + math.sqrt(2.0 / n) * max(float(sums.max()) for sums in blocks)


def sparsity_scores(
    c: Array, sparsities: NDArray[np.integer], epsilon: float, c2: float = 1.0, c4: float = 1.0
) -> Array:
    """Return the paper's bound of the error, `u(S) = C2 ‖c - c_S‖_1 / sqrt S + C4 S ln(n / S) / epsilon`.

    Less is better; at S = n it is 0 whatever the data, so candidates end at `n / e`. A score is private data.
    """
    tails = np.concatenate([np.cumsum(np.sort(np.abs(c)))[::-1], [0.0]])
    S = np.asarray(sparsities, dtype=np.float64)
    return np.asarray(c2 * tails[sparsities] / np.sqrt(S) + c4 * S * np.log(len(c) / S) / epsilon)


def sparsity_probabilities(
    scores: Array, sparsities: NDArray[np.integer], epsilon: float, sensitivity: float, *, uniform: bool
) -> Array:
    """Return with which probability the exponential mechanism chooses each sparsity, `~ exp(-epsilon u / (2 Delta))`.

    Args:
        scores: From `sparsity_scores`.
        sparsities: Candidates.
        epsilon: Of the choice.
        sensitivity: `C2 c`, c of `transform_sensitivity`: the score of S moves by at most `sensitivity / sqrt S`.
        uniform: Delta is that of the least candidate for all of them; otherwise the paper's `sensitivity / sqrt S`,
            which is private too but seeks the least `sqrt(S) u(S)`.
    """
    S = np.asarray(sparsities, dtype=np.float64)
    deltas = sensitivity / np.sqrt(np.full(len(S), S.min()) if uniform else S)
    logs = -epsilon * scores / (2.0 * deltas)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
