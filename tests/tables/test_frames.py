"""Frames of what a schema asked: every answer under its labels, beside plain sums of the bounded table."""

import itertools

import numpy as np
import pandas as pd
import pytest

import sordino as so

T = so.tables
LOUD = so.GaussianDP(mu=1e6)
STATES = {"a": "north", "b": "north", "c": "south"}


def made(values=None):
    dimensions = {
        "day": T.Times("2026-10-20", "2026-11-03", unit="day", zone="Europe/Berlin"),
        "city": T.Hierarchy(T.Levels(["a", "b", "c", "d"]), {"state": STATES}),
    }
    return so.Schema(dimensions, user="who", bounds=so.Bounds(5, 2, 8), values=values)


def records(count=3000):
    rng = np.random.default_rng(0)
    return {
        "day": np.datetime64("2026-10-20", "s") + rng.integers(0, 14 * 86_400, count),
        "city": rng.choice(list("abcde"), count),
        "who": rng.integers(0, 800, count),
        "spent": rng.gamma(2.0, 10.0, count),
    }


def test_groups_under_their_labels():
    schema = made()
    table = so.tabulate(records(), schema, request_id="r")
    days, cities = (axis.labels for axis in schema.dimensions.values())
    cells = pd.DataFrame([(d, c) for d in days for c in cities], columns=["day", "city"]).assign(n=table.counts)
    cells["day.month"], cells["city.state"] = cells["day"].str[:7], cells["city"].map(STATES)
    cells["city.total"] = "total"
    plan = so.plan(schema.group_by("day", "day.month", "city.state", "city.total", weights={"day.month": 4.0}), LOUD)
    frame = plan.release(table).to_frame()
    assert len(frame) == (14 + 2) * (2 + 1)
    for time, place in itertools.product(("day", "day.month"), ("city.state", "city.total")):
        expected = cells.groupby([time, place])["n"].sum()
        part = frame[frame[time].notna() & frame[place].notna()].set_index([time, place])["value"]
        assert len(part) == len(expected) and (part.round() == expected).all()
    assert ((frame["lower"] < frame["value"]) & (frame["value"] < frame["upper"])).all()
    # A weight multiplies an answer, not what the frame says of it.
    month = frame[frame["day.month"].notna()]
    assert (month["stderr"] < frame[frame["day"].notna()]["stderr"].min() * 14**0.5).all()
    one = so.Schema({"city": schema.dimensions["city"]}, user="who", bounds=so.Bounds(2))
    workload = one.group_by("city", "city.state")
    assert isinstance(workload, so.GroupBy) and workload.level_sizes == (4, 2)


def test_marginals_unions_and_cells_under_their_labels():
    schema = made()
    table = so.tabulate(records(), schema, request_id="r")
    release = so.plan(schema.marginals(1) | schema.counts(), LOUD).release(table)
    frame = release.to_frame(library="polars").to_pandas()
    assert list(frame.columns) == ["day", "city", "value", "stderr", "lower", "upper"] and len(frame) == 14 + 4 + 56
    cells = table.to_numpy()
    days, cities = frame[frame["city"].isna()], frame[frame["day"].isna()]
    assert days["value"].round().tolist() == cells.sum(axis=1).tolist() and days["day"].iloc[0] == "2026-10-20"
    assert cities.set_index("city")["value"].round().to_dict() == dict(zip("abcd", cells.sum(axis=0), strict=True))
    other = so.Schema({"city": T.Levels(["a"])}, user="who", bounds=so.Bounds(1))
    assert (schema.counts() | so.Histogram(56)).layout is None
    with pytest.raises(so.errors.InvalidParameterError):
        schema.counts() | other.counts()
    plain = so.plan(so.Histogram(3), LOUD).release(pd.Series([1, 2, 3], index=list("xyz")))
    assert plain.to_frame(library="pyarrow")["index"].to_pylist() == ["x", "y", "z"]
    assert plain.answer(so.RunningSum(3)).to_frame()["index"].tolist() == ["x", "y", "z"]


def test_sums_and_means_of_amounts():
    value = T.Value(5.0, 45.0, step=0.5)
    schema, data = made({"spent": value}), records()
    table = so.tabulate(data, schema, request_id="r")
    low, high = table.to_numpy().reshape(-1, 2).T
    count = (low + high) / value.height
    total = value.low * count + value.step * high
    for workload in (schema.counts(), schema.group_by("day", "city")):
        frame = so.plan(workload, LOUD).release(table).to_frame()
        assert np.allclose(frame["count"], count, atol=1e-2) and np.allclose(frame["spent_sum"], total, atol=0.5)
        known = count > 0
        assert np.allclose(frame["spent_mean"][known], (total / np.where(known, count, 1))[known], atol=0.1)
        assert frame["spent_mean"][~known].isna().all()
    with pytest.raises(so.errors.InvalidParameterError, match="marginals"):
        schema.marginals(1)


@pytest.mark.statistical
def test_errors_of_means_are_what_they_are():
    """300 releases: standard deviations within 5 standard errors (1/sqrt(600) of each) of what is said, of 27 each."""
    schema = so.Schema(
        {"g": T.Integers(0, 4)}, user="who", bounds=so.Bounds(3, 4, 10), values={"v": T.Value(0.0, 100.0, step=0.5)}
    )
    rng = np.random.default_rng(0)
    data = {"who": rng.integers(0, 2000, 20_000), "g": rng.integers(0, 5, 20_000), "v": rng.gamma(2, 10, 20_000)}
    table = so.tabulate(data, schema, request_id="r")
    for workload in (schema.group_by("g", "g.total", weights={"g.total": 2.0}), schema.counts()):
        plan, found, said = so.plan(workload, so.GaussianDP(mu=0.5)), [], []
        for seed in range(300):
            with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
                frame = plan.release(table).to_frame()
            found.append(frame[["count", "v_sum", "v_mean"]])
            said.append(frame[["count_stderr", "v_sum_stderr", "v_mean_stderr"]])
        ratio = np.std(found, axis=0) / np.mean(said, axis=0)
        assert np.abs(ratio - 1.0).max() < 5 / np.sqrt(600)


def test_a_schema_is_written_by_hand(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        """
user = "who"
label = "one guest"
[bounds]
max_cells = 5
per_cell = 2
max_records = 8
[dimensions.day]
times = { start = "2026-10-20", stop = "2026-11-03", unit = "day", zone = "Europe/Berlin" }
[dimensions.city]
levels = ["a", "b", "c", "d"]
hierarchy = { state = { a = "north", b = "north", c = "south" } }
[dimensions.age]
integers = { low = 0, high = 9 }
[dimensions.size]
edges = [0.0, 0.5, 2.0]
[values.spent]
low = 5.0
high = 45.0
step = 0.5
"""
    )
    read = so.Schema.from_toml(path)
    same = so.Schema(
        {
            **made().dimensions,
            "age": T.Integers(0, 9),
            "size": T.Edges([0.0, 0.5, 2.0]),
        },
        user="who",
        bounds=so.Bounds(5, 2, 8),
        values={"spent": T.Value(5.0, 45.0, step=0.5)},
        label="one guest",
    )
    assert read == same and hash(read) == hash(same) and read.group_by("city.state") == same.group_by("city.state")
    wrong = {
        "user = [": so.errors.InputFileError,
        "users = 'a'\n[dimensions.a]\nlevels=['x']": so.errors.InputFileError,
        "user = 'a'": so.errors.InputFileError,
        "[dimensions.a]\nlevel=['x']": so.errors.DataTypeError,
        "[dimensions.a]\nlevels=['x', 1]": so.errors.DataTypeError,
        "[dimensions.a]\nlevels=['x']\nothers='y'": so.errors.DataTypeError,
        "[dimensions.a]\nintegers={low=3, high=1}": so.errors.InvalidParameterError,
        "user = 'a'\n[dimensions.a]\nlevels=['x']": so.errors.InvalidParameterError,
        "user = 'a'\n[dimensions.a]\nlevels=['x']\n[bounds]\nmax=3": so.errors.InputFileError,
        "dimensions = 3": so.errors.InputFileError,
        "[dimensions]\na = 3": so.errors.DataTypeError,
        "user = 7\n[dimensions.a]\nlevels=['x']\n[bounds]\nmax_cells=3": so.errors.DataTypeError,
    }
    for text, error in wrong.items():
        path.write_text(text)
        with pytest.raises(error):
            so.Schema.from_toml(path)
    with pytest.raises(so.errors.InputFileError):
        so.Schema.from_toml(tmp_path / "missing.toml")
