"""Four services sketch what they saw of one large table; the sketches are merged and released once.

Each service keeps and sends k numbers in place of n. Errors are printed beside those of a threshold on all cells, which
is better where all cells can be sent: a sketch is for want of room.
"""

import tempfile
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import sordino as so

CELLS, MEASUREMENTS, SEED = 2**16, 2048, 2026  # n and k; all public, the same everywhere
SERVICES = 4


def make_table() -> np.ndarray:
    """Return the whole table, which no service ever has: four plateaus on zero."""
    rng = np.random.default_rng(11)
    table = np.zeros(CELLS, dtype=np.int64)
    for start, width, height in zip(
        rng.integers(0, CELLS - 4096, 4), rng.integers(64, 4096, 4), rng.integers(5, 40, 4), strict=True
    ):
        table[start : start + width] += height
    return table


def serve(number: int, folder: str) -> None:
    """Sketch the records of one service, one batch after the other, and write the sketch to a file."""
    records = np.random.default_rng(12).permutation(np.repeat(np.arange(CELLS), make_table()))[number::SERVICES]
    sketch = so.sketches.Sketch(CELLS, MEASUREMENTS, seed=SEED)
    for batch in np.array_split(records, 10):
        sketch.update(batch)
    sketch.save(Path(folder) / f"{number}.sketch")  # as private as the records


def main() -> None:
    """Let the services run, merge, release, compare."""
    privacy, unit = so.PureDP(epsilon=1.0), so.AddRemove(1, label="one record")
    compression = so.sketches.Compression(measurements=MEASUREMENTS, sparsity=80, basis="haar", seed=SEED)
    plan = so.plan(so.Histogram(CELLS), privacy, unit=unit, mechanism="compressive", compression=compression)
    print(plan.explain())

    with tempfile.TemporaryDirectory() as folder:  # only its owner can look into it
        with get_context("spawn").Pool(2) as pool:
            pool.starmap(serve, [(number, folder) for number in range(SERVICES)])
        parts = [so.sketches.Sketch.load(Path(folder) / f"{number}.sketch") for number in range(SERVICES)]
    merged = plan.sketch()
    for part in parts:
        merged += part

    ledger = so.Ledger(privacy)
    release = plan.release(merged, ledger=ledger, request_id="2026/table")  # once, for all services together
    found, truth = release.recovery, make_table()
    assert found is not None
    whole = so.plan(so.Histogram(CELLS), privacy, unit=unit, mechanism="threshold").release(truth)

    def error(values: np.ndarray) -> float:
        return float(np.linalg.norm(values - truth))

    print(f"\nnumbers kept and sent by each service: {len(merged.to_bytes()) // 8} in place of {CELLS}")
    print(f"unexplained by the recovered table: {found.residual:.1f}, by noise alone {found.noise_level:.1f}")
    print(f"error from the sketch: {error(release.values):.1f} (an answer of zero: {error(np.zeros(CELLS)):.1f})")
    print(f"error of noise on all cells with a threshold: {error(whole.values):.1f}")
    print(ledger)


if __name__ == "__main__":
    main()
