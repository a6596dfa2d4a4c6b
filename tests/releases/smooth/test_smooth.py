"""Answers to smooth queries: right on average, as noisy as they say, the same by every road."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import smooth_oracles as oracles
import sordino as so
from sordino.testing import deterministic_noise
from sordino.workloads.smooth.chebyshev import jackson_bound

PURE, APPROX = so.PureDP(epsilon=1.0), so.ApproxDP(epsilon=1.0, delta=1e-6)
NOISELESS = so.GaussianDP(mu=1e6)
"""So little noise that answers are the exact averages, up to what is cut off."""
BOUNDS = [(10.0, 20.0), (-3.0, 1.0), (0.0, 1e-3)]
KERNELS = so.smooth.GaussianKernels([4.0, 1.6])
MECHANISMS = ["kernel-gaussian", "chebyshev-gaussian", "chebyshev-laplace", "weighted-gaussian", "weighted-laplace"]
HISTOGRAMS = ["histogram-laplace", "histogram-gaussian"]
PUBLIC = [so.ReplaceOne(), so.AddRemove()]

pytestmark = pytest.mark.usefixtures("known_noise")


def key(number):
    return number.to_bytes(32, "little")


def points(n, d=2, seed=0):
    """In data units, not uniform, all inside."""
    low, high = np.array(BOUNDS[:d]).T
    return low + (high - low) * np.random.default_rng(seed).beta(2, 3, (n, d))


def made(n=500, d=2, mechanism="weighted-gaussian", unit=None, privacy=None, query_class=None, **options):
    kernels = so.smooth.GaussianKernels([4.0, 1.6, 4e-4][:d]) if query_class is None else query_class
    workload = so.smooth.SmoothQueries(d, points=n, bounds=BOUNDS[:d], query_class=kernels, **options)
    own = PURE if mechanism.endswith("laplace") else APPROX
    return so.plan(workload, privacy or own, unit=unit or so.ReplaceOne(), mechanism=mechanism)


def noiseless(n=300, d=2, mechanism="weighted-gaussian", unit=None, seed=0, **options):
    """A plan for nearly no privacy, its points, and a release of them."""
    options.setdefault("degree", 40 if d == 1 else 24 if d == 2 else 12)
    if mechanism == "kernel-gaussian":
        options["degree"] = "auto"
    plan = made(n, d, mechanism, unit, NOISELESS, **options)
    x = points(n, d, seed)
    return plan, x, plan.release(x)


def naive(queries, x):
    """Averages of kernel queries by their definition."""
    apart = (x[:, None, None, :] - queries.centres) / np.broadcast_to(queries.kernels.bandwidth, x.shape[1:])
    return (np.exp(-0.5 * (apart**2).sum(axis=-1)) * queries.weights).sum(axis=-1).mean(axis=0)


# Statistics of releases.


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("unit", [so.ReplaceOne(), so.AddRemove(), so.UserLevel(2)])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, *HISTOGRAMS])
def test_answers_are_unbiased_and_as_noisy_as_they_say(mechanism, unit):
    """400 known keys; each of three tests raises a false alarm once in 10^6 (and once, as keys are fixed)."""
    plan = made(2000, mechanism=mechanism, unit=unit, degree="auto" if mechanism.startswith("kernel") else 8)
    x = points(2000)
    sums = plan.sums(x)
    queries = KERNELS.at([[12.0, -1.0], [17.0, 0.0], [14.0, -2.5]])
    # What the mechanism answers without noise: cut off as it is, or by cells.
    exact = made(
        2000, mechanism=plan.mechanism.replace("laplace", "gaussian"), privacy=NOISELESS, degree=plan.workload.degree
    )
    expected = naive(queries, x) if mechanism.startswith("kernel") else exact.release(x).query(queries).values
    answers = []
    for number in range(400):
        with deterministic_noise(key(number + 1)):
            answers.append(plan.release(sums).query(queries))
    residuals = np.array([(a.values - expected) / a.stderr for a in answers])
    for z in residuals.T:
        assert abs(z.mean()) < 4.9 / math.sqrt(len(z))
        kurtosis = 6.0 if "laplace" in mechanism else 3.0
        assert abs((z**2).mean() - 1) < 4.9 * math.sqrt((kurtosis - 1) / len(z)) + 0.02
        if "gaussian" in mechanism:
            assert scipy.stats.kstest(z, "norm").pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["kernel-gaussian", "weighted-laplace", "histogram-gaussian"])
def test_the_private_number_of_points(mechanism):
    """Measured without bias, with the stated deviation; averages use it, and their deviation counts it."""
    plan = made(900, mechanism=mechanism, unit=so.AddRemove(), degree="auto" if mechanism.startswith("kernel") else 6)
    sums = plan.sums(points(700))
    found = []
    for number in range(400):
        with deterministic_noise(key(number + 1)):
            found.append(plan.release(sums))
    z = np.array([(r.points - 700) / r.stderr_of_points for r in found])
    assert abs(z.mean()) < 4.9 / 20
    assert abs((z**2).mean() - 1) < 4.9 * math.sqrt(5 / 400)
    # The constant query is exactly 1, whatever the noise: numerator and denominator are the same number.
    if mechanism != "kernel-gaussian":
        ones = found[0].query(lambda x: np.ones(len(x)))
        assert ones.values == pytest.approx(1) and ones.stderr == pytest.approx(0, abs=1e-6)


def test_public_numbers_of_points_are_not_measured():
    for mechanism in [*MECHANISMS, *HISTOGRAMS]:
        plan = made(500, mechanism=mechanism, degree="auto")
        release = plan.release(points(500))
        assert release.points == 500 and release.stderr_of_points == 0
    assert made(500).release(points(500)).query(lambda x: np.ones(len(x))).stderr < 1e-12


def test_no_points_at_all_answer_with_noise():
    """An estimated number below 1 counts as 1: no division by zero, no negative number."""
    plan = made(500, unit=so.AddRemove(), degree=4)
    for number in range(20):
        with deterministic_noise(key(number + 1)):
            release = plan.release(np.empty((0, 2)))
        answer = release.query(KERNELS.at([[15.0, -1.0]]))
        assert release.points >= 1 and np.isfinite(answer.values).all() and np.isfinite(answer.stderr).all()


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["kernel-gaussian", "weighted-laplace"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_cover(mechanism, simultaneous):
    """At their level: a false alarm once in 10^6, by the binomial law."""
    plan = made(2000, mechanism=mechanism, degree="auto" if mechanism.startswith("kernel") else 10)
    x = points(2000)
    sums = plan.sums(x)
    queries = KERNELS.at(points(5, seed=9))
    truth = naive(queries, x)
    covered = []
    for number in range(300):
        with deterministic_noise(key(number + 1)):
            low, high = plan.release(sums).query(queries).interval(0.8, simultaneous=simultaneous)
        inside = (low <= truth) & (truth <= high)
        covered.append(inside.all() if simultaneous else inside[0])
    assert scipy.stats.binom.cdf(sum(covered), 300, 0.8) > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "query_class"),
    [
        ("kernel-gaussian", so.smooth.GaussianKernels(0.6)),
        ("weighted-gaussian", so.smooth.GaussianKernels(0.6)),
        ("chebyshev-laplace", so.smooth.KSmooth(3, 1.0)),
        ("chebyshev-gaussian", so.smooth.KSmooth(3, 1.0)),
    ],
)
def test_the_uniform_error_holds_over_a_class(mechanism, query_class):
    """200 runs, 300 queries of the class each: exceeded with probability at most beta (false alarm 1e-6)."""
    rng = np.random.default_rng(3)
    workload = so.smooth.SmoothQueries(1, points=400, bounds=(-1, 1), query_class=query_class, degree="auto")
    plan = so.plan(workload, PURE if "laplace" in mechanism else APPROX, unit=so.ReplaceOne(), mechanism=mechanism)
    x = rng.beta(2, 3, (400, 1)) * 2 - 1
    if isinstance(query_class, so.smooth.KSmooth):
        # sin(a u + b)/a^K and less: derivatives up to K within 1.
        a, b = rng.uniform(0.2, 1.0, 300), rng.uniform(0, 7, 300)

        def queries(u):
            return np.sin(u * a + b)

        truth = queries(x).mean(axis=0)
    else:
        queries = query_class.at(np.linspace(-1, 1, 300)[:, None])
        truth = naive(queries, x)
    sums, bound, failures = plan.sums(x), plan.fit.uniform_error(0.2), 0
    for number in range(200):
        with deterministic_noise(key(number + 1)):
            failures += np.abs(plan.release(sums).query(queries).values - truth).max() > bound
    assert scipy.stats.binom.sf(failures - 1, 200, 0.2) > 1e-6
    assert plan.fit.uniform_error(0.01) > bound


# All roads to one answer.


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian"])
@pytest.mark.parametrize("unit", PUBLIC)
def test_functions_products_and_kernels_agree(mechanism, unit):
    _, x, release = noiseless(mechanism=mechanism, unit=unit)
    centres = points(5, seed=5)
    queries = KERNELS.at(centres)
    by_kernel = release.query(queries)
    assert by_kernel.values == pytest.approx(naive(queries, x), abs=5e-5)
    assert by_kernel.values.shape == by_kernel.stderr.shape == by_kernel.truncation.shape == (5,)
    for i, y in enumerate(centres):
        alone = release.query(lambda z, y=y: np.exp(-0.5 * (((z - y) / [4.0, 1.6]) ** 2).sum(axis=1)))
        assert alone.values.shape == () and float(alone) == pytest.approx(by_kernel.values[i], abs=5e-5)
        product = release.query(
            so.smooth.Separable(
                [
                    lambda c, y=y: np.exp(-0.5 * ((c - y[0]) / 4) ** 2),
                    lambda c, y=y: np.exp(-0.5 * ((c - y[1]) / 1.6) ** 2),
                ]
            )
        )
        assert product.values.shape == (1,)
        assert product.values[0] == pytest.approx(by_kernel.values[i], abs=5e-5)
        assert product.stderr[0] == pytest.approx(alone.stderr, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian", "histogram-gaussian"])
def test_shapes_of_answers(mechanism):
    """A number for (k,), q numbers for (k, q): also for q = 1, and of a projection."""
    release = made(mechanism=mechanism, degree=5).release(points(500))
    for each in (release, release.projected()):
        for query, shape in (
            (lambda z: z[:, 0], ()),
            (lambda z: z[:, :1], (1,)),
            (lambda z: z, (2,)),
            (KERNELS.at([[12.0, 0.0]]), (1,)),
            (so.smooth.MomentQueries([[1, 0]]), (1,)),
            (so.smooth.Boxes([11.0, -1.0], [12.0, 0.0], 0.5), (1,)),
        ):
            answer = each.query(query)
            assert answer.values.shape == answer.stderr.shape == answer.truncation.shape == shape


def test_an_answer_is_the_weighted_sum_of_the_released_sums():
    """Against the sum term by term, with coefficients by a transform of scipy."""
    plan, x, release = noiseless(d=2, degree=(6, 9), mechanism="chebyshev-gaussian")
    middle, half = plan.workload.cube.middle, plan.workload.cube.half

    def f(z):
        return np.sin(z[:, 0] / 3) * np.cosh(z[:, 1]) + z[:, 0] * z[:, 1] ** 2

    c = oracles.coefficients_by_dct(lambda u: f(middle + u * half), 9, d=2, points=18)[:6]
    summary = release.sums.reshape(6, 9) / len(x)
    answer = release.query(f)
    assert answer.values == pytest.approx(oracles.tensor_answer(c, summary), rel=1e-3)
    exact = release.query(f, samples=18)
    assert exact.values == pytest.approx(oracles.tensor_answer(c, summary), rel=1e-12)
    variances = (plan.fit.stderr.reshape(6, 9) / len(x)) ** 2
    variances[0, 0] = 0
    assert exact.stderr == pytest.approx(math.sqrt((c**2 * variances).sum()), rel=1e-9)


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "chebyshev-gaussian"])
@pytest.mark.parametrize("index_set", ["tensor", "total", "explicit"])
def test_polynomials_inside_the_set_are_exact(mechanism, index_set):
    """Moments around any origin; of other degrees the truncation says how wrong they can be."""
    chosen = np.array([[0, 1], [1, 0], [2, 0], [1, 1], [0, 2]]) if index_set == "explicit" else index_set
    plan, x, release = noiseless(index_set=chosen, degree="auto" if index_set == "explicit" else 3, mechanism=mechanism)
    powers = [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    origin = [15.0, -1.0]
    answer = release.query(so.smooth.MomentQueries(powers, origin))
    truth = [np.prod((x - origin) ** p, axis=1).mean() for p in powers]
    assert answer.values == pytest.approx(truth, abs=2e-3)
    assert answer.truncation == pytest.approx(0, abs=1e-9)
    higher = release.query(so.smooth.MomentQueries([[3, 1], [0, 5]], origin))
    wrong = np.abs(higher.values - [np.prod((x - origin) ** p, axis=1).mean() for p in ([3, 1], [0, 5])])
    assert (wrong <= higher.truncation + 6 * higher.stderr).all() and (wrong > 1e-3).all()
    assert plan.fit.features.features == {"tensor": 9, "total": 6, "explicit": 6}[index_set]


def test_moments_mechanism_answers_means_and_covariances():
    plan, x, release = noiseless(mechanism="moments-gaussian", n=200, d=3)
    powers = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 2], [1, 1, 0]])
    answer = release.query(so.smooth.MomentQueries(powers))
    assert answer.values == pytest.approx([np.prod(x**p, axis=1).mean() for p in powers], rel=1e-4)
    assert plan.fit.features.features == 10


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian"])
def test_boxes_and_their_open_sides(mechanism):
    _, x, release = noiseless(mechanism=mechanism)
    lower = [[12.0, -np.inf], [-np.inf, -np.inf], [11.0, -2.0]]
    upper = [[np.inf, -1.0], [np.inf, np.inf], [16.0, 0.5]]
    answer = release.query(so.smooth.Boxes(lower, upper, smoothing=[1.5, 0.6]))

    def side(v):
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-v))

    truth = []
    for low, high in zip(lower, upper, strict=True):
        factors = [side((x[:, j] - low[j]) / w) - side((x[:, j] - high[j]) / w) for j, w in enumerate((1.5, 0.6))]
        truth.append(np.prod(factors, axis=0).mean())
    wrong = np.abs(answer.values - truth)
    assert (wrong <= answer.truncation + 6 * answer.stderr + 1e-9).all() and wrong.max() < 0.02


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian", "histogram-gaussian"])
@pytest.mark.parametrize("unit", PUBLIC)
def test_batches_are_many_queries(mechanism, unit):
    """A function that returns (k, q) is q functions; kernel queries of several centres are sums of kernel queries."""
    degree = 12 if mechanism == "histogram-gaussian" else "auto"
    plan = made(400, mechanism=mechanism, unit=unit, degree=degree)
    release = plan.release(points(400))
    fs = [lambda z: np.sin(z[:, 0]), lambda z: z[:, 1] ** 2, lambda z: np.ones(len(z))]
    batch = release.query(lambda z: np.stack([f(z) for f in fs], axis=1))
    for name in ("values", "stderr", "truncation"):
        alone = [float(getattr(release.query(f), name)) for f in fs]
        assert getattr(batch, name) == pytest.approx(alone, rel=1e-9, abs=1e-12)
    rng = np.random.default_rng(2)
    centres, weights = rng.uniform([10, -3], [20, 1], (7, 3, 2)), rng.normal(size=(7, 3))
    together = release.query(KERNELS.at(centres, weights))
    single = release.query(KERNELS.at(centres.reshape(-1, 2)))
    assert together.values == pytest.approx((weights * single.values.reshape(7, 3)).sum(axis=1), rel=1e-9, abs=1e-12)
    twice = release.query(KERNELS.at(np.repeat(centres[:, :1], 2, axis=1), np.tile([2.0, -0.5], (7, 1))))
    once = release.query(KERNELS.at(centres[:, 0]))
    assert twice.values == pytest.approx(1.5 * once.values, rel=1e-9)
    assert twice.stderr == pytest.approx(1.5 * once.stderr, rel=1e-6, abs=1e-12)
    assert release.query(KERNELS.at(centres[:, 0], np.full((7, 1), 1.5))).stderr == pytest.approx(
        twice.stderr, rel=1e-6
    )


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian", "histogram-gaussian"])
@pytest.mark.parametrize("kernels", [KERNELS, so.smooth.LaplaceKernels([4.0, 1.6])])
def test_many_queries_of_several_centres_are_answered_in_pieces(mechanism, kernels, monkeypatch):
    """Whatever fits into memory, and whether the kernels are the plan's own or not."""
    release = made(400, mechanism=mechanism, degree="auto").release(points(400))
    rng = np.random.default_rng(3)
    queries = kernels.at(rng.uniform([10, -3], [20, 1], (29, 3, 2)), rng.normal(size=(29, 3)))
    whole = release.query(queries)
    for block in (1, 1000, 5000):
        monkeypatch.setattr("sordino.releases.smooth.release._BLOCK", block)
        for module in ("releases.smooth.readers", "mechanisms.smooth.residuals"):
            monkeypatch.setattr(f"sordino.{module}.BLOCK", block // 2)
        pieces = release.query(queries)
        for name in ("values", "stderr", "truncation"):
            assert getattr(pieces, name) == pytest.approx(getattr(whole, name), rel=1e-9)


@pytest.mark.parametrize("unit", PUBLIC)
def test_declared_queries_are_answered_as_declared(unit):
    rng = np.random.default_rng(4)
    queries = KERNELS.at(rng.uniform([9, -4], [21, 2], (40, 2, 2)), rng.normal(size=(40, 2)))
    workload = so.smooth.SmoothQueries(2, points=300, bounds=BOUNDS[:2], query_class=queries)
    plan = so.plan(workload, NOISELESS, unit=unit)
    x = points(300)
    answers = plan.release(x).declared()
    assert answers.values == pytest.approx(naive(queries, x), abs=1e-4)
    assert (np.abs(answers.values - naive(queries, x)) <= answers.truncation + 8 * answers.stderr).all()
    noisy = so.plan(workload, APPROX, unit=unit).release(x)
    assert (
        np.abs(noisy.declared().values - naive(queries, x)) <= 6 * noisy.declared().stderr + noisy.declared().truncation
    ).all()
    for query in (queries, lambda z: z[:, 0]):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            noisy.query(query)


@pytest.mark.statistical
def test_declared_queries_in_thirty_coordinates():
    """Residuals over all keys and queries are standard normal (they are correlated within a key)."""
    rng = np.random.default_rng(6)
    queries = so.smooth.GaussianKernels(6.0).at(rng.uniform(-1, 1, (50, 10, 30)), rng.uniform(0, 1, (50, 10)) / 5)
    workload = so.smooth.SmoothQueries(30, points=569, bounds=(-1, 1), query_class=queries)
    plan = so.plan(workload, APPROX, unit=so.AddRemove())
    x = rng.uniform(-1, 1, (569, 30))
    sums, truth, z = plan.sums(x), naive(queries, x), []
    for number in range(200):
        with deterministic_noise(key(number + 1)):
            answers = plan.release(sums).declared()
        z.append((answers.values - truth) / answers.stderr)
    z = np.array(z)
    assert np.abs(z.mean(axis=0)).max() < 6 / math.sqrt(200)
    assert np.abs((z**2).mean(axis=0) - 1).max() < 6 * math.sqrt(2 / 200)


# Density, projection, samples.


@pytest.mark.parametrize("bandwidth", [None, 0.5, [3.0, 0.3]])
@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "kernel-gaussian"])
def test_the_density_integrates_to_one(mechanism, bandwidth):
    """Over centres it does not quite, kernels being normalised one by one: nearly, for narrow ones."""
    plan, _, release = noiseless(mechanism=mechanism, query_class=so.smooth.GaussianKernels([1.0, 0.4]), degree=24)
    low, high = np.array(plan.workload.bounds).T
    u, w = np.polynomial.legendre.leggauss(48)
    grid = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    answers = release.density(low + (grid + 1) / 2 * (high - low), bandwidth=bandwidth)
    total = answers.values @ np.outer(w, w).ravel() * np.prod(high - low) / 4
    assert total == pytest.approx(1, abs=0.1)
    assert answers.values.min() > -0.05


@pytest.mark.parametrize("width", [1e-4, 0.01, 0.3, 5.0])
def test_kernels_of_a_density_integrate_to_one(width):
    """Narrow ones and ones with a kink too, against closed forms."""
    release = made(200, 1, "histogram-gaussian", degree=4).release(points(200, 1))
    at = np.array([[10.0], [13.0], [19.99]])
    scale, lengths = 5 * width, (np.array([[0.0, -10], [3, -7], [9.99, -0.01]]) / (5 * width)).clip(-700, 700)
    density = release.density(at, bandwidth=scale)
    normal = (
        scale * math.sqrt(2 * math.pi) * (scipy.stats.norm.cdf(lengths[:, 0]) - scipy.stats.norm.cdf(lengths[:, 1]))
    )
    plain = release.query(so.smooth.GaussianKernels(scale).at(at))
    assert density.values == pytest.approx(plain.values / normal, rel=1e-9)
    laplace = made(200, 1, "histogram-gaussian", degree=4, query_class=so.smooth.LaplaceKernels(scale)).release(
        points(200, 1)
    )
    volume = scale * (2 - np.exp(-lengths[:, 0]) - np.exp(lengths[:, 1]))
    plain = laplace.query(so.smooth.LaplaceKernels(scale).at(at))
    assert laplace.density(at).values == pytest.approx(plain.values / volume, rel=1e-9)
    for outside in ([[9.9]], [[21.0]]):
        with pytest.raises(so.errors.InvalidParameterError, match="bounds"):
            release.density(outside, bandwidth=scale)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "moments-gaussian", *HISTOGRAMS])
@pytest.mark.parametrize("unit", PUBLIC)
def test_projections_are_probability_measures(mechanism, unit):
    plan = made(300, mechanism=mechanism, unit=unit, degree=5 if "histogram" in mechanism else "auto")
    release = plan.release(points(300))
    projected = release.projected() if "histogram" in mechanism else release.projected(grid=20)
    weights = projected.grid_measure.weights
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1, abs=1e-9)
    assert projected.post_processing == ("projected",) and release.post_processing == ()
    nodes = [10 + 5 * (projected.grid_measure.nodes[0] + 1), -3 + 2 * (projected.grid_measure.nodes[1] + 1)]
    queries = KERNELS.at(points(4, seed=8))
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(-0.5 * (((grid[:, None] - queries.centres[:, 0]) / [4, 1.6]) ** 2).sum(axis=-1))
    assert projected.query(queries).values == pytest.approx(weights.ravel() @ values, rel=1e-9)
    for query, shape in ((lambda z: z[:, 0], ()), (lambda z: z, (2,))):
        assert projected.query(query).values == pytest.approx(weights.ravel() @ query(grid))
        assert projected.query(query).values.shape == shape
    sample = projected.sample(5000, np.random.default_rng(1))
    low, high = np.array(plan.workload.bounds).T
    assert sample.shape == (5000, 2) and (sample >= low).all() and (sample <= high).all()
    spread = (high - low) / 2 / math.sqrt(5000)
    assert (np.abs(sample.mean(axis=0) - projected.query(lambda z: z).values) < 6 * spread).all()
    with pytest.raises(so.errors.UnsupportedMechanismError):
        release.sample(3)


def test_a_projection_is_nearest():
    """Against non-negative least squares, in the noise's own metric."""
    plan = made(60, d=1, mechanism="chebyshev-gaussian", degree=6, query_class=so.smooth.GaussianKernels(4.0))
    release = plan.release(points(60, 1))
    measure = release.projected(grid=12).grid_measure
    phi = oracles.monomials(measure.nodes[0][:, None], np.arange(6)[:, None]).T
    y = release.sums / 60
    weights = np.array([0.0, *np.ones(5)])
    nearest = oracles.nearest_measure(phi, y, weights)

    def loss(p):
        return (weights * (phi @ p - y) ** 2).sum()

    assert loss(measure.weights) == pytest.approx(loss(nearest), rel=1e-6, abs=1e-12)


# Sizes and approximations.


@pytest.mark.parametrize("approximation", ["truncate", "vallee-poussin", "jackson"])
def test_approximations_damp_as_they_say(approximation):
    """And the truncation that is stated covers the damping."""
    _, x, release = noiseless(d=1, degree=16, approximation=approximation, query_class=so.smooth.GaussianKernels(2.5))

    def f(z):
        return np.exp(-0.5 * ((z[:, 0] - 16.5) / 2.5) ** 2)

    answer = release.query(f)
    wrong = abs(float(answer) - f(x).mean())
    assert wrong <= answer.truncation + 6 * answer.stderr
    limits = {"truncate": 1e-4, "vallee-poussin": 2e-2, "jackson": 0.2}
    assert answer.truncation < 10 * limits[approximation]
    damping = {"truncate": oracles.truncated, "vallee-poussin": oracles.vallee_poussin, "jackson": oracles.jackson}
    c = oracles.coefficients_by_dct(lambda u: f(15 + 5 * u), 16, points=64) * damping[approximation](16)
    assert float(answer) == pytest.approx(c @ release.sums / len(x), abs=1e-6)
    by_kernel = release.query(so.smooth.GaussianKernels(2.5).at([[16.5]]))
    assert by_kernel.values[0] == pytest.approx(float(answer), abs=1e-6)


@pytest.mark.parametrize("order", [1, 2, 5, 20])
def test_best_approximations_of_smooth_functions(order):
    """sin(x + b) has all derivatives within 1: how far polynomials are, by interpolation, is within twice the bound."""
    for degree in range(1, 12):
        bound = jackson_bound(order, degree)
        u = np.linspace(-1, 1, 400)
        for b in (0.0, 0.7, 1.5):
            best = np.polynomial.chebyshev.Chebyshev.interpolate(lambda z, b=b: np.sin(z + b), degree - 1)
            # The interpolant is no better than the best polynomial, and at most 1 + Lebesgue's constant times worse.
            assert np.abs(best(u) - np.sin(u + b)).max() <= (2 + 2 / math.pi * math.log(degree)) * bound
        # Functions of higher order are functions of the lower one.
        assert bound <= jackson_bound(max(order - 1, 1), degree) < math.inf


@pytest.mark.parametrize("order", [3, 20, 100])
def test_any_order_of_smoothness_can_be_planned(order):
    plan = made(10**6, 2, "chebyshev-gaussian", query_class=so.smooth.KSmooth(order))
    assert plan.rmse < 0.05 and plan.fit.uniform_error(0.1) < 0.2


def test_degree_of_the_paper():
    for n, d, order in ((10_000, 1, 2), (569, 2, 4), (10**6, 2, 1)):
        plan = made(n, d, "chebyshev-laplace", query_class=so.smooth.KSmooth(order), degree="paper")
        assert plan.fit.sizes == (math.ceil(n ** (1 / (2 * d + order)) - 1e-9),) * d
    with pytest.raises(so.errors.InvalidParameterError, match="KSmooth"):
        made(degree="paper")


@pytest.mark.parametrize("mechanism", ["chebyshev-gaussian", "chebyshev-laplace", "weighted-gaussian"])
@pytest.mark.parametrize("index_set", ["tensor", "total"])
@pytest.mark.parametrize("n", [500, 50_000])
def test_auto_is_no_worse_than_any_degree(mechanism, index_set, n):
    auto = made(n, mechanism=mechanism, index_set=index_set)
    best = min(
        made(n, mechanism=mechanism, index_set=index_set, degree=t).rmse for t in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
    )
    assert auto.rmse <= 1.03 * best


def test_expected_errors_are_those_of_random_queries():
    """The stated noise is the root mean square over centres, and the truncation that of the answers."""
    plan = made(500, mechanism="chebyshev-gaussian", degree=5)
    rng = np.random.default_rng(0)
    queries = KERNELS.at(rng.uniform([10, -3], [20, 1], (4000, 2)))
    stderr = plan.release(points(500)).query(queries).stderr
    assert np.sqrt((stderr**2).mean()) == pytest.approx(plan.fit.noise, rel=0.03)
    assert plan.rmse == pytest.approx(math.hypot(plan.fit.noise, plan.fit.truncation))


# Properties.


COORDINATE = st.floats(-5, 30, allow_nan=False)


@given(st.lists(st.tuples(COORDINATE, COORDINATE), min_size=1, max_size=12), st.data())
def test_sums_merge_and_points_are_clipped(rows, data):
    plan = made(50, unit=so.AddRemove(), degree=4)
    x = np.array(rows)
    cut = data.draw(st.integers(0, len(x)))
    whole = plan.sums(x).to_bytes()
    assert (plan.sums(x[cut:]) + plan.sums(x[:cut])).to_bytes() == whole
    assert plan.sums(np.clip(x, [10.0, -3.0], [20.0, 1.0])).to_bytes() == whole
    assert so.smooth.PointSums.from_bytes(plan.fit, whole).to_bytes() == whole


@settings(max_examples=15)
@given(
    st.floats(-3, 3), st.floats(-3, 3), st.sampled_from(["weighted-laplace", "kernel-gaussian", "histogram-laplace"])
)
def test_answers_are_linear_in_the_query(a, b, mechanism):
    """Also under a private number of points: both are over the same one."""
    release = made(200, mechanism=mechanism, unit=so.AddRemove()).release(points(200))

    def f(z):
        return np.cos(z[:, 0] / 4)

    def g(z):
        return np.exp(z[:, 1] / 3)

    summed = release.query(lambda z: a * f(z) + b * g(z))
    assert float(summed) == pytest.approx(a * float(release.query(f)) + b * float(release.query(g)), abs=1e-9)


@settings(max_examples=10)
@given(
    st.integers(-20, 20),
    st.integers(-1000, 1000),
    st.sampled_from(["weighted-laplace", "kernel-gaussian", "histogram-laplace"]),
)
def test_units_change_nothing(power, shift, mechanism):
    """Points, bounds, bandwidths and centres in other units: the same answers; scales by powers of two are exact."""
    scale = 2.0**power

    def answers(scale, shift):
        workload = so.smooth.SmoothQueries(
            1, points=100, bounds=[(shift, shift + 8 * scale)], query_class=so.smooth.GaussianKernels(2.0 * scale)
        )
        privacy = PURE if mechanism.endswith("laplace") else APPROX
        plan = so.plan(workload, privacy, unit=so.ReplaceOne(), mechanism=mechanism)
        # No point lies on the border of a cell, where rounding would decide.
        x = np.linspace(0.5137, 6.9911, 100)[:, None] * scale + shift
        return plan.release(x).query(so.smooth.GaussianKernels(2.0 * scale).at([[3.0 * scale + shift]]))

    plain, moved = answers(1.0, 0.0), answers(scale, float(shift) * scale)
    assert moved.values == pytest.approx(plain.values, abs=1e-7)
    assert moved.stderr == pytest.approx(plain.stderr, rel=1e-7)


def test_clipped_answers():
    answers = so.smooth.SmoothAnswers(np.array([-0.2, 0.4, 1.3]), np.ones(3), np.zeros(3), "gaussian")
    assert answers.clipped().values.tolist() == [0.0, 0.4, 1.0] and answers.clipped(-1, 1).values[0] == -0.2


@pytest.mark.parametrize("samples", [1, 7, 200])
def test_samples_of_a_function(samples):
    """More of them hear of finer detail; fewer than polynomials are as many. And it is asked between them."""
    _, x, release = noiseless(d=1, degree=30)
    asked = []

    def f(z):
        asked.append(len(z))
        return np.sin(z[:, 0])

    answer = release.query(f, samples=samples)
    assert asked == [2 * max(samples, 30) + 33] and float(answer) == pytest.approx(np.sin(x).mean(), abs=1e-4)
