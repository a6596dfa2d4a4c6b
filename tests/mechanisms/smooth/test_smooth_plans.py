"""Plans of smooth queries: what is chosen, stored, charged, merged and refused."""

import hashlib
import json
import pickle

import numpy as np
import pytest

import sordino as so
from sordino import _core
from sordino.mechanisms.smooth.catalogue import SMOOTH_MECHANISMS

PURE, APPROX = so.PureDP(epsilon=1.0), so.ApproxDP(epsilon=1.0, delta=1e-6)
BOUNDS = [(10.0, 20.0), (-3.0, 1.0)]
KERNELS = so.smooth.GaussianKernels([4.0, 1.6])
CLASSES = {
    "gaussian": KERNELS,
    "matern": so.smooth.MaternKernels([6.0, 3.0], smoothness=2.5),
    "k-smooth": so.smooth.KSmooth(3, 2.0),
    "prior": so.smooth.CoefficientPrior(np.outer(0.5 ** np.arange(6), 0.7 ** np.arange(5))),
    "declared": KERNELS.at([[12.0, -1.0], [15.0, 0.0], [19.0, -2.0]]),
}
UNITS = [so.ReplaceOne(1), so.AddRemove(2, label="two visits"), so.UserLevel(3)]


def made(name="gaussian", unit=None, mechanism="auto", privacy=APPROX, points=200, **options):
    workload = so.smooth.SmoothQueries(2, points=points, bounds=BOUNDS, query_class=CLASSES[name], **options)
    return so.plan(workload, privacy, unit=unit or so.ReplaceOne(), mechanism=mechanism)


def data(n=200, seed=0):
    return np.array([10.0, -3.0]) + np.random.default_rng(seed).beta(2, 3, (n, 2)) * [10.0, 4.0]


# What is chosen.


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [PURE, APPROX, so.ZeroConcentratedDP(rho=0.1), so.GaussianDP(mu=0.5)])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["gaussian", "k-smooth", "prior"])
def test_auto_takes_the_least_error(name, privacy, unit):
    plan = made(name, unit, privacy=privacy)
    table = plan.compare()
    errors = [row["rmse"] for row in table.rows]
    # Of histograms nothing is known for a whole class of smooth functions: they have to be named.
    bounded = [row for row in table.rows if name != "k-smooth" or "histogram" not in row["mechanism"]]
    assert errors == sorted(errors) and table.chosen == bounded[0]["mechanism"] == plan.mechanism
    assert plan.rmse == bounded[0]["rmse"]
    names = {row["mechanism"] for row in table.rows}
    allowed = {m.name for m in SMOOTH_MECHANISMS if m.allows(privacy) and m.serves(plan.workload)}
    assert names | set(table.refused) == allowed and not names & set(table.refused)
    assert not isinstance(privacy, so.PureDP) or all(each.endswith("laplace") for each in names)
    for row in table.rows:
        own = so.plan(plan.workload, privacy, unit=unit, mechanism=row["mechanism"])
        assert (own.rmse, own.fit.noise, own.fit.truncation, own.fit.features.features) == tuple(
            row[key] for key in ("rmse", "noise", "truncation", "features")
        )
    assert plan.mechanism in str(table) and " *" in str(table)


def test_a_prior_without_any_of_the_indices_weighs_nothing():
    prior = so.smooth.CoefficientPrior(np.diag([0.0, 0.0, 1.0]))
    workload = so.smooth.SmoothQueries(2, points=50, bounds=BOUNDS, query_class=prior, index_set=[[1, 0], [0, 1]])
    plan = so.plan(workload, APPROX, unit=so.ReplaceOne(), mechanism="weighted")
    assert np.isfinite(plan.fit.stderr).all() and plan.fit.truncation == 1 and len(set(plan.fit.stderr)) == 1


def test_more_privacy_or_more_records_mean_more_noise():
    least = made(privacy=so.ApproxDP(epsilon=2.0, delta=1e-6), mechanism="weighted", degree=6)
    assert made(mechanism="weighted", degree=6).fit.noise > least.fit.noise
    for unit in (so.ReplaceOne, so.AddRemove):
        one, three = (made(unit=unit(k), mechanism="weighted", degree=6) for k in (1, 3))
        assert three.fit.noise == pytest.approx(3 * one.fit.noise, rel=1e-5)
        assert "moved" in one.explain() and f"{unit(3).label}" in three.explain()


def test_what_a_mechanism_cannot():
    with pytest.raises(so.errors.UnsupportedMechanismError):
        made(mechanism="kernel", privacy=PURE)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        made("k-smooth", mechanism="kernel")
    for mechanism in ("weighted", "chebyshev-gaussian", "histogram", "moments"):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            made("declared", mechanism=mechanism)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="PureDP"):
        made("declared", privacy=PURE)
    with pytest.raises(so.errors.InvalidParameterError, match="mechanism"):
        made(mechanism="fourier")
    with pytest.raises(so.errors.DataTypeError):
        made(mechanism=None)
    for name in ("histogram-laplace", "declared"):
        plan = made("declared") if name == "declared" else made(mechanism=name)
        with pytest.raises(so.errors.UnsupportedMechanismError):
            plan.fit.uniform_error(0.1)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="declared"):
        made().release(data()).declared()


@pytest.mark.parametrize(
    "options",
    [{"max_value": 5}, {"integral": False}, {"basis": "dct"}, {"effort": "closed_form"}],
)
def test_options_of_tables_are_refused(options):
    workload = so.smooth.SmoothQueries(2, points=10, bounds=BOUNDS, query_class=KERNELS)
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        so.plan(workload, APPROX, **options)


# Files.


FILES = {
    "kernel": made,
    "kernel-degree": lambda: made(mechanism="kernel", degree=6),
    "private": lambda: made(unit=UNITS[1]),
    "pure": lambda: made(privacy=PURE, unit=UNITS[2]),
    "weighted": lambda: made(mechanism="weighted-laplace", degree=(3, 5), approximation="jackson"),
    "total": lambda: made(mechanism="chebyshev", index_set="total", degree=5),
    "explicit": lambda: made(mechanism="weighted", index_set=np.array([[1, 0], [0, 3], [2, 2]])),
    "histogram": lambda: made(mechanism="histogram", degree=(3, 7)),
    "moments": lambda: made(mechanism="moments"),
    "k-smooth": lambda: made("k-smooth", mechanism="chebyshev", degree="paper"),
    "prior": lambda: made("prior"),
    "matern": lambda: made("matern", mechanism="kernel", degree=8),
    "declared": lambda: made("declared", unit=so.AddRemove(), most_points=1000),
}


@pytest.mark.parametrize("name", FILES)
def test_plans_come_back(name, tmp_path, known_noise):
    plan = FILES[name]()
    again = so.ReleasePlan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest and again.workload == plan.workload and again.unit == plan.unit
    assert (again.mechanism, again.fit.sizes, again.cost, again.rmse) == (
        plan.mechanism,
        plan.fit.sizes,
        plan.cost,
        plan.rmse,
    )
    assert again.explain() == plan.explain() and np.array_equal(again.fit.stderr, plan.fit.stderr)
    x = data()
    # Sums of one are sums of the other, and so are releases.
    assert np.array_equal(again.release(plan.sums(x)).sums, plan.release(x).sums)


def rewrite(path, change):
    """Change a stored plan and its digest, as someone who knows the format would."""
    record = json.loads(path.read_text())
    record.pop("digest")
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    record["digest"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(record))


TAMPERED = {
    "units": lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] // 2),
    "one-unit": lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] - 1),
    "grid": lambda r: r["doors"][0].update(grid=r["doors"][0]["grid"] - 1),
    "records": lambda r: r["request"]["unit"].update(records=3),
    "no-records": lambda r: r["request"]["unit"].update(records=0),
    "delta": lambda r: r["request"]["privacy"].update(delta=1e-9),
    "epsilon": lambda r: r["request"]["privacy"].update(epsilon=0.5),
    "event": lambda r: r.update(cost={"kind": "pure", "epsilon": 0.1}),
    "mechanism": lambda r: r.update(fitted="histogram-gaussian"),
    "no-mechanism": lambda r: r.update(fitted="magic"),
    "sizes": lambda r: r.update(sizes=[0, 4]),
    "float-sizes": lambda r: r.update(sizes=[4.0, 4.0]),
    "bool-sizes": lambda r: r.update(sizes=[True, True]),
    "more-sizes": lambda r: r.update(sizes=[4, 4, 4]),
    "large-sizes": lambda r: r.update(sizes=[2**20, 2**20]),
    "no-sizes": lambda r: r.update(sizes=None),
    "kind": lambda r: r["request"]["workload"].update(kind="matrix"),
    "spec": lambda r: r["request"]["workload"].update(spec=[]),
    "dimension": lambda r: r["request"]["workload"]["spec"].update(dimension=3),
    "bounds": lambda r: r["request"]["workload"]["spec"].update(bounds=[[10.0, 10.0], [-3.0, 1.0]]),
    "no-bounds": lambda r: r["request"]["workload"]["spec"].update(bounds=None),
    "points": lambda r: r["request"]["workload"]["spec"].update(points=0),
    "most-points": lambda r: r["request"]["workload"]["spec"].update(most_points=3),
    "class": lambda r: r["request"]["workload"]["spec"]["query_class"].update(kind="magic"),
    "bandwidth": lambda r: r["request"]["workload"]["spec"]["query_class"].update(bandwidth=-1.0),
    "field": lambda r: r["request"]["workload"]["spec"].update(colour=1),
    "less": lambda r: r["request"]["workload"]["spec"].pop("approximation"),
    "schema": lambda r: r.update(schema=99),
    "no-door": lambda r: r.pop("doors"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_plans_are_refused(name, tmp_path):
    path = made(mechanism="weighted", degree=(4, 5)).save(tmp_path / "plan.json")
    rewrite(path, TAMPERED[name])
    with pytest.raises(so.errors.PlanFileError):
        so.ReleasePlan.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_number_can_be_changed_into_less_noise(name, tmp_path):
    """Every number of the file, halved, one less, negated and zero: refused, or a plan with the noise it needs."""
    plan = FILES[name]()
    path = plan.save(tmp_path / "plan.json")
    whole = path.read_text()

    def leaves(node, at=()):
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for place, child in items:
            yield from leaves(child, (*at, place))
        if isinstance(node, int | float) and not isinstance(node, bool):
            yield at, node

    record = json.loads(whole)
    rng = np.random.default_rng(1)
    numbers = list(leaves(record))
    for place in rng.permutation(len(numbers))[:12]:
        at, value = numbers[place]
        for changed in (value / 2 if isinstance(value, float) else value // 2, value - 1, -value, 0):
            if changed == value:
                continue

            def change(r, at=at, changed=changed):
                for step in at[:-1]:
                    r = r[step]
                r[at[-1]] = changed

            path.write_text(whole)
            rewrite(path, change)
            try:
                loaded = so.ReleasePlan.load(path)
            except so.errors.PlanFileError:
                continue
            # What is loaded is what planning gives for what the file says.
            own = so.plan(loaded.workload, loaded.privacy, unit=loaded.unit, mechanism=loaded.mechanism)
            # Features of a kernel are read from the file: others have the noise that those need.
            if loaded.fit.sizes == own.fit.sizes and not loaded.record()["mixings"]:
                assert loaded.fit.door.noise == own.fit.door.noise
            assert loaded.fit.door.noise >= loaded.fit.ratio * sum(loaded.fit.sensitivity.values()) * (1 - 1e-12)
            assert loaded.cost == own.cost


def test_other_files_are_refused(tmp_path):
    path = made().save(tmp_path / "plan.json")
    path.write_text(path.read_text().replace("kernel-gaussian", "kernel-gaussiam"))
    with pytest.raises(so.errors.PlanFileError, match="digest"):
        so.ReleasePlan.load(path)
    table = so.plan(so.RunningSum(8), APPROX).save(tmp_path / "table.json")
    with pytest.raises(so.errors.PlanFileError):
        so.StreamPlan.load(table)
    with pytest.raises(so.errors.InputFileError):
        so.ReleasePlan.load(tmp_path / "nothing")
    with pytest.raises(so.errors.InputFileError):
        made().save(tmp_path / "no" / "folder")
    for text in ("", "[]", "{", "null", '{"schema": 1}', "\x00"):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(so.errors.PlanFileError):
            so.ReleasePlan.load(tmp_path / "bad")


def test_large_arrays_of_plans(tmp_path):
    """Many declared queries lie beside the plan, under their hash."""
    rng = np.random.default_rng(0)
    queries = KERNELS.at(rng.uniform([10, -3], [20, 1], (600, 2)))
    workload = so.smooth.SmoothQueries(2, points=100, bounds=BOUNDS, query_class=queries)
    plan = so.plan(workload, APPROX, unit=so.ReplaceOne())
    again = so.ReleasePlan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest and again.workload == workload and hash(again.workload) == hash(workload)


# The ledger.


def ledger(epsilon=3.0):
    return so.Ledger(so.ApproxDP(epsilon=epsilon, delta=1e-5))


def test_a_release_is_charged_once():
    plan, book = made(), ledger()
    release = plan.release(data(), ledger=book, request_id="a")
    spent = book.spent
    again = plan.release(data(seed=5), ledger=book, request_id="a")
    assert again is release and book.spent == spent and release.accounted and release.private
    with pytest.raises(so.errors.DuplicateRequestError):
        made(mechanism="weighted").release(data(), ledger=book, request_id="a")
    # An equal plan made elsewhere is the same request.
    assert made().release(data(), ledger=book, request_id="a") is release
    other = plan.release(data(), ledger=book, request_id="b")
    assert other is not release and book.spent != spent
    assert not np.array_equal(other.sums, release.sums)
    assert not plan.release(data()).accounted


# Iterators are used up: made when they are asked for.
BAD_DATA = {
    "few": data(199),
    "many": data(201),
    "none": np.empty((0, 2)),
    "coordinates": np.zeros((200, 3)),
    "flat": np.zeros(400),
    "cube": np.zeros((200, 2, 1)),
    "text": np.full((200, 2), "12.345678"),
    "text-list": [["12.345678", "x"]] * 200,
    "complex": np.full((200, 2), 1j),
    "dates": np.full((200, 2), "2020-01-01", dtype="datetime64[D]"),
    "nothing": None,
    "number": 12.345678,
    "string": "12.345678",
    "bytes": b"12.345678",
    "dict": {"a": [12.345678]},
    "batches-of-text": lambda: iter(["12.345678"]),
    "batches-of-none": lambda: iter([None]),
    "batches-of-numbers": lambda: iter([12.345678]),
    "set": {12.345678},
    "masked": np.ma.masked_array(np.full((200, 2), 12.345678), np.arange(400).reshape(200, 2) == 7),
}


def fresh(name):
    bad = BAD_DATA[name]
    return bad() if callable(bad) else bad


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused_and_costs_nothing(name):
    book, bad = ledger(), fresh(name)
    with pytest.raises(so.SordinoError) as caught:
        made().release(bad, ledger=book, request_id="a")
    assert isinstance(caught.value, so.errors.DataTypeError | so.errors.ShapeError | so.errors.InvalidParameterError)
    assert "12.34" not in str(caught.value) and caught.value.__cause__ is None
    made().release(data(), ledger=book, request_id="a")


@pytest.mark.parametrize("name", [name for name in BAD_DATA if name not in {"few", "many", "none"}])
def test_errors_do_not_tell_how_many_points_there_are(name):
    """Nor what they are, under a private number of points."""
    bad = fresh(name)
    bad = iter([np.full((1789, 2), 12.0), bad]) if isinstance(bad, np.ndarray) else bad
    plan = made(unit=so.AddRemove(), points=50)
    with pytest.raises(so.SordinoError) as caught:
        plan.release(bad)
    assert not any(number in str(caught.value) for number in ("1789", "1989", "200", "199", "12.3"))


def test_private_counts_are_private():
    plan = made(unit=so.AddRemove(), points=50, most_points=300)
    for n in (0, 1, 200, 300):
        sums = plan.sums(data(n))
        assert repr(sums) == repr(plan.sums()) and repr(plan.release(sums)).count("200") == 0
    assert plan.release(plan.sums(data(301)) + plan.sums(data(301))).private is not None
    assert not any(x in repr(plan.release(data(277))) for x in ("277", "measured"))


@pytest.mark.parametrize("unit", [so.ReplaceOne(), so.AddRemove()])
@pytest.mark.parametrize("kind", ["list", "tuple", "float32", "fortran", "iterator", "ints", "bools", "readonly"])
def test_forms_of_arrays(unit, kind):
    plan = made(unit=unit, points=6)
    x = np.array([[11, 0], [12, -1], [13, -2], [20, 1], [10, -3], [15, 0]], dtype=float)
    if kind == "bools":
        x = x > 11
    same = {
        "list": x.tolist(),
        "tuple": tuple(map(tuple, x)),
        "float32": x.astype(np.float32),
        "fortran": np.asfortranarray(x),
        "iterator": iter([x[:2], x[2:2], x[2:].tolist()]),
        "ints": x.astype(np.int8),
        "bools": x,
        "readonly": np.frombuffer(x.astype(float).tobytes()).reshape(6, 2),
    }[kind]
    assert plan.sums(same).to_bytes() == plan.sums(x.astype(float)).to_bytes()


def test_forms_of_tables():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    plan, x = made(), data()
    expected = plan.sums(x).to_bytes()
    frame = pd.DataFrame(x, columns=["a", "b"])
    table = pa.table({"a": x[:, 0], "b": x[:, 1]})
    for same in (frame, table, iter(table.to_batches(max_chunksize=33)), frame.astype("Float64"), frame.astype(object)):
        assert plan.sums(same).to_bytes() == expected
    for bad in (
        frame.assign(a=pd.array(["12.345678"] * len(frame), dtype="string")),
        frame.assign(c=1.0),
        pa.table({"a": ["12.345678"] * 200, "b": x[:, 1]}),
    ):
        with pytest.raises((so.errors.DataTypeError, so.errors.ShapeError, so.errors.InvalidParameterError)) as caught:
            plan.sums(bad)
        assert "12.3" not in str(caught.value)


def test_small_data():
    for n in (1, 2):
        plan = made(points=n)
        release = plan.release(data(n))
        assert release.points == n and np.isfinite(release.query(KERNELS.at([[12.0, 0.0]])).values).all()
    line = so.smooth.SmoothQueries(1, points=5, bounds=(0, 1), query_class=so.smooth.GaussianKernels(0.3))
    plan = so.plan(line, APPROX, unit=so.ReplaceOne())
    for x in (np.linspace(0, 1, 5), np.linspace(0, 1, 5)[:, None], [0, 0.25, 0.5, 0.75, 1]):
        assert plan.sums(x).to_bytes() == plan.sums(np.linspace(0, 1, 5)).to_bytes()
    assert made(unit=so.AddRemove()).release([]).points >= 1


def test_constants_alone_need_no_summary():
    """Degree 1: no sum that a point changes; with a private number of points that number."""
    plan = made(unit=so.AddRemove(), mechanism="chebyshev", degree=1)
    assert plan.fit.features.features == 1 and plan.fit.sensitivity["ideal"] > 0


# Sums.


def test_sums_go_to_bytes_and_files(tmp_path):
    plan, x = made(), data()
    whole = plan.sums(x)
    parts = [plan.sums(part) for part in np.array_split(x, 7)]
    total = plan.sums()
    for part in parts:
        total += so.smooth.PointSums.from_bytes(plan.fit, part.to_bytes())
    assert total.to_bytes() == whole.to_bytes() == sum(parts[1:], parts[0]).to_bytes()
    path = whole.save(tmp_path / "sums")
    assert path.stat().st_mode & 0o077 == 0
    assert so.smooth.PointSums.load(plan.fit, path).to_bytes() == whole.to_bytes()
    with pytest.raises(so.errors.InputFileError):
        so.smooth.PointSums.load(plan.fit, tmp_path / "nothing")
    with pytest.raises(so.errors.InputFileError):
        whole.save(tmp_path / "no" / "folder")
    release = plan.release(so.smooth.PointSums.load(plan.fit, path))
    assert release.points == 200
    with pytest.raises(so.errors.InvalidParameterError, match="public"):
        plan.release(parts[0])
    assert (parts[0] + parts[1]).core is not parts[0].core
    with pytest.raises(TypeError):
        parts[0] + 3


def test_sums_of_other_plans_are_refused():
    plan = made(degree=5, mechanism="chebyshev")
    others = [
        made(degree=6, mechanism="chebyshev"),
        made(degree=5, mechanism="histogram"),
        made(),
        made("declared"),
        made(degree=5, mechanism="chebyshev", points=10**6, unit=so.AddRemove()),
        so.plan(
            so.smooth.SmoothQueries(2, points=200, bounds=[(10, 20), (-3, 1.5)], query_class=KERNELS, degree=5),
            APPROX,
            unit=so.ReplaceOne(),
            mechanism="chebyshev",
        ),
    ]
    book = ledger()
    for other in others:
        sums = other.sums(data())
        with pytest.raises(so.errors.InvalidParameterError):
            plan.sums() + sums
        with pytest.raises(so.errors.InvalidParameterError):
            plan.release(sums, ledger=book)
        with pytest.raises(so.errors.InvalidParameterError):
            so.smooth.PointSums.from_bytes(plan.fit, sums.to_bytes())
    assert plan.release(data(), ledger=book).accounted


def test_damaged_sums_are_refused():
    plan = made(degree=3, mechanism="chebyshev")
    whole = plan.sums(data()).to_bytes()
    for place in range(0, len(whole), 5):
        with pytest.raises(so.errors.InvalidParameterError):
            so.smooth.PointSums.from_bytes(plan.fit, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for bad in (b"", whole[:-8], whole + bytes(8), bytes(len(whole))):
        with pytest.raises(so.errors.InvalidParameterError):
            so.smooth.PointSums.from_bytes(plan.fit, bad)
    for bad in (None, "x", 5):
        with pytest.raises(so.errors.DataTypeError):
            so.smooth.PointSums.from_bytes(plan.fit, bad)


def test_a_refused_batch_adds_nothing():
    plan = made()
    sums = plan.sums(data(150))
    before = sums.to_bytes()
    for bad in (np.zeros((3, 3)), "x", None):
        with pytest.raises(so.SordinoError):
            sums.update(bad)
        assert sums.to_bytes() == before


def test_sums_too_large_for_their_features_are_refused():
    """Bytes that no points give, under a right checksum, do not pass as sums of few points."""
    plan = made(degree=2, mechanism="chebyshev", unit=so.AddRemove())
    assert plan.fit.features.features == 4
    sums = _core.PointSums(plan.fit.features)
    with pytest.raises((so.SordinoError, ValueError)):
        sums.add(np.zeros((1, 3)))


# Arguments.


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": None},
        {"bounds": [(0, 1)]},
        {"bounds": [(0, 1), (1, 1)]},
        {"bounds": [(0, 1), (1, 0)]},
        {"bounds": [(0, 1), (0, float("nan"))]},
        {"bounds": [(0, 1), (0, float("inf"))]},
        {"bounds": [(0, 1), (-1.7e308, 1.7e308)]},
        {"bounds": [(0, 1, 2), (0, 1, 2)]},
        {"bounds": "ab"},
        {"bounds": 5},
        {"bounds": [(0, "1"), (0, 1)]},
        {"bounds": [(False, True), (0, 1)]},
        {"dimension": 0},
        {"dimension": 1001},
        {"dimension": 2.0},
        {"dimension": True},
        {"dimension": "2"},
        {"points": 0},
        {"points": -1},
        {"points": 1.5},
        {"points": True},
        {"points": None},
        {"points": 2**41},
        {"most_points": 3},
        {"most_points": 2**41},
        {"degree": 0},
        {"degree": -3},
        {"degree": 2.5},
        {"degree": True},
        {"degree": "best"},
        {"degree": (3,)},
        {"degree": (3, 0)},
        {"degree": None},
        {"degree": 2**13 + 1},
        {"index_set": "cross"},
        {"index_set": None},
        {"index_set": [[0, 1, 2]]},
        {"index_set": [[0.5, 1]]},
        {"index_set": [[-1, 1]]},
        {"index_set": [[0, 1], [0, 1]]},
        {"index_set": []},
        {"index_set": [[0, 1], [2]]},
        {"index_set": [[0, 2**13]]},
        {"index_set": [[0, 1]], "degree": 3},
        {"approximation": "none"},
        {"approximation": None},
        {"query_class": None},
        {"query_class": "gaussian"},
        {"query_class": so.smooth.GaussianKernels},
        {"query_class": so.smooth.GaussianKernels([1.0, 2.0, 3.0])},
        {"query_class": so.smooth.GaussianKernels(1e-9)},
        {"query_class": so.smooth.CoefficientPrior(np.ones(3))},
        {"query_class": so.smooth.GaussianKernels(1.0).at([[1.0, 2.0, 3.0]])},
    ],
)
def test_bad_workloads(change):
    arguments = {"dimension": 2, "points": 10, "bounds": BOUNDS, "query_class": KERNELS, **change}
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        so.smooth.SmoothQueries(arguments.pop("dimension"), **arguments)


def test_missing_bounds_say_why():
    with pytest.raises(so.errors.InvalidParameterError, match="public knowledge"):
        so.smooth.SmoothQueries(2, points=10, query_class=KERNELS)


def test_numpy_scalars_are_numbers():
    workload = so.smooth.SmoothQueries(
        np.int64(2),
        points=np.uint16(10),
        bounds=np.array(BOUNDS, dtype=np.float32),
        query_class=so.smooth.GaussianKernels(np.float32(1.5)),
        degree=np.int32(4),
        most_points=np.int64(100),
    )
    assert type(workload.points) is int and type(workload.degree) is int and type(workload.bounds[0][0]) is float
    assert workload == so.smooth.SmoothQueries(
        2, points=10, bounds=BOUNDS, query_class=so.smooth.GaussianKernels(1.5), degree=4, most_points=100
    )


@pytest.mark.parametrize("d", [6, 10, 100])
def test_what_does_not_fit_says_the_memory(d):
    workload = so.smooth.SmoothQueries(
        d, points=100, bounds=(-1, 1), query_class=so.smooth.GaussianKernels(0.5), degree=40
    )
    for mechanism in ("weighted", "chebyshev-laplace", "histogram"):
        with pytest.raises(so.errors.InvalidParameterError, match=r"[GT]B of memory"):
            so.plan(workload, APPROX, mechanism=mechanism)
    total = so.smooth.SmoothQueries(
        d, points=100, bounds=(-1, 1), query_class=so.smooth.GaussianKernels(0.5), degree=90, index_set="total"
    )
    with pytest.raises(so.errors.InvalidParameterError, match="of memory"):
        so.plan(total, APPROX, mechanism="weighted")
    if d > 6:
        with pytest.raises(so.errors.UnsupportedMechanismError, match="of memory"):
            so.plan(workload, APPROX, mechanism="kernel")


def test_many_points_must_fit_the_sums():
    plan = made(unit=so.AddRemove(), points=2**40)
    assert plan.fit.features.bits >= 16


@pytest.mark.parametrize(
    "make",
    [
        lambda: so.smooth.GaussianKernels(0),
        lambda: so.smooth.GaussianKernels(-1.0),
        lambda: so.smooth.GaussianKernels("1"),
        lambda: so.smooth.GaussianKernels([]),
        lambda: so.smooth.GaussianKernels(True),
        lambda: so.smooth.GaussianKernels(float("nan")),
        lambda: so.smooth.LaplaceKernels([1.0, 0.0]),
        lambda: so.smooth.MaternKernels(1.0, smoothness=2),
        lambda: so.smooth.KSmooth(0),
        lambda: so.smooth.KSmooth(1.5),
        lambda: so.smooth.KSmooth(2, -1),
        lambda: so.smooth.KSmooth(101),
        lambda: so.smooth.CoefficientPrior([1.0, -1.0]),
        lambda: so.smooth.CoefficientPrior([0.0]),
        lambda: so.smooth.CoefficientPrior([np.nan]),
        lambda: so.smooth.CoefficientPrior("x"),
        lambda: so.smooth.CoefficientPrior(1.0),
        lambda: KERNELS.at([1.0, 2.0]),
        lambda: KERNELS.at([[np.nan, 2.0]]),
        lambda: KERNELS.at([["a", "b"]]),
        lambda: KERNELS.at(np.empty((0, 2))),
        lambda: KERNELS.at([[1.0, 2.0]], [[1.0, 2.0]]),
        lambda: KERNELS.at([[1.0, 2.0]], [np.inf]),
        lambda: so.smooth.KernelQueries("gaussian", [[1.0, 2.0]]),
        lambda: so.smooth.Separable([]),
        lambda: so.smooth.Separable([np.sin, 3]),
        lambda: so.smooth.Separable(np.sin),
        lambda: so.smooth.MomentQueries([[1, -1]]),
        lambda: so.smooth.MomentQueries([[1, 0.5]]),
        lambda: so.smooth.MomentQueries([[65, 0]]),
        lambda: so.smooth.MomentQueries([[1, 0]], origin=[1.0]),
        lambda: so.smooth.Boxes([[0.0, 1.0]], [[1.0, 1.0]], 0.1),
        lambda: so.smooth.Boxes([[0.0, 1.0]], [[1.0, 2.0]], 0.0),
        lambda: so.smooth.Boxes([[0.0, 1.0]], [[1.0, 2.0]], [1.0, 2.0, 3.0]),
        lambda: so.smooth.Boxes([[0.0, np.nan]], [[1.0, 2.0]], 0.1),
        lambda: so.smooth.Boxes("a", "b", 0.1),
    ],
)
def test_bad_classes_and_queries(make):
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        make()


def raising(_):
    raise KeyError("on purpose")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["kernel", "weighted", "histogram"])
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        (raising, "KeyError"),
        (lambda z: z[:-1, 0], "shape"),
        (lambda z: 1.0, "shape"),
        (lambda z: z[:, :0], "shape"),
        (lambda z: z[:, :, None], "shape"),
        (lambda z: z[:, 0] * np.nan, "finite"),
        (lambda z: z[:, 0] / 0.0, "finite"),
        (lambda z: ["x"] * len(z), "numbers"),
        (lambda z: None, None),
        (lambda z: z[:, 0] * 1j, None),
        (so.smooth.Separable([raising, raising]), "KeyError"),
        (so.smooth.Separable([np.sin]), "factors"),
        (so.smooth.MomentQueries([[1, 2, 3]]), "columns"),
        (so.smooth.Boxes([[0.0]], [[1.0]], 0.1), "coordinates"),
        (so.smooth.GaussianKernels(1.0).at([[0.0]]), "coordinates"),
        (so.smooth.GaussianKernels([1.0, 1.0, 1.0]).at([[0.0, 0.0]]), "bandwidth"),
        (None, None),
        ("sin", None),
        (5, None),
        (np.ones(3), None),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_queries_of_releases(query, message, projected, mechanism):
    release = made(mechanism=mechanism, degree=4).release(data())
    release = release.projected() if projected else release
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError), match=message):
        release.query(query)


def test_bad_arguments_of_releases():
    plan = made(mechanism="weighted", degree=4)
    release = plan.release(data())
    for samples in (0, -1, 2.5, "x", True):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            release.query(lambda z: z[:, 0], samples=samples)
    with pytest.raises(so.errors.InvalidParameterError):
        release.query(lambda z: z[:, 0], samples=2**20)
    for level in (0, 1, -0.1, 2, "x", None):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            release.query(KERNELS.at([[12.0, 0.0]])).interval(level)
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            plan.fit.uniform_error(level)
    for at in ([[1.0]], [[1.0, 2.0, 3.0]], "x", None, [[["a", "b"]]]):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError, so.errors.ShapeError)):
            release.density(at)
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError, so.errors.ShapeError)):
        release.density([[np.nan, 0.0]])
    for bandwidth in (0, "x", [1.0], -1):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            release.density([[12.0, 0.0]], bandwidth=bandwidth)
    for grid in (0, -1, 2.5, "x", 10**5):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            release.projected(grid)
    for count in (0, -1, 1.5, None):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            release.projected(5).sample(count)
    for records in (0, -1, 1.5, "x"):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            plan.guarantee(records)


@pytest.mark.parametrize("argument", ["workload", "privacy", "unit"])
@pytest.mark.parametrize("bad", ["x", 3, 1.0])
def test_bad_arguments_of_plans(argument, bad):
    given = {
        "workload": so.smooth.SmoothQueries(2, points=10, bounds=BOUNDS, query_class=KERNELS),
        "privacy": APPROX,
        "unit": so.ReplaceOne(),
        argument: bad,
    }
    for do in (so.plan, so.compare):
        with pytest.raises(so.errors.DataTypeError):
            do(given["workload"], given["privacy"], unit=given["unit"])


def test_guarantees_are_sentences():
    plan = made(unit=so.AddRemove(2, label="two visits"), mechanism="kernel")
    assert "two visits" in plan.guarantee() and "1e-06" in plan.guarantee()
    assert plan.guarantee(4) != plan.guarantee(2)
    assert "lies" in made().guarantee()


def test_deterministic_noise_is_no_release(known_noise):
    release = made().release(data())
    assert not release.private and np.array_equal(release.sums, made().release(data()).sums)
    with pytest.raises(so.errors.InvalidParameterError):
        made().release(data(), ledger=ledger())


def test_arrays_of_releases_cannot_be_changed():
    release = made().release(data())
    for array in (release.sums, release.variances):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_what_is_public_pickles():
    for value in (CLASSES["gaussian"], CLASSES["k-smooth"], CLASSES["declared"], made().workload):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and hash(again) == hash(value)
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(made().sums(data()))


@pytest.mark.parametrize(
    "privacy", [so.ApproxDP(epsilon=1.0, delta=1e-6), so.PureDP(epsilon=1.0)], ids=["approx", "pure"]
)
def test_the_bound_over_the_whole_class_is_minimised_if_asked(privacy, tmp_path):
    """Fewer polynomials than for the mean, and a bound below that of any other degree nearby."""
    workload = so.smooth.SmoothQueries(1, points=10_000, bounds=(-1.0, 1.0), query_class=so.smooth.KSmooth(2, 1.0))
    mean, most = so.plan(workload, privacy), so.plan(workload, privacy, objective="max")
    bound = most.fit.uniform_error(0.05)
    assert bound < mean.fit.uniform_error(0.05)
    for degree in (most.fit.sizes[0] * 2, max(most.fit.sizes[0] // 2, 1)):
        other = so.smooth.SmoothQueries(
            1, points=10_000, bounds=(-1.0, 1.0), query_class=so.smooth.KSmooth(2, 1.0), degree=degree
        )
        assert bound < so.plan(other, privacy, objective="max").fit.uniform_error(0.05)
    again = so.Plan.load(most.save(tmp_path / "plan.json"))
    assert again.fit.sizes == most.fit.sizes and again.digest == most.digest
    assert so.compare(workload, privacy).rows  # the mean is what is shown unasked


def test_few_points_say_nothing_of_a_whole_class_and_that_is_found_at_once():
    workload = so.smooth.SmoothQueries(2, points=100, bounds=[(-1.0, 1.0)] * 2, query_class=so.smooth.KSmooth(1, 1.0))
    plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), objective="max")
    assert plan.fit.uniform_error(0.05) == 1.0 and max(plan.fit.sizes) < 200
    assert "no information" in plan.explain()
