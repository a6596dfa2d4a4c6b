"""Records with associations, their tables, and whether tables agree."""

import itertools

import numpy as np

LEVELS = [4, 3, 5, 2]


def records(seed, n=400, levels=LEVELS):
    rng = np.random.default_rng(seed)
    first = rng.geometric(0.4, n) - 1
    return np.stack(
        [np.minimum(first + (i > 1) * rng.integers(0, 3, n), level - 1) for i, level in enumerate(levels)], 1
    )


def truth_of(workload, codes):
    tables = []
    for s in workload.sets:
        table = np.zeros([workload.levels[i] for i in s])
        np.add.at(table, tuple(codes[:, i] for i in s), 1)
        tables.append(table.ravel())
    return np.concatenate(tables)


def agrees(tables, total):
    for (one, a), (other, b) in itertools.combinations(tables.items(), 2):
        common = set(one) & set(other)
        sums = [t.sum(axis=tuple(k for k, i in enumerate(s) if i not in common)) for s, t in ((one, a), (other, b))]
        np.testing.assert_allclose(*sums, rtol=1e-9, atol=1e-9 * (1.0 + total))
