"""The searches of `geometry.py` in numpy and scipy, as a careful user would write them: the same formulas, LAPACK.

And the search for the least mean error in plain Python, by its plain iteration.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

__all__ = [
    "KNormSampler",
    "accelerated",
    "duality_gap",
    "least_volume",
    "mean_error",
    "nearest_by_lsq",
    "nearest_by_nnls",
    "p_identity",
    "plain_mean_error",
    "wolfe_atwood",
    "worst_error",
]

Array = NDArray[np.float64]
_CLIP, _FLOOR, _MEMORY, _RIDGE, _MONOTONE = 2.0, -200.0, 8, 1e-10, 1e-12
_PACE, _STALL, _LIFT = (15, 0.7), (50, 0.999), 0.1


@dataclass(frozen=True)
class Point:
    """Values of a program at one point: objective, bounds and multiplicative gains."""

    objective: float
    lower: float
    upper: float
    gains: Array


@dataclass(frozen=True)
class Found:
    """What a search found."""

    lower: float
    upper: float
    iterations: int
    weights: Array
    proof: Array
    """Weights of the lower bound."""

    @property
    def gap(self) -> float:
        """Certified."""
        return self.upper / self.lower - 1.0


Program = Callable[[Array, bool], Point | None]
"""From weights, and whether to be careful, to a point; None if a factorisation failed."""
Prune = Callable[[Point], NDArray[np.intp] | None]
"""From a point to the weights to keep, None for all."""


class _Pace:
    """Tells whether the gap still shrinks by a factor within so many iterations."""

    def __init__(self, rule: tuple[int, float]) -> None:
        self._patience, self._factor = rule
        self._gap, self._since = np.inf, 0

    def slow(self, iteration: int, gap: float) -> bool:
        shrunk = gap <= self._factor * self._gap
        slow = not shrunk and iteration >= self._since + self._patience
        if shrunk or slow:
            self._gap, self._since = gap, iteration
        return slow


def accelerated(  # noqa: PLR0912, PLR0915 - one loop, as in accelerated.rs
    program: Program, sizes: list[int], gap: float, prune: Prune | None = None
) -> Found:
    """Maximise over weights on simplices: multiplicative updates under Anderson acceleration, with our safeguards.

    Mixed weights, undone extrapolations, clipped steps, lifted weights, careful arithmetic when stuck: as
    `accelerated.rs` has them. `prune` serves one simplex only.
    """

    def simplices(x: Array) -> list[Array]:
        return np.split(x, np.cumsum(sizes)[:-1])

    def normalised(logs: Array) -> Array:
        return np.concatenate([np.maximum(x - scipy.special.logsumexp(x), _FLOOR) for x in simplices(logs)])

    def residual(gains: Array, p: Array) -> Array:
        pairs = zip(simplices(gains), simplices(p), strict=True)
        return np.concatenate([np.maximum(np.log(g / (g @ q)), _FLOOR) for g, q in pairs])

    uniform = np.concatenate([np.full(k, 1.0 / k) for k in sizes])
    logs, mixing = np.log(uniform), gap / 4.0
    images: list[Array] = []
    turns: list[Array] = []
    last: tuple[Array, Array, float] | None = None
    step, careful, undone, lift = "plain", False, False, _LIFT
    pace, stall = _Pace(_PACE), _Pace(_STALL)
    lower, upper, best, proof = -np.inf, np.inf, uniform, uniform
    iteration = 0
    for iteration in range(1, 3001):
        p = np.exp(logs)
        mixed = (1.0 - mixing) * p + mixing * uniform
        point = program(mixed, careful)
        starved = False
        if point is not None:
            if point.lower > lower:
                lower, proof = point.lower, mixed
            if point.upper < upper:
                upper, best = point.upper, mixed
            certified = upper / lower - 1.0
            if certified <= gap:
                break
            starved = pace.slow(iteration, certified)
            careful |= stall.slow(iteration, certified)
        fell = point is None or (last is not None and point.objective < last[2] - _MONOTONE * abs(last[2]))
        if point is not None and (step == "plain" or not fell):
            keep = prune(point) if prune is not None and iteration % 10 == 0 else None
            if keep is not None:
                sizes = [len(keep)]
                uniform, logs = np.full(len(keep), 1.0 / len(keep)), normalised(logs[keep])
                logs = normalised(logs + np.clip(residual(point.gains[keep], np.exp(logs)), -_CLIP, _CLIP))
                images, turns, last, step = [], [], None, "plain"
                continue
            f = residual(point.gains, p)
            if last is not None:
                turns = [*turns, f - last[1]][-_MEMORY:]
                images = [*images, logs - last[0] + f - last[1]][-_MEMORY:]
            undone &= step == "plain"
            if step == "lifted":
                lift = min(lift * 3.0, _LIFT)
            raised = np.where(f > 0.0, np.maximum(logs, np.log(lift * uniform)), logs) if starved else logs
            last = (logs, f, point.objective)
            if starved and not np.array_equal(raised, logs):
                images, turns, step, logs = [], [], "lifted", normalised(raised)
                continue
            move = f
            if turns:
                D = np.array(turns)
                H = (D * p) @ D.T
                H[np.diag_indices_from(H)] += _RIDGE * np.trace(H) / len(H)
                move = f - np.linalg.solve(H, (D * p) @ f) @ np.array(images)
            step = "extrapolated" if turns else "plain"
            logs = normalised(logs + np.clip(move, -_CLIP, _CLIP))
        elif step == "plain":
            if careful:
                break
            careful = True
        else:
            assert last is not None
            careful |= undone
            if step == "lifted":
                lift /= 10.0
            images, turns, undone, step = [], [], True, "plain"
            logs = normalised(last[0] + np.clip(last[1], -_CLIP, _CLIP))
    return Found(lower, upper, iteration, best, proof)


def _spectrum(R: Array, v: Array, careful: bool) -> tuple[Array, Array] | None:
    """Return left vectors and singular values of `R diag(sqrt v)`."""
    if not careful:
        w, E = np.linalg.eigh((R * v) @ R.T)
        if w[0] > 1e-10 * w[-1]:
            return E, np.sqrt(w)
    E, s, _ = np.linalg.svd(R * np.sqrt(v), full_matrices=False)
    return (E, s) if s.min() > 0.0 else None


def mean_error(A: Array, gap: float) -> Found:
    """Return the least root mean squared error of all Gaussian strategies; A of full row rank, columns distinct."""

    def program(v: Array, careful: bool) -> Point | None:
        found = _spectrum(A, v, careful)
        if found is None:
            return None
        E, s = found
        gains = np.square(E.T @ A).T @ (1.0 / s)
        return Point(s.sum(), s.sum(), float(np.sqrt(s.sum() * gains.max())), gains)

    found = accelerated(program, [A.shape[1]], gap)
    E, s, _ = np.linalg.svd(A * np.sqrt(found.weights), full_matrices=False)
    B, L = (E.T @ A) / np.sqrt(s)[:, None], E * np.sqrt(s)
    scale = 1.0 / np.sqrt(len(A))
    return _delivered(A, (B, L), found, lower=scale * _nuclear(A * np.sqrt(found.proof)), scale=scale)


def plain_mean_error(A: list[list[float]], gap: float) -> tuple[float, float]:
    """Return bounds of the least root mean squared error in plain Python: multiplicative updates, not accelerated.

    Columns are what is changed by one unit: there may be more than there are cells. Rows are independent.
    """
    n = len(A[0])
    weights = [1.0 / n] * n
    rows = [[a / math.sqrt(n) for a in row] for row in A]
    while True:
        # Rows stay nearly orthogonal from one iteration to the next.
        _orthogonalise(rows)
        norms = [math.sqrt(sum(a * a for a in row)) for row in rows]
        lower = sum(norms)
        squares = ([a * a / norm for a in row] for row, norm in zip(rows, norms, strict=True))
        gains = [sum(column) / weight for column, weight in zip(zip(*squares, strict=True), weights, strict=True)]
        upper = math.sqrt(lower * max(gains))
        if upper <= (1.0 + gap) * lower:
            return lower / math.sqrt(len(A)), upper / math.sqrt(len(A))
        weights = [weight * gain / lower for weight, gain in zip(weights, gains, strict=True)]
        rows = [[a * math.sqrt(gain / lower) for a, gain in zip(row, gains, strict=True)] for row in rows]


def _orthogonalise(rows: list[list[float]]) -> None:
    """Turn pairs of rows until all are orthogonal (Jacobi's method, one-sided): their norms are the singular values."""
    turned = True
    while turned:
        turned = False
        for i in range(1, len(rows)):
            for j in range(i):
                p, q = rows[i], rows[j]
                a, b, c = (sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((p, p), (q, q), (p, q)))
                if abs(c) > 1e-9 * math.sqrt(a * b):
                    turned = True
                    angle = 0.5 * math.atan2(2.0 * c, a - b)
                    cos, sin = math.cos(angle), math.sin(angle)
                    rows[i] = [cos * x + sin * y for x, y in zip(p, q, strict=True)]
                    rows[j] = [cos * y - sin * x for x, y in zip(p, q, strict=True)]


def worst_error(A: Array, gap: float) -> Found:
    """Return `gamma_2`, the least worst-query error; A square and invertible."""
    m, n = A.shape

    def program(weights: Array, careful: bool) -> Point | None:
        roots = np.sqrt(weights[:m])
        R = A * roots[:, None]
        found = _spectrum(R, weights[m:], careful)
        if found is None:
            return None
        E, s = found
        rows = np.square(E) @ s / weights[:m]
        columns = np.square(E.T @ R).T @ (1.0 / s)
        upper = float(np.sqrt(rows.max() * columns.max()))
        return Point(s.sum(), s.sum(), upper, np.concatenate([rows, columns]))

    found = accelerated(program, [m, n], gap)
    u, v = np.sqrt(found.weights[:m]), np.sqrt(found.weights[m:])
    E, s, _ = np.linalg.svd(u[:, None] * A * v, full_matrices=False)
    B, L = (E.T @ (u[:, None] * A)) / np.sqrt(s)[:, None], E * np.sqrt(s) / u[:, None]
    roots = np.sqrt(found.proof)
    return _delivered(A, (B, L), found, lower=_nuclear(roots[:m, None] * A * roots[m:]), scale=1.0)


def _nuclear(A: Array) -> float:
    return float(np.linalg.norm(A, "nuc"))


def _delivered(A: Array, factors: tuple[Array, Array], found: Found, *, lower: float, scale: float) -> Found:
    """Do what is done once: the strategy of sensitivity 1 and its decoding, checked; the bound by singular values."""
    B, L = factors
    norm = np.linalg.norm(B, axis=0).max()
    B, L = B / norm, L * norm
    if np.abs(L @ B - A).max() > 1e-9 * np.abs(A).max():
        raise ArithmeticError("the factors do not multiply to the queries")
    return Found(lower, found.upper * scale, found.iterations, found.weights, found.proof)


def least_volume(A: Array, gap: float) -> Found:
    """Return weights of the minimum enclosing ellipsoid, with columns deleted as ours (Harman & Pronzato 2007)."""
    r = len(A)
    kept = A

    def program(u: Array, _: bool) -> Point | None:
        try:
            C = np.linalg.cholesky((kept * u) @ kept.T)
        except np.linalg.LinAlgError:
            return None
        # The inverse of a small factor and a product are faster than a triangular solve with many columns.
        inverse = scipy.linalg.solve_triangular(C, np.eye(r), lower=True)
        gains = np.square(inverse @ kept).sum(axis=0)
        upper = gains.max()
        if kept.shape[1] < A.shape[1] and upper <= r * (1.0 + gap):
            upper = np.square(inverse @ A).sum(axis=0).max()
        return Point(2.0 * np.log(np.diag(C)).sum(), float(r), float(upper), gains)

    def prune(point: Point) -> NDArray[np.intp] | None:
        nonlocal kept
        excess = max(point.gains.max() - r, 0.0)
        least = 1.0 + excess / 2.0 - np.sqrt(excess * (4.0 + excess - 4.0 / r)) / 2.0
        keep = np.flatnonzero(point.gains >= r * least * (1.0 - 1e-9))
        if len(keep) == kept.shape[1]:
            return None
        kept = kept[:, keep]
        return keep

    return accelerated(program, [A.shape[1]], gap, prune)


def wolfe_atwood(A: Array, gap: float, patience: float) -> tuple[float, int]:
    """Run Khachiyan's ascent with away steps, rank-one updates, Kumar and Yildirim's start; return gap and steps."""
    r, n = A.shape
    Q, chosen = np.eye(r), []
    for i in range(r):
        direction = Q[:, i]
        j = int(np.argmax(np.abs(direction @ A)))
        chosen.append(j)
        residual = A[:, j] - Q[:, :i] @ (Q[:, :i].T @ A[:, j])
        Q = np.linalg.qr(np.column_stack([Q[:, :i], residual, np.eye(r)]))[0]
    u = np.zeros(n)
    u[chosen] = 1.0 / len(chosen)
    end, steps = time.perf_counter() + patience, 0
    while True:
        inverse = np.linalg.inv((A * u) @ A.T)
        k = np.einsum("ij,ij->j", A, inverse @ A)
        for _ in range(20 * r):
            top = int(np.argmax(k))
            support = np.flatnonzero(u)
            bottom = support[np.argmin(k[support])]
            up, down = k[top] / r - 1.0, 1.0 - k[bottom] / r
            if up <= gap or time.perf_counter() > end:
                exact = np.einsum("ij,ij->j", A, np.linalg.inv((A * u) @ A.T) @ A).max() / r - 1.0
                return float(exact), steps
            c = top if up >= down else bottom
            share = (k[c] - r) / (r * (k[c] - 1.0))
            if u[c] > 0.0:
                share = max(share, -u[c] / (1.0 - u[c]))
            u *= 1.0 - share
            u[c] = max(u[c] + share, 0.0)
            image = inverse @ A[:, c]
            ratio = share / (1.0 - share)
            factor = ratio / (1.0 + ratio * k[c])
            k = (k - factor * np.square(image @ A)) / (1.0 - share)
            inverse = (inverse - factor * np.outer(image, image)) / (1.0 - share)
            steps += 1


def duality_gap(C: Array, t: Array, bound: float, x: Array) -> float:
    """Return the gap of `½‖C x - t‖²` over `{x >= 0, sum <= bound}`."""
    slopes = C.T @ (C @ x - t)
    return float(slopes @ x - bound * min(0.0, float(slopes.min())))


def _hull(C: Array, t: Array, bound: float) -> tuple[Array, Array]:
    """Return the nonnegative least squares problem whose solution, divided by its sum, is the projection.

    The point of a polytope nearest to 0 is `P w`, `sum w = 1`; `min ‖P w‖² + (1 - sum w)²` over `w >= 0` has the
    same direction (Lawson & Hanson 1974, chapter 23). The vertices are those of the scaled simplex, the origin last.
    """
    P = np.column_stack([bound * C, np.zeros(len(t))]) - t[:, None]
    P /= np.linalg.norm(t)
    return np.vstack([P, np.ones(P.shape[1])]), np.concatenate([np.zeros(len(t)), [1.0]])


def nearest_by_nnls(C: Array, t: Array, bound: float) -> Array:
    """Return the projection by `scipy.optimize.nnls`."""
    w, _ = scipy.optimize.nnls(*_hull(C, t, bound), maxiter=100 * C.shape[1])
    return np.asarray(bound * w[:-1] / w.sum())


def nearest_by_lsq(C: Array, t: Array, bound: float, steps: int, **options: Any) -> Array:
    """Return the projection by `scipy.optimize.lsq_linear`, by so many iterations."""
    found = scipy.optimize.lsq_linear(*_hull(C, t, bound), bounds=(0.0, np.inf), max_iter=steps, **options)
    w = np.maximum(found.x, 0.0)
    return np.asarray(bound * w[:-1] / w.sum())


def p_identity(A: Array, sums: int, starts: int = 3) -> float:
    """Return the least total squared error of p-identity strategies by L-BFGS-B, Laplace noise at epsilon = 1.

    Source: McKenna, Miklau, Hay and Machanavajjhala 2018, OPT_0.
    """
    n = A.shape[1]
    W = A.T @ A

    def value(flat: Array) -> tuple[float, Array]:
        T = flat.reshape(sums, n)
        s = 1.0 + T.sum(axis=0)
        Z = np.linalg.solve(np.eye(sums) + T @ T.T, T)
        V = (Z * s) @ W * s
        shared = np.einsum("ij,ij->j", T, V)
        total = s**2 @ np.diag(W) - shared.sum()
        slope = 2.0 * (np.diag(W) * s - shared / s - V + V @ T.T @ Z)
        return 2.0 * total, 2.0 * slope.ravel()

    rng, best = np.random.default_rng(1), np.inf
    for _ in range(starts):
        found = scipy.optimize.minimize(
            value, rng.random(sums * n), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (sums * n),
            options={"maxiter": 5000, "maxfun": 10000},
        )  # fmt: skip
        best = min(best, float(found.fun))
    return best


class KNormSampler:
    """Exact K-norm noise by rejection from the minimum enclosing ellipsoid, in floating point: not private."""

    def __init__(self, A: Array) -> None:
        """Round the body by its ellipsoid."""
        self._r = len(A)
        u = least_volume(A, 1e-4).weights
        C = np.linalg.cholesky((A * u) @ A.T)
        G = scipy.linalg.solve_triangular(C, A, lower=True)
        radius = np.linalg.norm(G, axis=0).max()
        self._root, self._G = C * radius, G / radius
        self._rng = np.random.default_rng(1)
        self._both = np.hstack([self._G, -self._G])

    def _inside(self, z: Array, most: float) -> bool:
        theta = z.copy()
        for _ in range(30):
            images = theta @ self._G
            j = int(np.argmax(np.abs(images)))
            if theta @ z > most * abs(images[j]):
                return False
            g = np.sign(images[j]) * self._G[:, j]
            g = g - (g @ z) / (z @ z) * z
            theta -= 1.3 * (abs(images[j]) - (z @ z) / most) / (g @ g) * g
        found = scipy.optimize.linprog(np.ones(self._both.shape[1]), A_eq=self._both, b_eq=z, method="highs")
        self._gauge = float(found.fun)
        return self._gauge <= most

    def draw(self, epsilon: float = 1.0) -> Array:
        """Return one sample: attempts in batches, refused at sight by the point itself as a normal."""
        r, rng = self._r, self._rng
        while True:
            z = rng.normal(size=(4096, r))
            z /= np.linalg.norm(z, axis=1)[:, None]
            most = rng.random(4096) ** (-1.0 / r)
            for i in np.flatnonzero(np.abs(z @ self._G).max(axis=1) * most >= 1.0):
                if self._inside(z[i], most[i]):
                    return np.asarray(self._root @ z[i] * (rng.gamma(r, 1.0 / epsilon) / self._gauge))


def nearest_table(spectrum: Array, y: Array, bound: float, steps: int) -> Array:
    """Return the table of cells that are not negative and sum to at most a bound, nearest to a circular convolution of it.

    FISTA by real transforms, the projection by sorting: what one writes in numpy.
    """
    cells, curvature = len(y), float(np.max(np.abs(spectrum)) ** 2)
    target = np.fft.irfft(np.fft.rfft(y) * np.conj(spectrum), cells)
    x = before = np.full(cells, bound / cells)
    momentum = 1.0
    for _ in range(steps):
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = x + (momentum - 1.0) / following * (x - before)
        slopes = np.fft.irfft(np.fft.rfft(ahead) * np.abs(spectrum) ** 2, cells) - target
        moved = ahead - slopes / curvature
        before, x = x, np.maximum(moved, 0.0)
        if x.sum() > bound:
            falling = np.sort(moved)[::-1]
            thresholds = (np.cumsum(falling) - bound) / np.arange(1, cells + 1)
            x = np.maximum(moved - thresholds[np.flatnonzero(falling > thresholds)[-1]], 0.0)
        momentum = 1.0 if slopes @ (x - before) > 0.0 else following
    return x
