"""What plans are and what they release, written down: equal before and after a change of the house.

`python tests/conformance/golden.py --write` makes the table anew. A line is a workload, privacy and unit; its entry the
mechanism, the integers of the door, the cost, the errors, and a hash of what is released of the same
data under a known key.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cases
import numpy as np

import sordino as so

TABLE = Path(__file__).with_name("golden.json")

PRIVACIES: dict[str, Any] = {
    "pure": cases.PURE,
    "approx": cases.APPROX,
    "zcdp": so.ZeroConcentratedDP(rho=0.1),
    "gaussian": so.GaussianDP(mu=0.5),
}
UNITS: dict[str, Any] = {
    "one": so.AddRemove(1),
    "three": so.AddRemove(3, per_cell=1),
    "replace": so.ReplaceOne(2),
}
STREAM_UNITS: dict[str, Any] = {**UNITS, "user": so.UserLevel(max_participations=3, min_separation=5)}
LARGE: dict[str, so.workloads.Workload] = {
    "year": so.MovingAverage(window=7, length=365),
    "long sums": so.RunningSum(4096),
    "long ranges": so.AllRanges(700),
    "long histogram": so.Histogram(100_000),
    "long ring": so.MovingAverage(24, 8760, boundary="circular"),
    "long marginals": so.Marginals([4, 5, 6, 2], k=2),
    "long product": so.Kronecker([so.RunningSum(64), so.Histogram(12)]),
    "map": so.Histogram((64, 64)),
}
# Whose searches end in other digits on other processors: what `auto` takes of such is among the large ones.
_LONG = {"long product", "long parts"}
SMOOTH: dict[str, Any] = {
    "Gaussian kernels": so.smooth.GaussianKernels(0.3),
    "Laplace kernels": so.smooth.LaplaceKernels(0.5),
    "Matern kernels": so.smooth.MaternKernels(0.5),
    "smooth": so.smooth.KSmooth(4),
}
POINTS = np.array([[-0.5, 0.3], [0.0, 0.1], [0.25, -0.9], [0.9, 0.9], [0.1, 0.2]])


def _hash(*arrays: Any) -> str:
    """Return a hash: of integers as they are, of floats to 10 digits, since machines sum in orders of their own."""
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        exact = array.dtype.kind == "i"
        digest.update(array.tobytes() if exact else ",".join(f"{x:.9e}" for x in array.reshape(-1).tolist()).encode())
    return digest.hexdigest()[:16]


def _float(value: float | None) -> str | None:
    return None if value is None else f"{value:.10e}"


def _door(door: Any) -> list[int]:
    return [door.grid, door.quarter_units]


def _table(plan: Any, data: Any) -> dict[str, Any]:
    with so.testing.deterministic_noise(cases.KEY):
        release = plan.release(data)
    return {
        "mechanism": plan.mechanism,
        "door": _door(plan.fit.door),
        "cost": plan.cost.to_json(),
        "rmse": _float(plan.rmse),
        "max_stderr": _float(plan.max_stderr),
        "optimality": _float(plan.optimality),
        "released": _hash(release.measured.units, release.values),
    }


def _stream(plan: Any, dim: int = 1) -> dict[str, Any]:
    items = np.arange(20 * dim).reshape((20,) if dim == 1 else (20, dim)) % 7
    with so.testing.deterministic_noise(cases.KEY):
        release = plan.release(items)
    return {
        "mechanism": plan.mechanism,
        "door": _door(plan.fit.door),
        "cost": plan.cost.to_json(),
        "rmse": _float(plan.rmse),
        "max_stderr": _float(plan.max_stderr),
        "optimality": _float(plan.optimality),
        "released": _hash(release.values, plan.fit.half_width([1, 5, 20], 0.95)),
    }


def _opened(case: Any) -> dict[str, Any]:
    plan = case.make()
    with so.testing.deterministic_noise(cases.KEY), plan.open() as stream:
        totals = []
        for _ in range(4):
            case.update(stream)
            totals.append(case.total(stream))
    return {
        "mechanism": plan.mechanism,
        "door": _door(plan.fit.doors[0]),
        "cost": plan.cost.to_json(),
        "released": _hash(totals),
    }


def _smooth(plan: Any) -> dict[str, Any]:
    with so.testing.deterministic_noise(cases.KEY):
        release = plan.release(POINTS)
    return {
        "mechanism": plan.mechanism,
        "door": _door(plan.fit.door),
        "cost": plan.cost.to_json(),
        "rmse": _float(plan.rmse),
        # The kernel mechanism's basis comes from LAPACK, its signs from the machine.
        "released": None if plan.mechanism.startswith("kernel") else _hash(release.sums),
    }


def _local(plan: Any) -> dict[str, Any]:
    with so.testing.deterministic_noise(cases.KEY), warnings.catch_warnings():
        messages = plan.encode_clients(np.array([0.1, 0.4, 0.7, 2.0]))
    return {
        "mechanism": plan.mechanism,
        "door": _door(plan.fit.doors[0]),
        "cost": plan.cost.to_json(),
        "max_stderr": _float(plan.max_stderr),
        "released": _hash(messages),
    }


def lines() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return every case: its name, and what makes its entry."""
    for table, privacy, mechanism, asked in cases.table_mechanisms():
        if table in _LONG:
            continue
        law = "pure" if privacy is cases.PURE else "approx"
        yield (
            f"table / {table} / {law} / {mechanism} / {asked}",
            lambda t=table, p=privacy, m=mechanism, a=asked: _table(cases.table_plan(t, p, m, a), cases.TABLES[t][1]),
        )
    for table, (workload, data) in cases.TABLES.items():
        if table in _LONG:
            continue
        for law, privacy in PRIVACIES.items():
            for name, unit in UNITS.items():
                yield (
                    f"auto / {table} / {law} / {name}",
                    lambda w=workload, p=privacy, u=unit, d=data: _table(so.plan(w, p, unit=u), d),
                )
    for name, workload in LARGE.items():
        data = np.zeros((3, 4), dtype=int) if name == "long marginals" else np.ones(workload.input_shape, dtype=int)
        for law in ("pure", "approx"):
            yield (
                f"large / {name} / {law}",
                lambda w=workload, p=PRIVACIES[law], d=data: _table(so.plan(w, p), d),
            )
    for table, mechanism, _ in cases.LOOKING:
        for law in ("pure", "approx"):
            for name, unit in UNITS.items():
                if law == "pure" and mechanism.endswith("gaussian"):
                    continue
                yield (
                    f"looking / {table} / {law} / {mechanism} / {name}",
                    lambda t=table, p=PRIVACIES[law], m=mechanism, u=unit: _table(
                        so.plan(cases.TABLES[t][0], p, mechanism=m, unit=u), cases.TABLES[t][1]
                    ),
                )
    for table, (workload, _) in cases.TABLES.items():
        for delta in (None, 1e-6):
            yield (
                f"privacy_for / {table} / {'pure' if delta is None else 'approx'}",
                lambda w=workload, d=delta: {"cost": so.privacy_for(w, rmse=3.0, delta=d).to_json()},
            )
    for name, privacy, mechanism in cases.filter_streams():
        law = "pure" if privacy is cases.PURE else "approx"
        yield (
            f"stream / {name} / {law} / {mechanism}",
            lambda n=name, p=privacy, m=mechanism: _stream(cases.filter_plan(n, p, m)),
        )
    for law, privacy in PRIVACIES.items():
        for name, unit in STREAM_UNITS.items():
            for horizon in ("hard", "soft", "unbounded"):
                yield (
                    f"sums / {law} / {name} / {horizon}",
                    lambda p=privacy, u=unit, h=horizon: _stream(
                        so.plan(so.Continual(so.RunningSum(2**14), horizon=h, dim=2, cells_per_record=2), p, unit=u), 2
                    ),
                )
    for case in cases.STREAMS:
        yield f"open / {case.name}", lambda c=case: _opened(c)
    for name, query_class in SMOOTH.items():
        workload = so.smooth.SmoothQueries(2, points=5, bounds=(-1.0, 1.0), query_class=query_class)
        for law in ("pure", "approx"):
            for unit_name, unit in (("one", so.AddRemove(1)), ("replace", so.ReplaceOne(1))):
                for row in so.compare(workload, PRIVACIES[law], unit=unit).rows:
                    yield (
                        f"smooth / {name} / {law} / {unit_name} / {row['mechanism']}",
                        lambda w=workload, p=PRIVACIES[law], u=unit, m=row["mechanism"]: _smooth(
                            so.plan(w, p, unit=u, mechanism=m)
                        ),
                    )
    for law, privacy in PRIVACIES.items():
        for mechanism in ("auto", *cases.LOCAL_MECHANISMS):
            if (mechanism, law) != ("blt", "pure"):
                yield (
                    f"local / {law} / {mechanism}",
                    lambda p=privacy, m=mechanism: _local(so.plan(cases.SURVEY, p, mechanism=m)),
                )


def made() -> dict[str, dict[str, Any]]:
    """Return the table as it is now."""
    return {name: make() for name, make in lines()}


if __name__ == "__main__":
    table = made()
    if "--write" in sys.argv:
        entries = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
        TABLE.write_text("{\n" + entries + "\n}\n")
    stored = json.loads(TABLE.read_text())
    for name in sorted(stored.keys() | table.keys()):
        if stored.get(name) != table.get(name):
            print(name, stored.get(name), table.get(name), sep="\n  ")
    print(len(table), "cases")
