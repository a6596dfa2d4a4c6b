"""Unknown keys: the optimal selection's digits and inequalities, thresholds, the rule of the ledger, what leaves."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import sordino as so
from sordino.privacy.calibration import delta_of_mu, gaussian_mu
from sordino.privacy.costs import ApproximateGaussianCost, cost_from_json
from sordino.tables import keys as module

T = so.tables
N = 2**96
A = so.ApproxDP(epsilon=1.0, delta=1e-6)


def optimal(epsilon, delta):
    """The selection in closed form, and both of its ends."""
    e, first = math.exp(epsilon), lambda n: delta * math.expm1(n * epsilon) / math.expm1(epsilon)
    n1 = 1 + math.floor(math.log((e + 2 * delta - 1) / ((e + 1) * delta)) / epsilon)
    n2 = n1 + math.floor(math.log1p(math.expm1(epsilon) * (1 - first(n1)) / delta) / epsilon)

    def pi(n):
        if n <= n1:
            return first(n)
        far = math.exp(-(n - n1) * epsilon)
        return 1.0 if n > n2 else 1 - far * (1 - first(n1)) + (1 - far) * delta / math.expm1(epsilon)

    return n1, n2, pi


@pytest.mark.parametrize(
    ("epsilon", "delta", "n1", "n2", "half", "sure", "at"),
    [
        (1.0, 1e-6, 14, 27, 14, 18, 0.699887098988),
        (0.1, 1e-6, 109, 217, 109, 148, 0.515117342208),
        (1.0, 1e-8, 18, 36, 19, 23, 0.382125720297),
        (0.5, 1e-10, 44, 87, 44, 52, 0.552612193718),
    ],
)
def test_the_optimal_selection(epsilon, delta, n1, n2, half, sure, at):
    thresholds = module.optimal_thresholds(epsilon, delta)
    first, second, pi = optimal(epsilon, delta)
    assert (first, second) == (n1, n2)
    assert [next(n for n, t in enumerate(thresholds) if t >= share * N) for share in (0.5, 0.99)] == [half, sure]
    assert thresholds[n1] / N == pytest.approx(at, abs=5e-13)
    assert len(thresholds) - 1 == n2 + 1 and thresholds[-1] == N
    assert all(abs(t / N - pi(n)) < 1e-13 for n, t in enumerate(thresholds))


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.3, 1.0, 3.0, 12.0, 40.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-15])
def test_neighbouring_numbers_of_users_keep_their_inequalities(epsilon, delta):
    import mpmath

    with mpmath.workdps(80):
        e, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta) * N
        thresholds = module.optimal_thresholds(epsilon, delta)
        for one, more in pairwise(thresholds):
            assert more <= e * one + d and N - one <= e * (N - more) + d
            assert one <= e * more + d and N - more <= e * (N - one) + d


def test_thresholds_of_gaussian_noise():
    """One round, weights of one: users that a key needs to be published every other time."""
    for most, tau in ((1, 22.3528), (2, 32.029), (4, 46.0283), (16, 95.4881), (64, 198.4641)):
        (found,) = module._rounds((1.0,), most, A, shared=False)
        assert found.threshold / 2**20 == pytest.approx(tau, abs=6e-4)
        assert found.quarter_units / 4 / 2**20 == pytest.approx(4.365155 * math.sqrt(most), rel=1e-6)
    better = {most: module._optimal_if_better(most, A) is not None for most in (1, 2, 4)}
    assert better == {1: True, 2: True, 4: False}
    mu, delta = module._split(A)
    for most in (1, 3, 30, 5000):
        rounds = module._rounds((1.0, 4.0, 16.0), most, A)
        length = math.sqrt(max(t * int(2**20 / math.sqrt(t)) ** 2 for t in range(1, most + 1)))
        assert sum((Fraction(4 * length) / each.quarter_units) ** 2 for each in rounds) <= Fraction(mu) ** 2 * (
            1 + Fraction(1, 10**12)
        )
        # With t keys that nobody else has, one of them is published with probability at most d in all.
        tails = sum(
            max(
                t
                * 0.5
                * math.erfc(
                    (each.threshold + 0.5 - int(2**20 / math.sqrt(t))) / (each.quarter_units / 4) / math.sqrt(2)
                )
                for t in range(1, most + 1)
            )
            for each in rounds
        )
        assert 0.5 * delta < tails <= delta


def test_published_keys_cost_what_they_do():
    """Enumerated: noise of 3, a threshold of 9, a common key of 5 or 6 users, and a new one of none or one."""
    sigma, tau, epsilon = 3.0, 9, 1.0
    cell = np.arange(-60, 80)
    upper = np.array([0.5 * math.erfc((c - 0.5) / sigma / math.sqrt(2)) for c in np.append(cell, cell[-1] + 1)])
    noise = upper[:-1] - upper[1:]

    def published(users, present):
        """The law of one key: what leaves above the threshold, and nothing (-1)."""
        law = {-1: 0.0} if present else {-1: 1.0}
        for k, p in zip(cell, noise if present else np.zeros_like(noise), strict=True):
            where = users + k if users + k > tau else -1
            law[where] = law.get(where, 0.0) + p
        return law

    without = [(published(5, True), published(0, False))]
    ((common, absent),) = without
    common_more, new = published(6, True), published(1, True)
    values = [(a, b) for a in set(common) | set(common_more) for b in set(absent) | set(new)]
    p = np.array([common.get(a, 0) * absent.get(b, 0) for a, b in values])
    q = np.array([common_more.get(a, 0) * new.get(b, 0) for a, b in values])
    exact = max(np.maximum(q - math.exp(epsilon) * p, 0).sum(), np.maximum(p - math.exp(epsilon) * q, 0).sum())
    d = sum(share for value, share in new.items() if value > tau)
    curve = delta_of_mu(1 / sigma, epsilon)
    assert exact == pytest.approx(2.50547e-3, rel=1e-5)
    assert d + (1 - d) * curve == pytest.approx(2.51030e-3, rel=1e-5) and curve == pytest.approx(2.075e-4, rel=1e-3)
    assert curve < exact < d + (1 - d) * curve


def test_the_ledgers_rule_for_published_keys():
    cost = ApproximateGaussianCost(0.1, 2e-7)
    assert cost_from_json(cost.to_json()) == cost
    for bad in ((0.0, 1e-7), (0.1, 0.0), (0.1, 1.0), (math.nan, 1e-7)):
        with pytest.raises(so.SordinoError):
            ApproximateGaussianCost(*bad)
    # The split counts what may fail: the page's two values of m.
    assert gaussian_mu(A) == pytest.approx(0.236704, abs=1e-6)
    ledger = so.Ledger(A, reserve_delta=5e-7)
    assert ledger.remaining()["gaussian_mu"] == pytest.approx(0.229087, abs=1e-6)
    first = so.Ledger(A)
    first.charge(ApproximateGaussianCost(0.2, 5e-7), "keys")
    limit = gaussian_mu(so.ApproxDP(epsilon=1.0, delta=1e-6 - 5e-7))
    with pytest.raises(so.errors.BudgetExceededError):
        first.charge(so.privacy.GaussianCost(mu=math.sqrt(limit**2 - 0.2**2) * (1 + 1e-9)), "more")
    first.charge(so.privacy.GaussianCost(mu=math.sqrt(limit**2 - 0.2**2) * (1 - 1e-9)), "rest")
    for late in (ApproximateGaussianCost(1e-6, 1e-9), ApproximateGaussianCost(1e-6, 9e-7)):
        with pytest.raises(so.errors.BudgetExceededError):  # nothing was reserved
            first.charge(late, "late")
    reserved = so.Ledger(A, reserve_delta=3e-7)
    reserved.charge(so.privacy.GaussianCost(mu=0.1), "a")
    reserved.charge(ApproximateGaussianCost(0.1, 2e-7), "b")
    with pytest.raises(so.errors.BudgetExceededError):
        reserved.charge(ApproximateGaussianCost(0.01, 2e-7), "c")
    reserved.charge(ApproximateGaussianCost(0.01, 1e-7), "d")
    for other in (so.Ledger(so.PureDP(epsilon=1.0)), so.Ledger(so.GaussianDP(mu=1.0)), so.Ledger(so.ZeroConcentratedDP(rho=1.0)),
                  so.Ledger(A, composition="basic"), so.Ledger(A, pure_as="gaussian")):  # fmt: skip
        with pytest.raises(so.errors.UnsupportedCostError):
            other.charge(cost, "keys")


def zipf(users=4000, keys=3000, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.geometric(1 / 12, users)
    who = np.repeat(np.arange(users), rows)
    return {
        "who": who,
        "word": np.array([f"w{k:04d}" for k in np.minimum(rng.zipf(1.3, len(who)), keys)], dtype=object),
    }


def schema(most, **options):
    return so.Schema({"word": T.Keys(**options)}, user="who", bounds=so.Bounds(most))


def users_of(data):
    pairs = set(zip(data["who"].tolist(), data["word"].tolist(), strict=True))
    counts = {}
    for _, word in pairs:
        counts[word] = counts.get(word, 0) + 1
    return counts


@pytest.mark.parametrize("most", [1, 2, 8, 30])
def test_keys_of_many_users_are_found_and_those_of_few_are_not(most):
    data, counts = zipf(), users_of(zipf())
    for request in ("a", "b"):
        found = T.select_keys(data, schema(most), A, request_id=request)
        assert list(found.values) == sorted(found.values) and set(found.values) <= set(counts)
        assert {"w0001", "w0002"} <= set(found.values)
        assert all(counts[word] >= 6 for word in found.values)  # of fewer with probability below 1e-4 in all
    lists = {"who": data["who"], "word": data["word"].tolist()}
    with so.testing.deterministic_noise(bytes(32)):
        one = T.select_keys(data, schema(most), A, request_id="a")
        for other in (
            lists,
            [
                {name: column[part] for name, column in data.items()}
                for part in np.array_split(np.random.default_rng(1).permutation(len(data["who"])), 5)
            ],
        ):
            assert T.select_keys(other, schema(most), A, request_id="a").values == one.values


def test_rounds_find_more():
    data = zipf(20_000, 30_000)
    found = {
        rounds: len(T.select_keys(data, schema(30, rounds=rounds), A, request_id="r").values)
        for rounds in ((1.0,), (1.0, 4.0, 16.0))
    }
    assert found[1.0, 4.0, 16.0] > 1.1 * found[(1.0,)]


def test_a_users_keys_weigh_what_they_may():
    """Weights of one user more or less: at most the length in l2 on all keys, most keys of their own."""
    data = zipf(200, 60)
    made = schema(5)
    lists, names, order, _ = module._read(data, made, "word", made.dimensions["word"])
    taken = np.zeros(len(names), dtype=bool)
    seed = list(made.seed("r"))
    full = dict(zip(names, lists.weights(seed, order, taken, 5, True), strict=True))
    for gone in range(40):
        kept = data["who"] != gone
        left = {name: column[kept] for name, column in data.items()}
        lists, others, order_left, _ = module._read(left, made, "word", made.dimensions["word"])
        less = dict(
            zip(others, lists.weights(seed, order_left, np.zeros(len(others), dtype=bool), 5, True), strict=True)
        )
        change = np.array([full[name] - less.get(name, 0) for name in names], dtype=float)
        assert change.min() >= 0 and np.count_nonzero(change) <= 5 and np.linalg.norm(change) <= 2**20


@pytest.mark.statistical
def test_kept_as_often_as_the_best_rule_keeps():
    """2,000 keys of 14 users: the frequency within 5 standard errors of T_14/2^96."""
    data = {"who": np.arange(28_000), "word": np.repeat(np.arange(2000), 14)}
    with so.testing.deterministic_noise(bytes(range(32))):
        kept = len(T.select_keys(data, schema(1), A, request_id="r").values)
    p = module.optimal_thresholds(1.0, 1e-6)[14] / N
    assert abs(kept - 2000 * p) < 5 * math.sqrt(2000 * p * (1 - p))


def test_from_keys_to_a_release():
    data = zipf()
    made, ledger = schema(8), so.Ledger(so.ApproxDP(epsilon=2.0, delta=1e-5), unit=schema(8).unit)
    with pytest.raises(so.errors.InvalidParameterError, match="not known yet"):
        so.tabulate(data, made, request_id="r")
    levels = T.select_keys(data, made, A, ledger=ledger, request_id="words")
    assert T.select_keys(data, made, A, ledger=ledger, request_id="words") is levels  # no second look
    assert len(ledger.history) == 1
    for other in (schema(9), schema(1)):
        with pytest.raises(so.errors.DuplicateRequestError):
            T.select_keys(data, other, A, ledger=ledger, request_id="words")
    known = so.Schema({"word": levels}, user="who", bounds=so.Bounds(8))
    plan = so.plan(known.counts(), ledger=ledger, share=1.0)
    frame = plan.release(so.tabulate(data, known, request_id="counts"), ledger=ledger, request_id="counts").to_frame()
    assert frame["word"].tolist() == list(levels.values)
    nobody = T.select_keys({"who": np.arange(9), "word": np.arange(9)}, made, A, request_id="none")
    assert nobody.values == ()


def test_the_type_of_keys_is_that_of_their_column():
    """A batch that has only missing keys is of the same type: whether one user is in it changes no error."""
    pa = pytest.importorskip("pyarrow")
    for kind, keys in ((pa.int64(), [7] * 500), (pa.string(), ["x"] * 500)):
        kinds = pa.schema([("who", pa.int64()), ("word", pa.dictionary(pa.int32(), kind))])

        def batch(who, words, kind=kind, kinds=kinds):
            return pa.record_batch([pa.array(who, pa.int64()), pa.array(words, kind).dictionary_encode()], schema=kinds)

        big = batch(list(range(500)), keys)
        for other in (batch([1, 1000], [None, keys[0]]), batch([1], [None]), batch([], [])):
            for batches in ([big, other], [other, big]):
                data = pa.RecordBatchReader.from_batches(kinds, batches)
                assert T.select_keys(data, schema(5), A, request_id="r").values == (keys[0],)


def test_what_cannot_be_served_is_said_before_it_is_charged():
    data = {"who": np.arange(9), "word": np.arange(9)}
    small = so.ApproxDP(epsilon=1e-12, delta=1e-12)
    for made, privacy in (
        (schema(5, rounds=(1e-300, 1.0)), A),
        (schema(5), small),
        (schema(2), small),
        (schema(5, rounds=(1e-300, 1e300)), A),
    ):
        ledger = so.Ledger(so.ApproxDP(epsilon=2.0, delta=1e-3))
        with pytest.raises(so.errors.InvalidParameterError):
            T.select_keys(data, made, privacy, ledger=ledger, request_id="r")
        assert ledger.history == ()
    # A selection of all that a ledger has is taken.
    rng = np.random.default_rng(0)
    for _ in range(300):
        total = so.ApproxDP(epsilon=float(np.exp(rng.uniform(-5, 3))), delta=float(np.exp(rng.uniform(-25, -5))))
        so.Ledger(total).check(ApproximateGaussianCost(*module._split(total)))


def test_refusals():
    data = {"who": [1, 2], "word": ["a", "b"]}
    known = so.Schema({"word": T.Levels(["a"])}, user="who", bounds=so.Bounds(1))
    for error, call in [
        (so.errors.DataTypeError, lambda: T.select_keys(data, schema(1), so.PureDP(epsilon=1.0), request_id="r")),
        (so.errors.DataTypeError, lambda: T.select_keys(data, "schema", A, request_id="r")),
        (
            so.errors.DataTypeError,
            lambda: T.select_keys({**data, "word": np.array([0.5, 1])}, schema(1), A, request_id="r"),
        ),
        (so.errors.DataTypeError, lambda: T.select_keys({"who": [1]}, schema(1), A, request_id="r")),
        (so.errors.InvalidParameterError, lambda: T.select_keys(data, known, A, request_id="r")),
        (
            so.errors.InvalidParameterError,
            lambda: so.Schema({"a": T.Keys(), "b": T.Keys()}, user="u", bounds=so.Bounds(1)),
        ),
        (so.errors.InvalidParameterError, lambda: T.Keys(rounds=())),
        (so.errors.InvalidParameterError, lambda: T.Keys(rounds=(0.0,))),
        (so.errors.InvalidParameterError, lambda: T.Keys(longest=0)),
    ]:
        with pytest.raises(error):
            call()
    long = {"who": np.arange(100), "word": ["x" * 20] * 50 + ["y"] * 50}
    assert T.select_keys(long, schema(1, longest=10), A, request_id="r").values == ("y",)
