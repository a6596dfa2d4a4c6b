"""What was printed about applications of continual counting, and what is true: each shown by a computation.

Fichtenberger, Henzinger and Upadhyay 2023, "Constant matters": cuts (Corollary 1), substrings (Corollary 4), episodes
(Corollary 5), the local median (Section 5.6, Corollary 6), sparse streams. Norms of columns are those of the square
root, sqrt(S_T).
"""

import itertools
import math

import numpy as np
import pytest

import application_oracles as oracles
import sordino as so
from sordino.privacy.calibration import gaussian_mu

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
MU = so.GaussianDP(mu=1.0)


def column(T):
    """sqrt(S_T)."""
    return float(np.linalg.norm(oracles.square_root_factor(T)[:, 0]))


# Cuts


def printed_cut_bound(side, other, T=1):
    """Of any disjoint S and P, |S| <= |P|: in units of C, the noise that one pair gets at T = 1."""
    size = side + other
    return 3.0 * side * column(T) ** 2 * math.sqrt(size * math.log(size) * math.log(6 * T))


def adversary(pairs, n, v=0):
    """The vertices to which the noise of v is positive: a set that is chosen after the noise was drawn."""
    others = np.array([w for w in range(n) if w != v])
    return others[pairs[np.minimum(v, others), np.maximum(v, others)] > 0.0]


@pytest.mark.parametrize("n", [300, 1200])
def test_an_adversary_moves_a_cut_by_as_much_as_there_are_vertices(n, known_noise):
    """A vertex against those it has positive noise towards: beyond the bound that was printed for all cuts together.

    The mean of a half-normal variate is sqrt(2/pi), half of the others are taken: n/sqrt(2 pi) standard deviations,
    not of the order sqrt(n ln n).
    """
    plan = so.plan(so.events.WeightedGraph(n, 1), MU)
    with plan.open() as stream:
        stream.update([], [], together=True)
        graph = stream.graph()
        noise = graph.matrix()
        worst = max(range(n), key=lambda v: noise[v][noise[v] > 0.0].sum())
        chosen = adversary(noise, n, worst)
        cut = stream.cut([worst], chosen)
        first = [v for v in range(n) if v != worst][: len(chosen)]
        beforehand = stream.cut([worst], first)
    assert cut.value / graph.stderr > printed_cut_bound(1, len(chosen))
    # The noise is as small as it may be; with C of the paper both sides would grow alike.
    assert graph.stderr == pytest.approx(1.0, rel=1e-3)
    assert cut.value / (n * graph.stderr) == pytest.approx(1.0 / math.sqrt(2.0 * math.pi), rel=0.25)
    # Ours for cuts chosen afterwards holds, that for cuts chosen beforehand does not and is not meant to.
    inside, ordinary = cut.interval_afterwards(0.95), cut.interval(0.95)
    assert inside.lower <= 0.0 <= inside.upper
    assert ordinary.lower > 0.0
    assert abs(beforehand.value) < 5.0 * beforehand.stderr
    assert (inside.upper - inside.lower) / 2.0 < 10.0 * cut.value


def test_the_error_of_a_chosen_cut_grows_linearly(known_noise):
    """Four times the vertices, four times the error: an order of sqrt(n) would double it."""
    found = []
    for n in (300, 1200):
        with so.plan(so.events.WeightedGraph(n, 1), MU).open() as stream:
            stream.update([], [], together=True)
            noise = stream.graph().matrix()
        found.append(np.mean([noise[v][noise[v] > 0].sum() for v in range(n)]))
    assert found[1] / found[0] == pytest.approx(4.0, rel=0.05)


# Substrings


def substring_differences(u, longest, T):
    """Changes of counts by one replaced letter, for all texts without null items."""
    encoder = so.events.SubstringCounts(u, longest, T)
    ends = np.arange(1, T + 1, dtype=np.uint64)
    rows = {
        text: encoder.encoder().rows(0, np.array(text, dtype=np.int64), ends).reshape(T, -1)
        for text in itertools.product(range(u), repeat=T)
    }
    for text, own in rows.items():
        for t in range(T):
            other = (*text[:t], (text[t] + 1) % u, *text[t + 1 :])
            if text < other:
                yield own - rows[other]


@pytest.mark.parametrize(("longest", "found"), [(1, 1.414), (2, 2.639), (3, 3.890), (4, 5.056)])
def test_the_sensitivity_of_substrings_is_more_than_l(longest, found):
    """Printed: l column norms. In texts of 8 letters one replaced letter changes more; ours covers it."""
    T = 8
    C = oracles.square_root_factor(T)
    worst = max(np.linalg.norm(C @ d) for d in substring_differences(2, longest, T)) / column(T)
    assert worst == pytest.approx(found, abs=2e-3)
    assert worst > longest
    plan = so.plan(so.events.SubstringCounts(2, longest, T), MU, unit=so.ReplaceOne(1), mechanism="square-root")
    assert worst <= plan.fit.relative_sensitivity * (1.0 + 1e-9)
    # Noise that was made for l gives mu worst/l where 1 was promised.
    assert plan.fit.door.noise / column(T) >= worst
    assert worst / longest > 1.25


@pytest.mark.parametrize(
    ("longest", "ratio"), [(1, 1.414), (2, 1.390), (3, 1.445), (5, 1.591), (10, 1.935), (20, 2.478), (50, 3.587)]
)
def test_the_printed_noise_of_substrings_is_too_small_by(longest, ratio):
    """On long texts: a..a against a..b..a attains the bound as the text grows."""
    plan = (
        so.plan(so.events.SubstringCounts(2, longest, 2**16), MU, unit=so.ReplaceOne(1), mechanism="square-root")
        if longest <= 20
        else so.plan(so.events.SubstringCounts(1, longest, 2**16), MU, unit=so.ReplaceOne(1), mechanism="square-root")
    )
    assert plan.fit.relative_sensitivity / longest == pytest.approx(ratio, abs=1e-3)


def test_one_replaced_letter_of_a_run_attains_the_bound():
    """Explicitly: words a^j at j steps in a row, words with the other letter once each."""
    longest, T = 3, 256
    text, other = [0] * T, [0] * 8 + [1] + [0] * (T - 9)
    encoder, ends = so.events.SubstringCounts(2, longest, T), np.arange(1, T + 1, dtype=np.uint64)
    one, two = (encoder.encoder().rows(0, np.array(t, dtype=np.int64), ends).reshape(T, -1) for t in (text, other))
    attained = np.linalg.norm(oracles.square_root_factor(T) @ (one - two)) / column(T)
    plan = so.plan(so.events.SubstringCounts(2, longest, T), MU, unit=so.ReplaceOne(1), mechanism="square-root")
    assert plan.fit.relative_sensitivity * 0.99 <= attained <= plan.fit.relative_sensitivity * (1.0 + 1e-9)
    assert attained > 1.4 * longest


# Episodes


@pytest.mark.parametrize(
    ("u", "longest", "T", "changed"), [(2, 2, 9, 6), (2, 3, 9, 16), (3, 2, 6, None), (2, 4, 8, None)]
)
def test_episodes_change_more_than_was_printed(u, longest, T, changed):
    """Printed: u^(l-1) l changed pairs of an episode and a step. By all texts there are more; ours covers them."""
    workload = so.events.EpisodeCounts(u, longest, T)
    ends = np.arange(1, T + 1, dtype=np.uint64)
    rows = {
        text: workload.encoder().rows(0, np.array(text, dtype=np.int64), ends).reshape(T, -1)
        for text in itertools.product(range(u), repeat=T)
    }
    C = oracles.square_root_factor(T)
    most = norm = 0.0
    for text, own in rows.items():
        for t, letter in itertools.product(range(T), range(u)):
            other = (*text[:t], letter, *text[t + 1 :])
            if text < other:
                difference = own - rows[other]
                pairs = int(np.count_nonzero(difference))
                if pairs >= most - 2:
                    norm = max(norm, float(np.linalg.norm(C @ difference)))
                most = max(most, pairs)
    printed = u ** (longest - 1) * longest
    assert most > printed
    assert changed is None or most == changed
    plan = so.plan(so.Continual(workload), MU, unit=so.ReplaceOne(1), mechanism="square-root")
    assert norm <= plan.fit.door.sensitivity[0]
    assert most <= plan.fit.relative_sensitivity**2


# The local median


@pytest.mark.parametrize("w", [4, 16, 64, 256])
def test_each_half_of_a_printed_report_costs_more_than_half(w):
    """A client who moves from one cell to another changes two columns: more than one column norm, never sqrt(2)."""
    C = oracles.square_root_factor(w)
    worst = max(np.linalg.norm(C[:, [a]] - C[:, a + 1 :], axis=0).max() for a in range(w - 1))
    assert 1.1 < worst / column(w) < math.sqrt(2.0)
    # Half the budget, calibrated for one column: what it costs in truth.
    half = gaussian_mu(so.ApproxDP(epsilon=0.5, delta=5e-7))
    spent = so.GaussianDP(mu=half * worst / column(w))
    assert spent.mu > half * 1.1
    # One running sum at the whole budget, charged for the exchange.
    plan = so.plan(so.local.LocalSurvey(10**6, intervals=w), APPROX, mechanism="square-root")
    assert plan.fit.report.fit.door.sensitivity[0] == pytest.approx(worst, rel=1e-6)
    assert plan.fit.numbers == w


def test_the_printed_risk_lacks_the_mean():
    """The integral of the derivative estimates the risk less its value at 0, which is E[d]: by as much it is off."""
    values = np.random.default_rng(5).beta(2, 5, 1000)
    plan = so.plan(so.local.LocalSurvey(1000, intervals=200), so.GaussianDP(mu=1e6))
    server = plan.server()
    server.add_many(plan.encode_clients(values))
    found = server.estimate()
    truth = np.array([np.abs(theta - values).mean() for theta in (0.0, *found.grid)])
    printed = np.concatenate([[0.0], np.cumsum(found.derivative) / 200])
    assert np.abs(printed - truth).max() == pytest.approx(values.mean(), abs=0.01)
    assert np.abs(found.risk - truth).max() < 0.005
    assert found.level == pytest.approx(np.mean(1.0 - found.shares) + 0.5 / 200)


# Sparse streams


def test_segments_with_gaussian_noise_have_the_larger_error():
    """Printed as an improvement under approximate privacy: with tau = (4/(eps/2)) ln(2 T/beta) alone it is none."""
    T = 2**16
    tau = 4.0 / 0.5 * math.log(2.0 * T / 0.05)
    assert tau == pytest.approx(118, abs=0.5)
    plain = so.plan(so.events.RareCount(T, max_count=100), APPROX)
    segments = so.plan(so.events.RareCount(T, max_count=100), APPROX, mechanism="above")
    assert plain.fit.max_error < tau < segments.fit.max_error
