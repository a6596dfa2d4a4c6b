"""Saved plans: they come back, and a changed one does not."""

import hashlib
import json

import numpy as np
import pytest

import sordino as so

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PLANS = [
    lambda: so.plan(so.MovingAverage(7, 365), APPROX, unit=so.AddRemove(1, label="one flight")),
    lambda: so.plan(so.RunningSum(300), APPROX, objective="max"),
    lambda: so.plan(so.Convolution(np.linspace(0.1, 1, 900)), so.ZeroConcentratedDP(rho=0.1), unit=so.ReplaceOne(2)),
    lambda: so.plan(so.Marginals([2, 3, 4], k=2), so.GaussianDP(mu=1.0), unit=so.UserLevel(3)),
    lambda: so.plan(so.RunningSum(40), so.PureDP(epsilon=0.1), mechanism="tree"),
    lambda: so.plan(so.Matrix([[0.1, 0.2]]), APPROX, integral=False, max_value=50),
]


def rewrite(path, change):
    """Change a stored plan and its digest, as someone who knows the format would."""
    record = json.loads(path.read_text())
    record.pop("digest")
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    record["digest"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("make", PLANS)
def test_round_trip(make, tmp_path, known_noise):
    plan = make()
    path = plan.save(tmp_path / "plan.json")
    again = so.Plan.load(path)
    assert again.digest == plan.digest and again.mechanism == plan.mechanism
    assert (again.rmse, again.max_stderr, again.cost) == (plan.rmse, plan.max_stderr, plan.cost)
    assert again.unit == plan.unit and again.fit.domain == plan.fit.domain and again.explain() == plan.explain()
    x = np.ones(plan.workload.input_shape)
    assert np.array_equal(again.release(x).values, plan.release(x).values)


def test_large_arrays_lie_beside_under_their_hash(tmp_path):
    path = PLANS[2]().save(tmp_path / "plan.json")
    (beside,) = tmp_path.glob("plan.json.*.npz")
    assert beside.exists() and path.stat().st_size < 4096
    with np.load(beside) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name, array = next(iter(arrays.items()))
    np.savez(beside, **{name: array * 1.0000001})
    with pytest.raises(so.errors.PlanFileError, match="altered"):
        so.Plan.load(path)
    np.savez(beside, other=array)
    with pytest.raises(so.errors.PlanFileError, match="missing"):
        so.Plan.load(path)
    beside.write_bytes(b"PK broken")
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] // 2),
        lambda r: r["doors"][0].update(grid=r["doors"][0]["grid"] - 1),
        lambda r: r.update(cost={"kind": "pure", "epsilon": 0.5}),
        lambda r: r["request"]["privacy"].update(epsilon=1e-13),
        lambda r: r["request"]["privacy"].update(kind="magic"),
        lambda r: r.update(fitted="magic"),
        lambda r: r.update(fitted="haar-laplace"),
        lambda r: r.update(schema=99),
        lambda r: r["request"].update(objective="median"),
        lambda r: r["domain"].update(max_value=0),
        lambda r: r["domain"].update(max_value="x"),
        lambda r: r["request"]["workload"].update(kind="nothing"),
        lambda r: r["request"]["workload"]["spec"].update(window=99999),
        lambda r: r["request"]["workload"]["spec"].pop("window"),
        lambda r: r["request"]["unit"].update(records=2),
        lambda r: r.pop("doors"),
        lambda r: r.pop("request"),
        lambda r: r.update(request=None),
    ],
)
def test_tampered_plans_are_refused(change, tmp_path):
    path = PLANS[0]().save(tmp_path / "plan.json")
    rewrite(path, change)
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(path)


def test_more_stored_noise_is_no_crime_and_digest_is_checked(tmp_path):
    path = PLANS[0]().save(tmp_path / "plan.json")
    rewrite(path, lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] * 2))
    so.Plan.load(path)
    path.write_text(path.read_text().replace('"mean"', '"max"'))
    with pytest.raises(so.errors.PlanFileError, match="digest"):
        so.Plan.load(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(so.errors.InputFileError):
        so.Plan.load(tmp_path / "nothing.json")
    with pytest.raises(so.errors.InputFileError):
        so.Plan.load(tmp_path)
    with pytest.raises(so.errors.InputFileError):
        PLANS[0]().save(tmp_path / "no" / "such" / "folder.json")
    for text in ["", "[]", "{", "null", "{}", '{"schema": 1}', "\x00"]:
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(tmp_path / "bad.json")


QUERIES = so.Matrix([[1.0, 1, 0], [0, 1, 1], [1, 2, 3], [1, 0, 0]])
PURE = so.PureDP(epsilon=1.0)
SEARCHED = {
    "optimal": lambda: so.plan(QUERIES, APPROX, mechanism="optimal"),
    "ellipsoid": lambda: so.plan(QUERIES, APPROX, mechanism="ellipsoid"),
    "dense": lambda: so.plan(QUERIES, APPROX, mechanism="dense"),
    "dense-printed": lambda: so.plan(QUERIES, APPROX, mechanism="dense-printed"),
    "p-identity of whole counts": lambda: so.plan(QUERIES, PURE, mechanism="p-identity"),
    "p-identity": lambda: so.plan(QUERIES, PURE, mechanism="p-identity", integral=False),
    "k-norm": lambda: so.plan(QUERIES, PURE, mechanism="k-norm"),
    "ellipsoid, pure": lambda: so.plan(QUERIES, PURE, mechanism="ellipsoid"),
    "dense, pure": lambda: so.plan(QUERIES, PURE, mechanism="dense"),
    "sparse": lambda: so.plan(QUERIES, APPROX, mechanism="sparse-gaussian", constraint=so.optimal.PublicBound(9)),
    "sparse, pure": lambda: so.plan(QUERIES, PURE, mechanism="sparse", constraint=so.optimal.SignedBound(9)),
    "sparse-printed": lambda: so.plan(
        QUERIES, APPROX, mechanism="sparse-printed", constraint=so.optimal.PublicBound(1)
    ),
    "universal": lambda: so.plan(QUERIES, APPROX, mechanism="universal", constraint=so.optimal.PublicBound(9)),
    "product": lambda: so.plan(so.Kronecker([so.RunningSum(2), QUERIES]), APPROX, mechanism="optimal"),
}


def stored(values):
    array = np.asarray(values, dtype=float)
    return {"array": array.reshape(-1).tolist(), "shape": list(array.shape)}


def searched(**fields):
    return lambda r: r["factorization"].update(fields)


def certified(**fields):
    return lambda r: r["factorization"]["certificate"].update(fields)


def flipped(r):
    found = r["factorization"]
    found["law"] = "laplace" if found["law"] == "gaussian" else "gaussian"


def turned(r):
    found = r["factorization"]
    found["body"] = not found["body"]


NONSENSE = {
    "other law": flipped,
    "no law": searched(law="magic"),
    "other norm": turned,
    "norm as a word": searched(body="yes"),
    "other kind": searched(kind="identity"),
    "negative blocks": searched(blocks=[5, -1]),
    "huge blocks": searched(blocks=[2**40]),
    "blocks of words": searched(blocks=["1"]),
    "empty blocks": searched(blocks=[0, 3, 0]),
    "wrapped blocks": searched(blocks=[2**32 - 1, 4]),
    "blocks of fewer rows": searched(blocks=[1, 1]),
    "blocks of more rows": searched(blocks=[100]),
    "block or none": lambda r: searched(blocks=None if r["factorization"]["blocks"] else [3])(r),
    "less noise": searched(excess=0.5),
    "no noise": searched(excess="nan"),
    "infinite noise": searched(excess="inf"),
    "gap of nothing": searched(gap="nan"),
    "negative gap": searched(gap=-1.0),
    "negative iterations": searched(iterations=-1),
    "another objective": searched(objective="magic"),
    "not finite": searched(factors=[{"array": ["nan"] * 9, "shape": [3, 3]}]),
    "too large": searched(factors=[stored(np.eye(3) * 1e300)]),
    "too small": searched(factors=[stored(np.eye(3) * 1e-300)]),
    "dependent": searched(factors=[stored(np.ones((3, 3)))]),
    "nearly dependent": searched(factors=[stored(np.ones((3, 3)) + 1e-12 * np.eye(3))]),
    "too wide": searched(factors=[stored(np.ones((3, 4)))]),
    "too flat": searched(factors=[stored(np.ones(9))]),
    "not all queries": searched(factors=[stored(np.eye(3)[:2])]),
    "no rows": searched(factors=[stored(np.zeros((0, 3)))]),
    "huge shape": searched(factors=[{"array": [], "shape": [2**40, 2**40]}]),
    "huge empty shape": searched(factors=[{"array": [], "shape": [0, 2**62]}]),
    "no factors": searched(factors=[]),
    "null factors": searched(factors=None),
    "four factors": searched(factors=[stored(np.eye(3))] * 4),
    "no record": lambda r: r.update(factorization=[1]),
    "no search": lambda r: r.update(factorization=None),
    "exponent": lambda r: r["doors"][0].update(grid=5000),
    "astronomic noise": lambda r: r["doors"][0].update(quarter_units=10**400),
    "astronomic cells": lambda r: r["domain"].update(max_value=2**70),
    "infinite cells": lambda r: r["domain"].update(max_value="inf"),
    "constraint as a word": lambda r: r["request"].update(constraint="x"),
    "two constraints": lambda r: r["request"].update(constraint=[{"kind": "bound", "bound": 5}] * 2),
    "negative constraint": lambda r: r["request"].update(constraint={"kind": "bound", "bound": -5}),
    "effort": lambda r: r["request"].update(effort="much"),
    "unsearched": lambda r: r.update(fitted="identity-laplace"),
    "another search": lambda r: r.update(
        fitted="dense-rescaled-laplace" if r["fitted"].endswith("laplace") else "dense-rescaled-gaussian"
    ),
}
CERTIFICATES = {
    "negative weights": certified(cell_weights=[stored([-1, 1, 1])]),
    "too few weights": certified(cell_weights=[stored([1, 1])]),
    "no weights": certified(cell_weights=[]),
    "weights of nothing": certified(cell_weights=[{"array": ["nan", 1, 1], "shape": [3]}]),
    "zero weights": certified(cell_weights=[stored([0, 0, 0])]),
    "huge weights": certified(cell_weights=[stored([1e308, 1e308, 1e308])]),
    "no objective": certified(objective="magic"),
    "boast": certified(lower=1e9),
    "a little boast": lambda r: r["factorization"]["certificate"].update(
        lower=r["factorization"]["certificate"]["lower"] * (1 + 1e-6)
    ),
    "negative bound": certified(lower=-1.0),
    "bound of nothing": certified(lower="nan"),
    "without query weights": certified(objective="max"),
    "no certificate": searched(certificate=[]),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_tampered_searches_are_refused(name, tmp_path):
    plan = SEARCHED[name]()
    text = plan.save(tmp_path / "plan.json").read_text()
    assert so.Plan.load(tmp_path / "plan.json").digest == plan.digest
    path = tmp_path / "changed.json"
    changes = NONSENSE | (CERTIFICATES if name in {"optimal", "sparse"} else {})
    for change, apply in changes.items():
        path.write_text(text)
        rewrite(path, apply)
        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(path)
            pytest.fail(change)


@pytest.mark.parametrize("name", SEARCHED)
def test_other_measurements_get_the_noise_that_they_need(name, tmp_path):
    """A stored matrix may be any: what counts is that the noise is fitted to it."""
    plan = SEARCHED[name]()
    cells = plan.fit.factorization.matrix.shape[1]
    B = np.eye(cells)
    B[0, 0] = 50.0
    path = plan.save(tmp_path / "plan.json")
    blocks = plan.fit.factorization.blocks and [cells]
    rewrite(path, searched(factors=[stored(B)], blocks=blocks, certificate=None, gap=None))
    if name not in {"k-norm", "p-identity of whole counts"}:
        # The noise that is stored is too little.
        with pytest.raises(so.errors.PlanFileError, match="less noise"):
            so.Plan.load(path)
    rewrite(path, lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] * 200))
    again = so.Plan.load(path)
    # The norm of the hull measures in units of the columns themselves.
    size = 1.0 if again.fit.strategy.geometry == "body" else 50.0
    if again.fit.rows is not None:  # in units of the largest entry, for which the stored noise is enough
        steps, rates = again.fit.rows
        assert (steps >= 2**20).all() and (rates <= 1.0 + 1e-9).all()
        size = steps.max()
    assert again.fit.door.scale >= again.fit.ratio * size * (1.0 - 1e-12)
    assert again.fit.strategy.geometry == plan.fit.strategy.geometry
    assert (again.cost, again.privacy) == (plan.cost, plan.privacy)


def test_broken_archives(tmp_path):
    plan = so.plan(so.AllRanges(40), APPROX, mechanism="optimal")
    path = plan.save(tmp_path / "plan.json")
    (beside,) = tmp_path.glob("plan.json.*.npz")
    whole = beside.read_bytes()
    assert so.Plan.load(path).digest == plan.digest
    rng = np.random.default_rng(0)
    for cut in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        beside.write_bytes(whole[:cut])
        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(path)
    for at in rng.integers(0, len(whole), 200):
        spoiled = bytearray(whole)
        spoiled[at] ^= 1 << rng.integers(8)
        beside.write_bytes(bytes(spoiled))
        try:
            assert so.Plan.load(path).digest == plan.digest
        except so.errors.PlanFileError:
            continue
