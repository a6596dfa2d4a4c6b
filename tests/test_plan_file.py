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
    assert (again.rmse, again.max_stderr, again.event) == (plan.rmse, plan.max_stderr, plan.event)
    assert again.unit == plan.unit and again.domain == plan.domain and again.explain() == plan.explain()
    x = np.ones(plan.workload.input_shape)
    assert np.array_equal(again.release(x).values, plan.release(x).values)


def test_large_arrays_lie_beside_under_their_hash(tmp_path):
    path = PLANS[2]().save(tmp_path / "plan.json")
    beside = tmp_path / "plan.json.npz"
    assert beside.exists() and path.stat().st_size < 4096
    with np.load(beside) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name, array = next(iter(arrays.items()))
    np.savez(beside, **{name: array * 1.0000001})
    with pytest.raises(so.PlanFileError, match="altered"):
        so.Plan.load(path)
    np.savez(beside, other=array)
    with pytest.raises(so.PlanFileError, match="missing"):
        so.Plan.load(path)
    beside.write_bytes(b"PK broken")
    with pytest.raises(so.PlanFileError):
        so.Plan.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["door"].update(quarter_units=r["door"]["quarter_units"] // 2),
        lambda r: r["door"].update(grid=r["door"]["grid"] - 1),
        lambda r: r.update(event={"kind": "pure", "epsilon": 0.5}),
        lambda r: r["privacy"].update(epsilon=1e-13),
        lambda r: r["privacy"].update(kind="magic"),
        lambda r: r.update(mechanism="magic"),
        lambda r: r.update(mechanism="haar-laplace"),
        lambda r: r.update(schema=99),
        lambda r: r.update(objective="median"),
        lambda r: r["domain"].update(max_value=0),
        lambda r: r["domain"].update(max_value="x"),
        lambda r: r["workload"].update(kind="nothing"),
        lambda r: r["workload"]["spec"].update(window=99999),
        lambda r: r["workload"]["spec"].pop("window"),
        lambda r: r["unit"].update(records=2),
        lambda r: r.pop("door"),
        lambda r: r.pop("recipe"),
        lambda r: r.update(recipe=None),
    ],
)
def test_tampered_plans_are_refused(change, tmp_path):
    path = PLANS[0]().save(tmp_path / "plan.json")
    rewrite(path, change)
    with pytest.raises(so.PlanFileError):
        so.Plan.load(path)


def test_more_stored_noise_is_no_crime_and_digest_is_checked(tmp_path):
    path = PLANS[0]().save(tmp_path / "plan.json")
    rewrite(path, lambda r: r["door"].update(quarter_units=r["door"]["quarter_units"] * 2))
    so.Plan.load(path)
    path.write_text(path.read_text().replace('"mean"', '"max"'))
    with pytest.raises(so.PlanFileError, match="digest"):
        so.Plan.load(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(so.InputFileError):
        so.Plan.load(tmp_path / "nothing.json")
    with pytest.raises(so.InputFileError):
        so.Plan.load(tmp_path)
    with pytest.raises(so.InputFileError):
        PLANS[0]().save(tmp_path / "no" / "such" / "folder.json")
    for text in ["", "[]", "{", "null", "{}", '{"schema": 1}', "\x00"]:
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(so.PlanFileError):
            so.Plan.load(tmp_path / "bad.json")
