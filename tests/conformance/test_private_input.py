"""Edges where data comes in: nothing is refused, torn apart or rounded twice for what it is."""

import json
import subprocess
import sys
import warnings
from decimal import Decimal as D
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sordino as so
from records import tabulate

NAN, KEY, LOUD = float("nan"), bytes(32), so.GaussianDP(mu=1e5)


@pytest.fixture(autouse=True)
def _known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(KEY):
            yield


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values if not any(isinstance(v, tuple) for v in values) else None
    for i, v in enumerate(values):
        array[i] = v
    return array


DAY = pd.Timestamp("2026-01-01", tz="UTC")
PARTIAL = {  # one user's name; None stands for a record without a user
    "ints and nan": lambda k: NAN if k is None else k,
    "NaT": lambda k: pd.NaT if k is None else DAY + pd.Timedelta(days=k),
    "tuples with nan": lambda k: (float("nan"),) if k is None else (float(k),),
    "frozensets": lambda k: frozenset() if k is None else frozenset({k}),
    "Decimal NaN": lambda k: D("NaN") if k is None else D(k),
    "NA": lambda k: pd.NA if k is None else str(k),
}


# 1.1
@pytest.mark.parametrize("name", PARTIAL.values(), ids=PARTIAL)
def test_bounds_hold_for_users_without_a_total_order(name):
    rng = np.random.default_rng(1)
    ids = [
        None if missing else int(k) for k, missing in zip(rng.integers(0, 10, 400), rng.random(400) < 0.3, strict=True)
    ]

    def counts(kept):
        return tabulate([0] * len(kept), 1, user=objects([name(k) for k in kept]), max_records=1).counts

    full = counts(ids)
    # Users are integers or text: everything else is nobody, each by itself.
    readable = {k for k in ids if k is not None and isinstance(name(k), int | str)}
    assert full.sum() == len(readable)
    assert all(np.abs(full - counts([k for k in ids if k != gone])).sum() <= 1 for gone in range(10))


def test_no_two_users_become_one():
    pl = pytest.importorskip("polars")
    for users in ([2**63, 2**63 + 1, -1], pl.Series([2**53, 2**53 + 1, None]), ["a", "a\0", None]):
        assert tabulate([0, 1, 2], 3, user=users, max_records=1).counts[:2].tolist() == [1, 1]
    # A missing user is nobody, and not a user called 'nan'; nor is a complex one.
    assert tabulate([0] * 4, 1, user=["a", NAN, NAN, "b"], max_records=1).counts.tolist() == [2]
    with pytest.raises(so.errors.DataTypeError, match="complex128"):
        tabulate([0] * 2, 1, user=np.array([complex(1, NAN), 2]), max_records=1)


# 1.2
DTYPES = {"int8": 128, "uint8": 256, "int16": 2**15, "uint16": 2**16, "bool": 5}


@pytest.mark.parametrize("integral", [True, False])
@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "uint32", "int64", "uint64"])
def test_sparse_duplicates_never_wrap(dtype, integral):
    values = np.ones(DTYPES[dtype], dtype) if dtype in DTYPES else np.full(2, np.iinfo(dtype).max, dtype)
    table = sp.coo_array((values, (np.zeros(len(values), int), np.zeros(len(values), int))), shape=(1, 3))
    plan = so.plan(so.Histogram(3), LOUD, integral=integral, max_value=2**18)
    assert round(plan.release(table).values[0]) == min(sum(map(int, values)), 2**18)


@pytest.mark.parametrize(
    ("dtype", "one", "other", "rest"), [("float64", 1.5, 2.5, -1.6e-16), ("float32", 2**17, 2**17 + 2.0**-6, 2.0**-7)]
)
def test_sparse_duplicates_are_added_exactly(dtype, one, other, rest):
    """Neighbours by 1, or by 1/64: sums in floats are 2, or 1/32, apart."""

    def cell(first, integral):
        table = sp.coo_array((np.array([first, rest], dtype), ([0, 0], [0, 0])), shape=(1, 3))
        return float(so.plan(so.Histogram(3), LOUD, integral=integral, max_value=2**18).release(table).values[0])

    apart = cell(other, dtype == "float64") - cell(one, dtype == "float64")
    assert apart == pytest.approx(other - one, abs=1e-3)


# 1.3
ALMOST = "{}.49999999999999984"


@pytest.mark.parametrize("kind", [D, F, np.longdouble], ids=["Decimal", "Fraction", "longdouble"])
@pytest.mark.parametrize("way", ["table", "items", "arrow"])
def test_exact_numbers_are_rounded_once(kind, way):
    if way == "arrow" and kind is not D:
        pytest.skip("Arrow has decimals alone")
    if way == "arrow":
        pa = pytest.importorskip("pyarrow")
    pairs = [kind(ALMOST.format(n)) for n in (1, 2)]
    data = pa.array(pairs) if way == "arrow" else pairs
    if way == "items":
        answers = np.diff(so.plan(so.Continual(so.RunningSum(9)), LOUD).open().update(data), prepend=0)
    else:
        answers = so.plan(so.Histogram(2), LOUD).release(data).values
    assert np.rint(answers).tolist() == [1, 2]


def test_the_command_line_rounds_text_once(tmp_path):
    (tmp_path / "c.csv").write_text(f"n\n{ALMOST.format(1)}\n{ALMOST.format(2)}\n")
    command = ["release", str(tmp_path / "c.csv"), "--counts-column", "n", "--mu", "100000"]
    program = f"import sys; sys.argv[1:] = {command!r}; from sordino.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    values = json.loads(done.stdout)["answers"]["value"]
    assert np.rint(values).tolist() == [1, 2]


# 1.7
HUGE = [2**63, 2**64, -(2**64), 10**30, 10**400, -(10**400), D("1e400"), F(10**400)]


def local(value):
    plan = so.plan(so.local.LocalSurvey(10, (0.0, 1.0), intervals=3), LOUD)
    return plan.encode_client(value)


SMOOTH = so.smooth.SmoothQueries(1, points=2, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(0.5))


def smooth(value):
    plan = so.plan(SMOOTH, LOUD)
    return plan.sums([[value]])


TAKES = {
    "table": lambda v: so.plan(so.Histogram(2), LOUD).release([v, 1]),
    "item": lambda v: so.plan(so.Continual(so.RunningSum(9)), LOUD).open().update(v),
    "items": lambda v: so.plan(so.Continual(so.RunningSum(9)), LOUD).open().update([v, 1]),
    "codes": lambda v: so.plan(so.Marginals([2, 2], k=1), LOUD).release([[v, 1], [0, 1]]),
    "client": local,
    "histogram cells": lambda v: so.plan(so.RunningHistogram(3, 9), LOUD).open().update(v),
    "histogram cells, list": lambda v: so.plan(so.RunningHistogram(3, 9), LOUD).open().update([v, 1]),
    "histogram counts": lambda v: so.plan(so.RunningHistogram(3, 9), LOUD).open().update([0, 1], [v, 1]),
    "histogram once": lambda v: so.plan(so.RunningHistogram(3, 3, once=True), LOUD).open().update(v),
    "sparse count": lambda v: so.plan(so.events.RareCount(9, 9), LOUD).open().update(v),
    "sparse counts": lambda v: so.plan(so.events.RareCount(9, 9), LOUD).open().update([v, 1]),
    "graph weight": lambda v: so.plan(so.events.WeightedGraph(4, 9), LOUD).open().update(0, 1, v),
    "graph weights": lambda v: so.plan(so.events.WeightedGraph(4, 9), LOUD).open().update([0, 0], [1, 2], [v, 1]),
    "forest weights": lambda v: so.plan(so.events.SpanningForestCost(4, 9), LOUD).open().update([0], [1], [v]),
    "vertex": lambda v: so.plan(so.events.EdgeCount(4, 9), LOUD).open().update([v], [1]),
    "letter": lambda v: so.plan(so.events.SubstringCounts(2, 2, 9), LOUD).open().update([v]),
    "smooth": smooth,
    "sketch cell": lambda v: so.sketches.Sketch(8, 4).update(v),
    "sketch cells": lambda v: so.sketches.Sketch(8, 4).update([v, 1]),
    "sketch count": lambda v: so.sketches.Sketch(8, 4).update(0, v),
    "sketch table": lambda v: so.sketches.Sketch(8, 4).add([v] + [0] * 7),
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_no_magnitude_is_refused(take):
    for value in HUGE:
        take(value)


MISSING = [NAN, None, np.float32("nan"), pd.NA, pd.NaT, D("NaN")]
EVENTS = {name: TAKES[name] for name in ("vertex", "letter", "graph weights", "forest weights", "histogram cells, list",
                                         "histogram counts", "sketch cells", "client")}  # fmt: skip


@pytest.mark.parametrize("take", EVENTS.values(), ids=EVENTS)
def test_a_missing_item_is_null_alone_and_in_company(take):
    for value in MISSING:
        take(value)


def test_one_malformed_vertex_is_null_like_one_of_two():
    for bad in (NAN, None, 0.5, 10**400, "x", pd.NA):
        with so.plan(so.events.EdgeCount(4, 9), LOUD).open() as stream:
            assert round(stream.update([bad], [1])[-1]) == 0 and stream.step == 1
            assert round(stream.update([bad, 2], [1, 3])[-1]) == 1


# 1.8
def test_no_border_of_private_totals():
    workload = so.smooth.SmoothQueries(
        1, points=3, most_points=3, bounds=(0.0, 1.0), query_class=so.smooth.GaussianKernels(0.5)
    )
    plan = so.plan(workload, so.GaussianDP(mu=1.0))
    assert plan.release([[0.1]] * 4).private is False  # known noise
    _ = plan.sums([[0.1]] * 3) + plan.sums([[0.1]] * 3)
    sketch = so.sketches.Sketch(8, 4)
    for _ in range(600):
        sketch.update(0, 2**53)
    assert so.plan(so.Marginals([2, 2], k=1), LOUD).release([]).values.shape == (4,)  # no records at all


# 1.13
def test_bounded_counts_need_a_plan_that_protects_them():
    table = tabulate([0] * 40, 3, user=[i // 10 for i in range(40)], max_records=10)
    for unit in (so.AddRemove(1), so.AddRemove(9), so.AddRemove(10, per_cell=1), so.UserLevel(10), so.ReplaceOne(9)):
        wrong = (so.errors.UnitError, so.errors.InvalidParameterError)  # of items of a stream no unit is known
        for take in (
            so.plan(so.Histogram(3), LOUD, unit=unit).release,
            so.plan(so.Continual(so.RunningSum(3)), LOUD, unit=unit).release,
            so.plan(so.Continual(so.RunningSum(3), dim=3), LOUD, unit=unit).open().update,
        ):
            with pytest.raises(wrong, match=r"10|Windows"):
                take(table)
    with pytest.raises(so.SordinoError):
        so.sketches.Sketch(3, 2, nonzeros=1).add(table)
    assert so.plan(so.Histogram(3), LOUD, unit=table.unit).release(table).values.shape == (3,)


MASKED = np.ma.masked_array([1, 0], mask=[True, False])
MASKS = {
    "table": lambda: so.plan(so.Histogram(2), LOUD).release(MASKED),
    "table, no mask set": lambda: so.plan(so.Histogram(2), LOUD).release(np.ma.masked_array([1, 0])),
    "codes": lambda: so.plan(so.Marginals([2, 2], k=1), LOUD).release([MASKED, MASKED]),
    "records": lambda: tabulate(MASKED, 2),
    "users": lambda: tabulate([0, 0], 2, user=MASKED, max_records=1),
    "items": lambda: so.plan(so.Continual(so.RunningSum(9)), LOUD).open().update(MASKED),
    "item": lambda: so.plan(so.Continual(so.RunningSum(9)), LOUD).open().update(np.ma.masked),
    "cells": lambda: so.plan(so.RunningHistogram(3, 9), LOUD).open().update(MASKED),
    "counts": lambda: so.plan(so.RunningHistogram(3, 9), LOUD).open().update([0, 1], MASKED),
    "vertices": lambda: so.plan(so.events.EdgeCount(4, 9), LOUD).open().update(MASKED, [2, 2]),
    "weights": lambda: so.plan(so.events.WeightedGraph(4, 9), LOUD).open().update([0, 1], [2, 2], MASKED),
    "letters": lambda: so.plan(so.events.SubstringCounts(2, 1, 9), LOUD).open().update(MASKED),
    "sparse counts": lambda: so.plan(so.events.RareCount(9, 9), LOUD).open().update(MASKED),
    "clients": lambda: so.plan(so.local.LocalSurvey(9, intervals=2), LOUD).encode_clients(MASKED),
    "points": lambda: so.plan(SMOOTH, LOUD).sums(MASKED),
    "sketch": lambda: so.sketches.Sketch(8, 4).update(MASKED),
    "sketch table": lambda: so.sketches.Sketch(8, 4).add(np.ma.masked_array([0] * 8)),
    "queries": lambda: so.Matrix(np.ma.masked_array([[1.0, 2.0]], mask=[[1, 0]])),
    "bins": lambda: tabulate([0], np.ma.masked_array([0.0, 1.0, 2.0], mask=[0, 1, 0])),
}  # fmt: skip


@pytest.mark.parametrize("take", MASKS.values(), ids=MASKS)
def test_masks_are_refused_by_type(take):
    with pytest.raises(so.errors.DataTypeError):
        take()


# 2.7
def test_labels_belong_to_workloads():
    days = pd.Series([1, 2, 3], index=["mon", "tue", "wed"])
    rows = so.Matrix([[1, 1, 1], [1, 0, 0], [0, 0, 1]])
    four = pd.Series([1, 2, 3, 4], index=list("abcd"))
    for workload, data in ((rows, days), (so.Marginals([2, 2], k=1), four), (so.AllRanges(1), days[:1]),
                           (so.Kronecker([so.RunningSum(2), so.RunningSum(2)]), four)):  # fmt: skip
        release = so.plan(workload, LOUD).release(data)
        assert list(release.to_pandas().index) == list(range(release.values.size))
        assert "index" not in release.to_arrow().column_names
    release = so.plan(so.Histogram(3), LOUD).release(days)
    assert list(release.to_pandas().index) == ["mon", "tue", "wed"]
    assert list(release.answer(rows).to_pandas().index) == [0, 1, 2]
    assert list(release.answer(rows).answer(so.RunningSum(3)).to_pandas().index) == ["mon", "tue", "wed"]


# 2.9
DATES = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"]))
NO_RECORDS = {
    "datetime64": DATES,
    "datetime64 array": DATES.to_numpy(),
    "time zone": DATES.dt.tz_localize("UTC"),
    "timedelta": np.array([1, 2], dtype="m8[s]"),
    "period": pd.period_range("2026", "2027", freq="Y"),
    "category column": pd.Series(["a", "b"]).astype("category"),
    "intervals": pd.cut(pd.Series([1, 2]), [0, 1, 2]),
    "complex": np.array([1j, 1]),
}


@pytest.mark.parametrize("records", NO_RECORDS.values(), ids=NO_RECORDS)
@pytest.mark.parametrize("bins", [3, [0.0, 1.0, 2e18]])
def test_columns_that_are_no_numbers_are_refused_by_dtype(records, bins):
    with pytest.raises(so.errors.DataTypeError, match="cast it to"):
        tabulate(records, bins)


# 3.6
A, P = so.ApproxDP(epsilon=1.0, delta=1e-6), so.PureDP(epsilon=1.0)
ARRAY = np.array([5, 6])
RAW = {
    "schedule beyond floats": lambda: so.Ledger(A, schedule=[so.privacy.GaussianCost(mu=1e200)]),
    "schedule no sequence": lambda: so.Ledger(A, schedule=5),
    "guarantee(1000)": lambda: so.plan(
        so.Histogram(64),
        A,
        compression=so.sketches.Compression(sparsity=so.sketches.ChosenSparsity()),
        mechanism="compressive-gaussian",
    ).guarantee(1000),
    "array as a size": lambda: so.RunningSum(ARRAY),
    "array as a unit": lambda: so.AddRemove(ARRAY),
    "type as a size": lambda: so.RunningSum(int),
    "matrix 10**400": lambda: so.Matrix([[10**400]]),
    "kernel 10**400": lambda: so.Convolution([10**400]),
    "centres 10**400": lambda: so.smooth.GaussianKernels(0.5).at([[10**400]]),
    "complex matrix": lambda: so.Matrix(np.array([[1 + 1j]])),
    "dates as a matrix": lambda: so.Matrix(np.array([["2026-01-01"]], dtype="M8[D]")),
    "path": lambda: so.Plan.load(None),
}


@pytest.mark.parametrize("call", RAW.values(), ids=RAW)
def test_bad_parameters_raise_errors_of_sordino_alone(call):
    try:
        call()
    except so.SordinoError:
        return
    assert call is RAW["guarantee(1000)"]  # it has an answer
