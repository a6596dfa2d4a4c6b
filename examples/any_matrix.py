"""A dashboard of a hundred weighted sums: any matrix of queries, answered by one release."""

import numpy as np

import sordino as so


def main() -> None:
    """Say the queries and what they are worth, plan, compare, release."""
    rng = np.random.default_rng(100)
    sales = rng.poisson(200, size=50)  # private: purchases in each of 50 shops
    tiles = rng.integers(0, 4, size=(100, 50)) * (rng.random((100, 50)) < 0.2)  # public: what each tile adds up
    looked_at = 1.0 / np.arange(1, 101)  # public: the first tiles matter most

    workload = so.Matrix(tiles, weights=looked_at)
    plan = so.plan(workload, so.GaussianDP(mu=0.5), unit=so.AddRemove(1, label="one purchase"))  # touches no data
    print(plan.explain())
    print(f"\n{plan.compare()}")

    release = plan.release(sales)
    interval = release.interval(0.95)
    print(f"\nthe first tile: {release.values[0]:.1f}", end=" ")
    print(f"(95 % interval {interval.lower[0]:.1f} to {interval.upper[0]:.1f}), true {tiles[0] @ sales}")
    total = release.answer(so.Matrix(np.ones((1, 50))))  # another sum from what was measured: free
    print(f"all shops: {total.values[0]:.1f}, standard error {total.stderr[0]:.2f}, true {sales.sum()}")


if __name__ == "__main__":
    main()
