"""Workloads of the reference tables, and a verifier of certificates that shares no code with the package."""

import itertools

import numpy as np

import sordino as so


def prefix(n):
    return np.tril(np.ones((n, n)))


def ranges(n):
    rows = [(i, j) for i in range(n) for j in range(i, n)]
    return np.array([[float(i <= k <= j) for k in range(n)] for i, j in rows])


def signs(m, n, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(m, n))


def marginals(ways, attributes=8):
    sets = list(itertools.combinations(range(attributes), ways))
    return so.Marginals(levels=[2] * attributes, sets=sets)


def dense(workload):
    """The matrix of the queries, column by column through the public identity release of unit vectors."""
    cells = int(np.prod(workload.input_shape))
    if isinstance(workload, so.Matrix):
        return np.asarray(workload.A)
    return np.stack([workload.core.row(t) for t in range(workload.core.answers_len)]).reshape(-1, cells)


def nuclear(matrix):
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def check_mean(A, factorization, weights=None):
    """Verify a mean-error certificate: lower bound by the weights, feasible error by the strategy."""
    omega = np.ones(len(A)) if weights is None else np.asarray(weights, float)
    root = np.sqrt(omega / omega.sum())[:, None]
    v = factorization.certificate.cell_weights[0]
    assert (v >= 0).all()
    assert abs(v.sum() - 1) < 1e-9
    lower = nuclear(root * A * np.sqrt(v / v.sum()))
    B = factorization.factors[0]
    L = A @ np.linalg.pinv(B)
    np.testing.assert_allclose(L @ B, A, atol=1e-8 * np.abs(A).max())
    upper = np.linalg.norm(root * L) * np.sqrt((B**2).sum(axis=0).max())
    assert factorization.certificate.lower <= lower * (1 + 1e-9)
    assert factorization.certificate.lower >= lower * (1 - 1e-6)
    assert upper >= lower * (1 - 1e-9)
    assert upper / lower - 1 <= factorization.gap * (1 + 1e-3) + 1e-9
    return lower, upper


def check_max(A, factorization):
    """The same for the worst query."""
    u, v = factorization.certificate.query_weights[0], factorization.certificate.cell_weights[0]
    assert min(u.min(), v.min()) >= 0
    lower = nuclear(np.sqrt(u / u.sum())[:, None] * A * np.sqrt(v / v.sum()))
    B = factorization.factors[0]
    L = A @ np.linalg.pinv(B)
    np.testing.assert_allclose(L @ B, A, atol=1e-8 * np.abs(A).max())
    upper = np.sqrt((L**2).sum(axis=1).max() * (B**2).sum(axis=0).max())
    assert factorization.certificate.lower <= lower * (1 + 1e-9)
    assert upper >= lower * (1 - 1e-9)
    assert upper / lower - 1 <= factorization.gap * (1 + 1e-3) + 1e-9
    return lower, upper
