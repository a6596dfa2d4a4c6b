"""Two hospitals sum the points of their patients, batch by batch; the sums are merged and one summary is released.

Every number that anybody wants later comes from the summary: kernels, densities, shares, moments, synthetic patients.
"""

import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import sordino as so

HOSPITALS, PATIENTS = 2, 6000  # of each; public here
BOUNDS = [(18, 100), (30, 200)]  # age and weight: declared, never from the data
BANDWIDTH = (8, 12)


def patients(hospital: int) -> Iterator[np.ndarray]:
    """Yield the private points of one hospital in batches, as from a database."""
    rng = np.random.default_rng(100 + hospital)
    for _ in range(12):
        old = rng.random(PATIENTS // 12) < 0.3 + 0.3 * hospital
        age = np.where(old, rng.normal(72, 6, old.size), rng.normal(45, 9, old.size))
        yield np.column_stack([age, rng.normal(60 + 0.4 * age, 12)])


def serve(hospital: int, folder: str) -> None:
    """Sum what one hospital has for the plan that both were sent, and write the sums to a file."""
    plan = so.ReleasePlan.load(Path(folder) / "plan.json")
    sums = plan.sums(patients(hospital))  # one pass; no batch is kept
    sums.save(Path(folder) / f"{hospital}.sums")  # as private as the points


def main() -> None:
    """Plan, let the hospitals sum, merge, release, ask."""
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    workload = so.smooth.SmoothQueries(
        2, points=HOSPITALS * PATIENTS, bounds=BOUNDS, query_class=so.smooth.GaussianKernels(BANDWIDTH)
    )
    plan = so.plan(workload, privacy, unit=so.ReplaceOne(1, label="one patient"))
    print(plan.explain())

    with tempfile.TemporaryDirectory() as folder:  # only its owner can look into it
        plan.save(Path(folder) / "plan.json")
        with get_context("spawn").Pool(HOSPITALS) as pool:
            pool.starmap(serve, [(hospital, folder) for hospital in range(HOSPITALS)])
        merged = plan.sums()
        for hospital in range(HOSPITALS):
            merged += so.smooth.PointSums.load(plan, Path(folder) / f"{hospital}.sums")

        ledger = so.Ledger(privacy)
        release = plan.release(merged, ledger=ledger, request_id="2026/patients")  # once, for both together
        summary = so.smooth.SmoothRelease.load(
            release.save(Path(folder) / "summary.json")
        )  # public: this is what is sent out

    points = np.vstack([batch for hospital in range(HOSPITALS) for batch in patients(hospital)])
    centres = np.random.default_rng(1).uniform((18, 30), (100, 200), (1000, 2))
    answers = summary.query(so.smooth.GaussianKernels(BANDWIDTH).at(centres))
    apart = (points[:, None, :] - centres) / BANDWIDTH
    errors = answers.values - np.exp(-0.5 * (apart**2).sum(axis=2)).mean(axis=0)
    older = summary.query(so.smooth.Boxes([[65, -np.inf]], [[np.inf, np.inf]], smoothing=3.0))
    drawn = summary.projected().sample(20_000, np.random.default_rng(2))

    print(f"\n1000 kernels: error {np.sqrt(np.mean(errors**2)):.5f}, as planned {plan.rmse:.5f}")
    print(f"older than about 65: {older.values[0]:.3f} of the patients, standard error {older.stderr[0]:.3f}")
    print(f"density at 45 years and 80 kg: {summary.density([[45, 80]]).values[0]:.6f}")
    print(f"mean age of synthetic patients: {drawn[:, 0].mean():.1f}, of the patients {points[:, 0].mean():.1f}")
    print(ledger)


if __name__ == "__main__":
    main()
