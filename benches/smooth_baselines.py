"""Smooth queries in numpy and scipy, as a careful user would write them: encoders, mechanisms, data, exact answers.

Points are on the cube `[-1, 1]^d`, `phi_m(x) = prod_j T_{m_j}(x_j)`; a summary is a tensor of means of `phi_m`, or of
other products of one-dimensional features, and a query answers by `factors`, a matrix `(queries, features)` for each
axis. Neighbours replace one of `n` points. Noise here is in floating point: not private, whatever its scale.

Source of what is called the paper: Wang, Fan, Zhang and Wang, "Efficient algorithm for privately releasing smooth
queries", NIPS 2013. Its mechanism is here as printed, and as its authors published it in code
(github.com/wangzt2012/Differential-Privacy-for-Smooth-Queries); neither spends only the epsilon that it says.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.optimize
import scipy.sparse
import scipy.special
from numpy.typing import NDArray

__all__ = [
    "WDBC_BOUNDS",
    "GaussianKernels",
    "KernelForm",
    "answers_at_once",
    "answers_in_a_loop",
    "blocked_encode",
    "breadth_first_monomials",
    "coefficient_factors",
    "exact_answers",
    "gaussian_kernel_queries",
    "gaussian_process_answers",
    "gaussian_sigma",
    "histogram_factors",
    "jackson",
    "kernel_factors",
    "kernel_form",
    "kernel_sensitivity",
    "kernel_summary",
    "laplace_histogram",
    "literal_summary",
    "noisy_answers",
    "numpy_encode",
    "paper_degree",
    "plain_encode",
    "published_answers",
    "published_measure",
    "published_summary",
    "synthetic",
    "uniform_guess",
    "wdbc",
]

Array = NDArray[np.float64]
Rng = np.random.Generator
Factors = list[Array]
"""For each axis, one row for each query."""

_CHUNK = 1024
_PAIRS = 1 << 22


# Data and queries.

WDBC_BOUNDS = {
    0: ("mean radius", 5.0, 30.0),
    1: ("mean texture", 5.0, 40.0),
    4: ("mean smoothness", 0.04, 0.18),
    8: ("mean symmetry", 0.05, 0.35),
}
"""Column, name, and bounds of what is used of the breast cancer data, in the units of the data.

Round numbers, fixed once for all data of this kind and written here: bounds must not be looked up in the points that
they are to protect. No reference ranges exist for these measures of images; the numbers leave room on both sides of
the extremes that the description of the data set, long public, states.
"""


def wdbc(d: int) -> Array:
    """Return the first `d <= 4` of four columns of scikit-learn's breast cancer data, mapped by `WDBC_BOUNDS`.

    Shape `(569, d)`, on the cube; whatever lies outside the bounds is clipped.
    """
    if not 1 <= d <= len(WDBC_BOUNDS):
        raise ValueError(f"d must be 1 to {len(WDBC_BOUNDS)}, got {d}")
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 - of the benchmarks only

    data = load_breast_cancer().data
    columns = list(WDBC_BOUNDS.items())[:d]
    scaled = [(2 * data[:, c] - low - high) / (high - low) for c, (_, low, high) in columns]
    return np.asarray(np.clip(np.stack(scaled, axis=1), -1.0, 1.0))


def synthetic(n: int, d: int, rng: Rng) -> Array:
    """Return `n` points of a mixture of four Gaussians with random centres, widths .08 to .3 and weights, clipped."""
    centres, widths = rng.uniform(-0.7, 0.7, (4, d)), rng.uniform(0.08, 0.3, (4, d))
    which = rng.choice(4, n, p=rng.dirichlet(np.full(4, 3.0)))
    return np.clip(centres[which] + widths[which] * rng.normal(size=(n, d)), -1.0, 1.0)


@dataclass(frozen=True)
class GaussianKernels:
    """Queries `f(x) = exp(-|x - y|^2 / (2 s^2))`, one for each centre `y`."""

    centres: Array
    bandwidth: float

    def __call__(self, points: Array) -> Array:
        """Return the values `(points, queries)`."""
        y = self.centres
        squares = (points**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2.0 * (points @ y.T)
        return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2.0 * self.bandwidth**2)))


def gaussian_kernel_queries(count: int, d: int, s: float, rng: Rng) -> GaussianKernels:
    """Return kernels with centres uniform on the cube."""
    return GaussianKernels(rng.uniform(-1.0, 1.0, (count, d)), s)


def exact_answers(points: Array, queries: GaussianKernels) -> Array:
    """Return the means of all queries over the points, in chunks of some million pairs."""
    chunk = max(1, _PAIRS // len(queries.centres))
    totals = (queries(points[i : i + chunk]).sum(axis=0) for i in range(0, len(points), chunk))
    return np.asarray(sum(totals) / len(points))


# Encoders: sums of products of one-dimensional features.


def numpy_encode(points: Array, degree: int, *, optimize: bool = False) -> Array:
    """Return the sums of all `phi_m`, `m < degree`, as people write it: `chebvander`, and one `einsum`.

    By default `einsum` runs one loop of `n t^d` products of `d` factors, without memory; with `optimize` it makes
    products of pairs of axes for all points at once, `n t^2` numbers, and multiplies the last axis by BLAS.
    """
    V = [np.polynomial.chebyshev.chebvander(points[:, j], degree - 1) for j in range(points.shape[1])]
    axes = "ijklmopq"[: len(V)]
    formula = ",".join(f"n{axis}" for axis in axes) + "->" + axes
    return np.asarray(np.einsum(formula, *V, optimize=optimize))


def plain_encode(points: list[list[float]], degree: int) -> list[float]:
    """Return the same sums in plain Python, point by point; the last axis varies fastest."""
    sums = [0.0] * degree ** len(points[0])
    for point in points:
        products = [1.0]
        for x in point:
            row = [1.0, x]
            for m in range(2, degree):
                row.append(2.0 * x * row[m - 1] - row[m - 2])
            products = [p * value for p in products for value in row[:degree]]
        sums = [total + p for total, p in zip(sums, products, strict=True)]
    return sums


def _chebyshev_rows(x: Array, degree: int) -> Array:
    """Return `T_m(x)` as `(degree, n)`, rows contiguous."""
    rows = np.ones((degree, len(x)))
    if degree > 1:
        rows[1] = x
    for m in range(2, degree):
        np.multiply(rows[m - 1], x, out=rows[m])
        rows[m] *= 2.0
        rows[m] -= rows[m - 2]
    return rows


def _products(rows: Sequence[Array]) -> Array:
    """Return products of rows of several axes, `(prod of their numbers, n)`."""
    product = rows[0]
    for more in rows[1:]:
        product = (product[:, None, :] * more[None, :, :]).reshape(-1, more.shape[1])
    return product


def _blocked_sums(points: Array, features: Callable[[Array], Array], chunk: int = _CHUNK) -> Array:
    """Return sums over points of products of one-dimensional features, by two half products and BLAS, in chunks."""
    n, d = points.shape
    half = (d + 1) // 2
    sums: Array | None = None
    for start in range(0, n, chunk):
        block = points[start : start + chunk].T
        every = features(np.ravel(block)).reshape(-1, *block.shape)
        rows = [every[:, j] for j in range(d)]
        left = _products(rows[:half])
        part = left @ _products(rows[half:]).T if half < d else left.sum(axis=1)
        sums = part if sums is None else np.add(sums, part, out=sums)
    if sums is None:
        raise ValueError("no points")
    return sums.reshape((-1,) if d == 1 else (len(rows[0]),) * d)


def blocked_encode(points: Array, degree: int, chunk: int = _CHUNK) -> Array:
    """Return the same sums tuned: chunks that stay in the cache, products of half of the axes, one product of BLAS."""
    return _blocked_sums(points, lambda x: _chebyshev_rows(x, degree), chunk)


# Answers: products of one-dimensional factors against a summary.


def answers_in_a_loop(summary: Array, factors: Factors) -> Array:
    """Return `sum_m S_m prod_j F_j[q, m_j]`, one query at a time, axis by axis."""
    answers = np.empty(len(factors[0]))
    for q in range(len(answers)):
        rest = summary
        for factor in factors:
            rest = factor[q] @ rest.reshape(len(factor[q]), -1)
        answers[q] = rest.item()
    return answers


def answers_at_once(summary: Array, factors: Factors, block: int = 256) -> Array:
    """Return the same, in blocks of queries: products of half of the axes, one product of BLAS, and a dot product."""
    d = len(factors)
    half = (d + 1) // 2
    answers = np.empty(len(factors[0]))
    for start in range(0, len(answers), block):
        rows = [np.ascontiguousarray(factor[start : start + block].T) for factor in factors]
        left = _products(rows[:half])
        rest = summary.reshape(len(left), -1).T @ left
        right = _products(rows[half:]) if half < d else np.ones_like(rest)
        answers[start : start + block] = (rest * right).sum(axis=0)
    return answers


def jackson(degree: int) -> Array:
    """Return the factors of classical Jackson damping, `1` at degree 0 and falling."""
    m, q = np.arange(degree), np.pi / (degree + 1)
    return np.asarray(((degree - m + 1) * np.cos(q * m) + np.sin(q * m) / np.tan(q)) / (degree + 1))


def coefficient_factors(queries: GaussianKernels, degree: int, *, damped: bool = False) -> Factors:
    """Return the Chebyshev coefficients of the kernels by DCTs on `2 degree` points of each axis.

    Truncated; or damped by Jackson's factors, as the paper's proof has it.
    """
    M = 2 * degree
    x = np.cos(np.pi * (np.arange(M) + 0.5) / M)
    values = np.exp(-((x - queries.centres[:, :, None]) ** 2) / (2.0 * queries.bandwidth**2))
    c = scipy.fft.dct(values, type=2, axis=2)[:, :, :degree] / M
    c[:, :, 0] /= 2.0
    if damped:
        c *= jackson(degree)
    return [c[:, j] for j in range(c.shape[1])]


# The paper.


def paper_degree(n: int, d: int, smoothness: int) -> int:
    """Return the paper's `t = n^(1 / (2 d + K))`, rounded; at least 2, below which nothing is measured."""
    return max(2, round(math.pow(n, 1.0 / (2 * d + smoothness))))


def literal_summary(points: Array, epsilon: float, degree: int, rng: Rng) -> Array:
    """Return Algorithm 1 as printed: the means of all `phi_m`, `m < t`, each with `Lap(t^d / (n epsilon))`.

    One point can change the means by `t^(d - 1) (t + kappa_t) / n` in L1, `kappa_t = -min_x sum_{m < t} cos(m x)`; so
    this is `(1 + kappa_t / t) epsilon`-private and no better: 1.04 at `t = 3`, 1.18 at 16, 1.217 in the limit. The
    constant, which is public, gets noise too. Query it by `coefficient_factors`, damped as in the paper or not.
    """
    n, d = points.shape
    noise = rng.laplace(scale=degree**d / (n * epsilon), size=(degree,) * d)
    return np.asarray(blocked_encode(points, degree) / n + noise)


def breadth_first_monomials(d: int, size: int) -> NDArray[np.int64]:
    """Return the first `size` exponents that a search finds that adds 1 to one coordinate, last coordinates first.

    The order of `rtuple` in the authors' code (which ignores the largest degree that it is given).
    """
    found, seen = [(0,) * d], {(0,) * d}
    for m in found:
        for j in reversed(range(d)):
            more = (*m[:j], m[j] + 1, *m[j + 1 :])
            if len(found) < size and more not in seen:
                seen.add(more)
                found.append(more)
        if len(found) == size:
            break
    return np.array(found, dtype=np.int64)


def _monomials(points: Array, exponents: NDArray[np.int64]) -> Array:
    """Return `phi_m` of points for few exponents of low degree: `(points, exponents)`."""
    values = np.ones((len(points), len(exponents)))
    for j in range(points.shape[1]):
        some = exponents[:, j] > 0
        rows = _chebyshev_rows(np.ascontiguousarray(points[:, j]), int(exponents[:, j].max()) + 1)
        values[:, some] *= rows[exponents[some, j]].T
    return values


def published_summary(points: Array, size: int, epsilon: float, rng: Rng) -> tuple[NDArray[np.int64], Array]:
    """Return exponents and noisy means as in the authors' code: `size` monomials, each with `Lap(size / (n epsilon))`.

    At `d = 30` one point can change the means by 1.84 (`size` 64, as configured) or 1.85 (79, the default) times
    `size / n`: the epsilon that is spent. Two steps of theirs are left out: points are rounded to a fine grid, and
    bounds of the columns are the data's own.
    """
    exponents = breadth_first_monomials(points.shape[1], size)
    means = _monomials(points, exponents).mean(axis=0)
    return exponents, means + rng.laplace(scale=size / (len(points) * epsilon), size=size)


def published_measure(exponents: NDArray[np.int64], means: Array, candidates: Array) -> Array:
    """Return weights of candidate points whose moments are nearest in L1 to the noisy means, by a linear program.

    In the authors' code candidates come of a private subspace iteration and a private mean, which spend epsilon of
    their own; pass public ones. Its bound on a weight, 100 over the number of candidates, is kept.
    """
    A = _monomials(candidates, exponents).T
    R, C = A.shape
    eye = scipy.sparse.eye_array(R)
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(C), np.ones(R)]),
        A_ub=scipy.sparse.block_array([[A, -eye], [-A, -eye]]),
        b_ub=np.concatenate([means, -means]),
        A_eq=np.concatenate([np.ones(C), np.zeros(R)])[None],
        b_eq=[1.0],
        bounds=[(0.0, 100.0 / C)] * C + [(0.0, None)] * R,
    )
    if found.status != 0:
        raise RuntimeError(found.message)
    return np.asarray(found.x[:C])


def published_answers(measure: Array, candidates: Array, queries: GaussianKernels) -> Array:
    """Return the queries' means over the weighted candidates."""
    return np.asarray(measure @ queries(candidates))


# The kernel mechanism.


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Return the noise over sensitivity of the Gaussian mechanism, exactly (Balle and Wang, ICML 2018, Theorem 8)."""

    def excess(sigma: float) -> float:
        a, b = 0.5 / sigma, epsilon * sigma
        return float(scipy.special.ndtr(a - b) - math.exp(epsilon) * scipy.special.ndtr(-a - b)) - delta

    high = 1.0
    while excess(high) > 0:
        high *= 2.0
    return float(scipy.optimize.brentq(excess, 1e-3, high, xtol=1e-12))


@dataclass(frozen=True)
class KernelForm:
    """A kernel of one dimension in finite form: `k(x, y) = <Gamma phi(x), Gamma phi(y)>`, and its extremes."""

    bandwidth: float
    Gamma: Array
    """`(rank, degree)`."""
    largest: float
    smallest: float

    def features(self, x: Array) -> Array:
        """Return `Gamma phi(x)`, `(rank, n)`."""
        return np.asarray(self.Gamma @ _chebyshev_rows(x, self.Gamma.shape[1]))


def kernel_form(s: float, degree: int) -> KernelForm:
    """Return the Gaussian kernel of bandwidth `s` in Chebyshev form: a DCT in both arguments, and eigenvectors.

    16 degrees are enough for `s >= .5` (1.6e-7), 24 for .25 (1e-6). Extremes are those on a grid of 513 points.
    """
    M = 4 * degree
    x = np.cos(np.pi * (np.arange(M) + 0.5) / M)
    G = scipy.fft.dctn(np.exp(-((x[:, None] - x) ** 2) / (2.0 * s**2)), type=2)[:degree, :degree] / M**2
    G[0] /= 2.0
    G[:, 0] /= 2.0
    eigenvalues, vectors = np.linalg.eigh((G + G.T) / 2.0)
    keep = eigenvalues > 1e-12
    Gamma = np.sqrt(eigenvalues[keep])[:, None] * vectors[:, keep].T
    F = Gamma @ _chebyshev_rows(np.cos(np.linspace(0.0, np.pi, 513)), degree)
    K = F.T @ F
    return KernelForm(s, Gamma, float(np.diag(K).max()), float(K.min()))


def kernel_sensitivity(form: KernelForm, d: int) -> float:
    """Return a bound of `n` times the change of the embedding, `sqrt(k(x, x) + k(x', x') - 2 k(x, x'))` at worst."""
    smallest = form.smallest**d if form.smallest >= 0 else form.smallest * form.largest ** (d - 1)
    return math.sqrt(2.0 * (form.largest**d - smallest))


def kernel_summary(points: Array, form: KernelForm, sigma: float, rng: Rng) -> Array:
    """Return the mean embedding with Gaussian noise: `(rank,) * d` (Hall, Rinaldo and Wasserman, JMLR 2013).

    Args:
        points: `(n, d)`.
        form: Of the kernel in one dimension; that of `d` is the product.
        sigma: Noise over sensitivity, `gaussian_sigma`.
        rng: Of the noise.
    """
    n, d = points.shape
    mean = _blocked_sums(points, form.features) / n
    return np.asarray(mean + (sigma * kernel_sensitivity(form, d) / n) * rng.normal(size=mean.shape))


def kernel_factors(queries: GaussianKernels, form: KernelForm) -> Factors:
    """Return the features of the centres: the answer is `<Gamma phi(y), r>`, with noise of std `sigma Delta / n`."""
    return [form.features(np.ascontiguousarray(y)).T for y in queries.centres.T]


def gaussian_process_answers(points: Array, queries: GaussianKernels, sigma: float, rng: Rng) -> Array:
    """Return the answers of the kernel mechanism at these queries only: a Gaussian process drawn at their centres.

    For many dimensions, where no tensor fits; cubic in the number of queries.
    """
    n, d = points.shape
    s = queries.bandwidth
    Delta = math.sqrt(2.0 * -math.expm1(-4.0 * d / (2.0 * s**2)))
    eigenvalues, vectors = np.linalg.eigh(queries(queries.centres))
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    noise = root @ rng.normal(size=len(root))
    return np.asarray(exact_answers(points, queries) + (sigma * Delta / n) * noise)


# Without polynomials.


def laplace_histogram(points: Array, cells: int, epsilon: float, rng: Rng) -> Array:
    """Return the shares of `cells^d` equal cells of the cube, each with `Lap(2 / (n epsilon))`.

    A replaced point leaves one cell for another: the sensitivity is `2 / n` for any number of cells.
    """
    n, d = points.shape
    index = np.minimum(((points + 1.0) * (cells / 2.0)).astype(np.int64), cells - 1)
    flat = np.ravel_multi_index(tuple(index.T), (cells,) * d)
    counts = np.bincount(flat, minlength=cells**d).reshape((cells,) * d)
    return np.asarray((counts + rng.laplace(scale=2.0 / epsilon, size=counts.shape)) / n)


def histogram_factors(queries: GaussianKernels, cells: int, *, centred: bool = False) -> Factors:
    """Return the averages of the kernels over the cells of each axis, in closed form; or their values at the centres.

    Averages are right for points that are uniform in each cell. Centres smooth once less, and are often nearer.
    """
    edges = np.linspace(-1.0, 1.0, cells + 1)
    y, s = queries.centres[:, :, None], queries.bandwidth
    if centred:
        values = np.exp(-(((edges[1:] + edges[:-1]) / 2.0 - y) ** 2) / (2.0 * s**2))
    else:
        below = scipy.special.erf((edges - y) / (s * math.sqrt(2.0)))
        values = s * math.sqrt(math.pi / 2.0) * np.diff(below, axis=2) / (2.0 / cells)
    return [values[:, j] for j in range(values.shape[1])]


def noisy_answers(points: Array, queries: GaussianKernels, sigma: float, rng: Rng) -> Array:
    """Return the answers of queries with values in `[0, 1]`, each with Gaussian noise: sensitivity `sqrt(q) / n`."""
    q = len(queries.centres)
    return np.asarray(exact_answers(points, queries) + sigma * math.sqrt(q) / len(points) * rng.normal(size=q))


def uniform_guess(queries: GaussianKernels) -> Array:
    """Return the queries' means over the whole cube: what is said without looking at the data."""
    return np.asarray(np.prod(np.hstack(histogram_factors(queries, 1)), axis=1))
