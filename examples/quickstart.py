"""A week's moving average of daily counts, released with differential privacy: plan, release, interval."""

import numpy as np

import sordino as so


def main() -> None:
    """Plan, release, and ask for more from what was released."""
    days = np.arange(365)
    flights = np.random.default_rng(7).poisson(900 + 60 * np.sin(2 * np.pi * days / 365))  # the private counts

    workload = so.MovingAverage(window=7, length=365)
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    plan = so.plan(workload, privacy, unit=so.AddRemove(1, label="one flight"))  # touches no data
    print(plan.explain())

    ledger = so.Ledger(privacy)
    release = plan.release(flights, ledger=ledger, request_id="2026/weekly")  # the one call that touches data
    interval = release.interval(0.95)
    print(f"\nlast week: {release.values[-1]:.2f} flights a day", end=" ")
    print(f"(95 % interval {interval.lower[-1]:.2f} to {interval.upper[-1]:.2f})")

    month = release.answer(so.MovingAverage(window=28, length=365))  # more queries on what was measured: free
    print(f"last four weeks: {month.values[-1]:.2f} flights a day, standard error {month.stderr[-1]:.2f}")
    print(f"{ledger}; it now accepts {ledger.remaining()}")


if __name__ == "__main__":
    main()
