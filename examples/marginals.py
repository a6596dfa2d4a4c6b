"""All 190 two-way tables of 20 yes-no attributes from one noisy measurement, consistent with each other."""

import numpy as np

import sordino as so


def main() -> None:
    """Make records, plan, release, and look at one table."""
    rng = np.random.default_rng(20)
    taste = rng.random((50_000, 1))  # what the answers of one person have in common
    records = (rng.random((50_000, 20)) < 0.2 + 0.6 * taste).astype(np.uint8)  # private: one row, one person

    workload = so.Marginals(levels=[2] * 20, k=2)
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    plan = so.plan(workload, privacy, unit=so.AddRemove(1, label="one person"))
    print(plan.explain())
    print(f"\n{plan.compare()}")

    release = plan.release(records)
    published = release.tables[0, 1]
    true = np.array([[np.sum((records[:, 0] == a) & (records[:, 1] == b)) for b in (0, 1)] for a in (0, 1)])
    print(f"\nattributes 0 and 1, published:\n{np.round(published, 1)}\ntrue (the data is synthetic):\n{true}")

    alone = [release.tables[0, j].sum(axis=1) for j in range(1, 20)]
    print(f"attribute 0 alone is the same in all its 19 tables: {np.allclose(alone, alone[0])}")


if __name__ == "__main__":
    main()
