"""The largest noisy answers of streams with several coordinates."""

import numpy as np
import pytest

import sordino as so


def test_largest_answers_come_first(known_noise: None) -> None:
    plan = so.plan(so.Continual(so.RunningSum(3), dim=5, cells_per_record=5), so.GaussianDP(mu=1e4))
    with plan.open() as stream:
        with pytest.raises(so.errors.InvalidParameterError, match="nothing was published"):
            stream.top(1)
        stream.update([3, 9, 1, 7, 5])
        places, answers = stream.top(3)
        assert places.tolist() == [1, 3, 4]
        assert np.allclose(answers, [9, 7, 5], atol=0.1)
        for count in (0, 6):
            with pytest.raises(so.errors.InvalidParameterError):
                stream.top(count)
        with pytest.raises(so.errors.DataTypeError):
            stream.top(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", [None, so.sketches.Compression(sparsity=2, basis="standard")])
def test_largest_cells(known_noise: None, compression: so.sketches.Compression | None) -> None:
    workload = so.RunningHistogram(64, 4)
    plan = so.plan(so.Continual(workload), so.GaussianDP(mu=1e4), compression=compression)
    with plan.open() as stream:
        with pytest.raises(so.errors.InvalidParameterError, match="nothing was published"):
            stream.top(1)
        stream.update([5, 40], [10, 90])
        places, counts = stream.top(2)
        assert places.tolist() == [40, 5]
        assert np.allclose(counts, [90, 10], atol=0.5)
