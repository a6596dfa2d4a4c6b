"""Plain numpy and scipy for smooth queries: monomials, sums, sensitivities by search, coefficients, projections.

Points are on the cube `[-1, 1]^d`. An index set is an integer array `(R, d)`; its monomials are
`phi_m(x) = prod_j cos(m_j arccos x_j)`. Nothing is shared with the package, nothing is fast, nothing is private.
"""

import itertools

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.optimize

# Index sets.


def tensor_set(d, t):
    """All `m` with `max m < t`, the last coordinate running first."""
    return np.array(list(itertools.product(range(t), repeat=d)))


def total_set(d, t):
    """All `m` with `sum m < t`."""
    m = tensor_set(d, t)
    return m[m.sum(axis=1) < t]


def graded_set(d, size):
    """The first `size` monomials by degree, then lexicographically: what a breadth-first search from 1 visits."""
    found = []
    for degree in itertools.count():
        for axes in itertools.combinations_with_replacement(range(d), degree):
            found.append(np.bincount(axes, minlength=d) if axes else np.zeros(d, int))
            if len(found) == size:
                return np.array(found)


# Monomials and sums.


def monomials(points, index_set):
    """`phi_m(x)` of points `(n, d)`: `(n, R)`."""
    theta = np.arccos(points)
    return np.prod(np.cos(theta[:, None, :] * index_set[None]), axis=2)


def exact_sums(points, index_set):
    """`sum_x phi_m(x)`: `(R,)`."""
    return monomials(points, index_set).sum(axis=0)


def _with_jacobian(theta, index_set):
    """`phi_m` and its derivatives by the angles at one point: `(R,)` and `(R, d)`."""
    C, S = np.cos(index_set * theta), -index_set * np.sin(index_set * theta)
    d = len(theta)
    others = [np.prod(np.delete(C, j, axis=1), axis=1) for j in range(d)]
    return C.prod(axis=1), np.stack([S[:, j] * others[j] for j in range(d)], axis=1)


def _starts(rng, count, size):
    """Angles to start from: anywhere, or near ends and middles of the axes."""
    for k in range(count):
        corner = rng.choice([0.0, np.pi / 2, np.pi], size) + 0.2 * rng.normal(size=size)
        yield rng.uniform(0, np.pi, size) if k % 2 else corner


def _pairs(rng, count, d):
    """Two points to start from: also near two corners, and near one corner with one coordinate moved."""
    for k, z in enumerate(_starts(rng, count, 2 * d)):
        if k % 3:
            z[:] = rng.choice([0.0, np.pi], 2 * d) + 0.05 * rng.normal(size=2 * d)
        if k % 3 == 1:
            z[d:] = z[:d]
            z[d + rng.integers(d)] = rng.uniform(0, np.pi)
        yield z


def _largest(objective, starts):
    """The largest local maximum of `objective`, which returns values and gradients, and where it is."""

    def negative(z):
        value, gradient = objective(z)
        return -value, -gradient

    runs = [scipy.optimize.minimize(negative, z, jac=True, method="L-BFGS-B") for z in starts]
    best = min(runs, key=lambda run: run.fun)
    return -best.fun, best.x


# Sensitivities of the sums.


def searched_sensitivity(index_set, norm, *, weights=None, relation="replace", starts=60, seed=1):
    """`max ||w (phi(x) - phi(x'))||_norm`, or of `w phi(x)` alone for add/remove, by a search from many starts."""
    index_set = np.asarray(index_set)
    R, d = index_set.shape
    w = np.ones(R) if weights is None else np.asarray(weights, float)

    def size(v, J):
        return (np.abs(v).sum(), np.sign(v) @ J) if norm == 1 else (v @ v, 2 * v @ J)

    def replace(z):
        (a, Ja), (b, Jb) = (_with_jacobian(part, index_set) for part in (z[:d], z[d:]))
        return size(w * (a - b), w[:, None] * np.hstack([Ja, -Jb]))

    def add(z):
        a, Ja = _with_jacobian(z, index_set)
        return size(w * a, w[:, None] * Ja)

    objective, begin = (replace, _pairs) if relation == "replace" else (add, _starts)
    value, _ = _largest(objective, begin(np.random.default_rng(seed), starts, d))
    return value if norm == 1 else np.sqrt(value)


def l1_formula(index_set, weights=None, *, starts=60, seed=1):
    """`max_u sum_m w_m (1 - phi_m(u))`, the L1 sensitivity of replacing one point, and the point `u`.

    `phi_m(a)` is the average of `cos <s o m, a>` over signs `s`, and
    `|cos a - cos b| <= 1 - cos(a + b)/2 - cos(a - b)/2`; so no pair does better than `u` and the corner `(1, ..., 1)`.
    """
    index_set = np.asarray(index_set)
    w = np.ones(len(index_set)) if weights is None else np.asarray(weights, float)

    def objective(z):
        v, J = _with_jacobian(z, index_set)
        return w @ (1 - v), -w @ J

    value, theta = _largest(objective, _starts(np.random.default_rng(seed), starts, index_set.shape[1]))
    return value, np.cos(theta)


def certified_l1(t, d, weights):
    """An upper bound of the same for tensor weights `(t,) * d`: a grid of `8 (t - 1)` intervals an axis, and Bernstein.

    A cosine polynomial of degree `N` is at most its largest value on `M` equal intervals over `cos(pi N / (2 M))`.
    """
    N = t - 1
    C = np.cos(np.outer(np.arange(8 * N + 1) * np.pi / (8 * N), np.arange(t)))
    values = np.asarray(weights, float)
    for _ in range(d):
        values = np.tensordot(values, C, axes=([0], [1]))
    return (np.sum(weights) - values).max() / np.cos(np.pi / 16) ** d


def kappa(t):
    """`-min_x sum_{m < t} cos(m x)`, and the minimising angle."""

    def kernel(x):
        return float(np.cos(np.arange(t) * x).sum())

    grid = np.linspace(0, np.pi, 16 * t + 1)
    best = grid[np.argmin([kernel(x) for x in grid])]
    step = grid[1]
    found = scipy.optimize.minimize_scalar(
        kernel, bounds=(max(best - step, 0), min(best + step, np.pi)), method="bounded", options={"xatol": 1e-12}
    )
    # The minimum may be at the end of the interval, where a bounded search only comes near.
    return max((-kernel(x), x) for x in (best, found.x))


# Coefficients of a function: f = sum_m c_m phi_m.


def coefficients_by_dct(f, t, d=1, points=None):
    """Coefficients `(t,) * d` by a DCT-II of `f` on `points >= t` Chebyshev points an axis; `f` takes `(n, d)`."""
    M = 2 * t if points is None else points
    axis = np.cos(np.pi * (np.arange(M) + 0.5) / M)
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1)
    c = scipy.fft.dctn(f(grid.reshape(-1, d)).reshape((M,) * d), type=2) / M**d
    for j in range(d):
        np.moveaxis(c, j, 0)[0] /= 2
    return c[(slice(t),) * d]


def coefficients_by_quadrature(f, t, breaks=()):
    """One-dimensional coefficients by adaptive quadrature of `f(cos x) cos(m x)`; `breaks` are kinks of `f`."""

    def coefficient(m):
        def integrand(x):
            return float(f(np.array([[np.cos(x)]]))[0]) * np.cos(m * x)

        points = np.arccos(breaks) if len(breaks) else None
        integral, _ = scipy.integrate.quad(integrand, 0, np.pi, points=points, limit=400, epsabs=1e-13)
        return integral * (1 if m == 0 else 2) / np.pi

    return np.array([coefficient(m) for m in range(t)])


def kernel_matrix(kernel, t, points=None):
    """The matrix `G` of a kernel of two numbers: `k(x, y) = sum G_ij T_i(x) T_j(y)`, symmetric `(t, t)`."""
    G = coefficients_by_dct(lambda z: kernel(z[:, 0], z[:, 1]), t, d=2, points=4 * t if points is None else points)
    return (G + G.T) / 2


def gaussian_kernel(s):
    return lambda x, y: np.exp(-((x - y) ** 2) / (2 * s * s))


# Damping factors of degree 0 .. t - 1.


def truncated(t):
    return np.ones(t)


def vallee_poussin(t):
    """`1` to degree `t/2`, then linearly to `0` at degree `t`."""
    return np.minimum(1.0, 2.0 - 2.0 * np.arange(t) / t)


def jackson(t):
    """The classical Jackson kernel as in the kernel polynomial method (Weiße et al., 2006, eq. 71) with `N = t`."""
    m, q = np.arange(t), np.pi / (t + 1)
    return ((t - m + 1) * np.cos(q * m) + np.sin(q * m) / np.tan(q)) / (t + 1)


# Answers and projections.


def tensor_answer(coefficients, summary):
    """`sum_m c_m S_m` term by term, for tensors of one shape."""
    return sum(coefficients[m] * summary[m] for m in np.ndindex(*coefficients.shape))


def nearest_measure(A, y, weights=None):
    """The `p >= 0` with `sum p = 1` of least `sum_i w_i (A p - y)_i^2`: non-negative least squares with a stiff row.

    The row finds the support; on the support the equations of Lagrange are solved exactly.
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    B, z = np.sqrt(w)[:, None] * A, np.sqrt(w) * y
    stiff = 1e4 * max(1.0, np.abs(B).max())
    p, _ = scipy.optimize.nnls(np.vstack([B, np.full(A.shape[1], stiff)]), np.append(z, stiff))
    support = np.flatnonzero(p > 0)
    if np.linalg.matrix_rank(np.vstack([B[:, support], np.ones(len(support))])) < len(support):
        return p / p.sum()
    k = len(support)
    K = np.block([[B[:, support].T @ B[:, support], np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    solved = np.linalg.solve(K, np.append(B[:, support].T @ z, 1.0))[:k]
    if (solved < 0).any():
        return p / p.sum()
    p = np.zeros(A.shape[1])
    p[support] = solved
    return p
