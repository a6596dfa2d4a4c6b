"""What is measured, under noise that is known."""

import warnings

import numpy as np

import sordino as so


def released(plan, cells):
    """Release under the same noise each time."""
    with warnings.catch_warnings(), so.testing.deterministic_noise(bytes(range(32))):
        warnings.simplefilter("ignore")
        return plan.release(cells)


def columns(plan):
    """Return what one record in each cell changes of what is measured, shape (measured, cells)."""
    shape = plan.workload.input_shape
    base = released(plan, np.zeros(shape, dtype=int)).measured.values()
    one = np.eye(int(np.prod(shape)), dtype=int)
    return np.stack([released(plan, row.reshape(shape)).measured.values() - base for row in one], axis=1)
