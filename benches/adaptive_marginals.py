"""Marginals that are chosen: error and time beside private-pgm's AIM, and beside all pairs at once.

All contestants have the same rho of zero-concentrated differential privacy and the same records; errors are root mean
squares over all cells of all pairs, and over draws. At once: the planner's own choice, its answers made consistent and
shrunk towards independence. AIM is `adaptive_marginals_peers.py`, with so many steps of mirror descent a round; it
takes minutes, so it has one draw, and twenty attributes are left out, which took it beyond twenty minutes and seven
gigabytes. In plain Python: as many pairs as there are attributes, chosen by AIM's scores; without a model of the
records, what was not chosen is taken for independent.

Data: `fair` (Fair 1978: in statsmodels with permission of the author), its first six columns and all eight; made records of
geometric values, of which six tenths of the attributes follow an earlier one in half of the records.

Run `python benches/adaptive_marginals.py`.
"""

import itertools
import math
import os
import random
from collections import Counter
from functools import partial

import numpy as np
from harness import Row, amount, in_process, main, once, quick, versus
from numpy.typing import NDArray

import sordino as so

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

_DRAWS = 2 if quick() else 10
_STEPS = 50 if quick() else 500
_RECORDS = 10_000
_GOAL, _FASTER = 1.1, 10.0
# Of AIM.
_MOST_ATTRIBUTES = 12
_FAIR = ("rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb")


def _fair(columns: int) -> tuple[tuple[int, ...], Codes]:
    import statsmodels.api  # noqa: PLC0415 - slow

    frame = statsmodels.api.datasets.fair.load_pandas().data
    found = [np.unique(frame[name], return_inverse=True) for name in _FAIR[:columns]]
    return tuple(len(values) for values, _ in found), np.stack([codes for _, codes in found], axis=1).astype(np.int64)


def _made(attributes: int, levels: int) -> tuple[tuple[int, ...], Codes]:
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.3, (_RECORDS, attributes)) - 1, levels - 1)
    for i in range(1, attributes):
        if rng.random() < 0.6:
            tied, earlier = rng.random(_RECORDS) < 0.5, int(rng.integers(i))
            codes[tied, i] = (3 * codes[tied, earlier] + i) % levels
    return (levels,) * attributes, codes.astype(np.int64)


_DATA = {
    "fair, 6 attributes": partial(_fair, 6),
    "fair, 8 attributes": partial(_fair, 8),
    "12 attributes of 8 levels": partial(_made, 12, 8),
    "20 attributes of 16 levels": partial(_made, 20, 16),
}
# Rho.
_CASES = {
    "fair, 6 attributes": (0.0077, 0.077),
    "fair, 8 attributes": (0.0077,),
    "12 attributes of 8 levels": (0.005, 0.05),
    "20 attributes of 16 levels": (0.02,),
}


def _tables(levels: tuple[int, ...], codes: Codes) -> dict[tuple[int, ...], Array]:
    sets = [s for size in (1, 2) for s in itertools.combinations(range(len(levels)), size)]
    found = {}
    for s in sets:
        shape = tuple(levels[i] for i in s)
        flat = np.ravel_multi_index(tuple(codes[:, i] for i in s), shape)
        found[s] = np.bincount(flat, minlength=math.prod(shape)).astype(np.float64)
    return found


def _rmse(found: Array, truth: Array) -> float:
    return float(np.mean((found - truth) ** 2))


def _read(plan: so.ReleasePlan, codes: Codes) -> so.adaptive.MarginalsRelease:
    """Return a release whose tables were looked at."""
    release: so.adaptive.MarginalsRelease = plan.release(codes)
    assert len(release.values)
    return release


def _in_plain_python(levels: tuple[int, ...], records: list[list[int]], rho: float) -> list[list[float]]:
    """Return estimates of all pairs, with noise in floating point: not private."""
    d, columns = len(levels), list(zip(*records, strict=True))
    rounds = min(d, math.comb(d, 2))
    # Half of rho for single attributes; a tenth of the rest to choose pairs, nine to measure them.
    first, epsilon, sigma = math.sqrt(d / rho), math.sqrt(0.4 * rho / rounds), math.sqrt(rounds / (0.9 * rho))
    singles = []
    for column, level in zip(columns, levels, strict=True):
        counts = Counter(column)
        singles.append([max(counts[a] + random.gauss(0.0, first), 0.0) for a in range(level)])
    total = max(sum(map(sum, singles)) / d, 1.0)
    true, found = [], []
    for i, j in itertools.combinations(range(d), 2):
        both = Counter(zip(columns[i], columns[j], strict=True))
        true.append([both[a, b] for a in range(levels[i]) for b in range(levels[j])])
        found.append([a * b / total for a in singles[i] for b in singles[j]])
    left = set(range(len(true)))
    for _ in range(rounds):
        # Gumbel noise on scores of sensitivity 1 is the exponential mechanism.
        scores = {
            k: sum(abs(a - b) for a, b in zip(true[k], found[k], strict=True))
            - math.sqrt(2.0 / math.pi) * sigma * len(true[k])
            - 2.0 / epsilon * math.log(random.expovariate(1.0))
            for k in left
        }
        chosen = max(scores, key=scores.__getitem__)
        left.remove(chosen)
        found[chosen] = [count + random.gauss(0.0, sigma) for count in true[chosen]]
    return found


def _case(name: str) -> list[Row]:
    levels, codes = _DATA[name]()
    tables = _tables(levels, codes)
    workload = so.Marginals(levels, k=2)
    truth = np.concatenate([tables[s] for s in workload.sets])
    rows = []
    for rho in _CASES[name]:
        privacy = so.ZeroConcentratedDP(rho=rho)
        plan = so.plan(workload, privacy, mechanism="adaptive-marginals")
        whole = so.plan(workload, privacy)
        seconds, squares, others = [], [], []
        for draw in range(_DRAWS):
            with so.testing.deterministic_noise(bytes([draw]) * 32):
                elapsed, release = once(partial(_read, plan, codes))
                seconds.append(elapsed)
                squares.append(_rmse(release.values, truth))
                others.append(_rmse(whole.release(codes).consistent(shrink="independence").values, truth))
        ours, other = math.sqrt(np.mean(squares)), math.sqrt(np.mean(others))
        what, time = f"{name}, rho {rho:g}", float(np.median(seconds))
        rows.append(Row(f"{what}: rmse", f"{ours:.3g}", f"all pairs at once, shrunk: {other:.3g}", ours / other))
        elapsed, lists = once(partial(_in_plain_python, levels, codes.tolist(), rho))
        theirs = math.sqrt(_rmse(np.concatenate(lists), truth))
        plain = f"plain Python, the rest independent, rmse {theirs:.3g}, unsafe"
        rows.append(versus(f"{what}: a release and its tables", time, plain, elapsed))
        if len(levels) > (8 if quick() else _MOST_ATTRIBUTES):
            continue
        import adaptive_marginals_peers as peers  # noqa: PLC0415 - slow

        elapsed, found = once(partial(peers.aim, levels, tables, rho, np.random.default_rng(0), _STEPS))
        theirs = math.sqrt(_rmse(np.concatenate([found[s] for s in workload.sets]), truth))
        ratio = ours / theirs
        rows += [
            Row(f"{what}: rmse", f"{ours:.3g}", f"AIM: {theirs:.3g}", ratio, f"≤ {_GOAL}", ratio <= _GOAL),
            Row(
                f"{what}: a release and its tables",
                amount(time),
                f"AIM: {amount(elapsed)}",
                time / elapsed,
                f"≤ 1/{_FASTER:g}",
                time / elapsed <= 1.0 / _FASTER,
            ),
        ]
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")
    return [row for name in _DATA for row in in_process(__file__, name, threads=1)]


if __name__ == "__main__":
    main({name: partial(_case, name) for name in _DATA}, figures)
