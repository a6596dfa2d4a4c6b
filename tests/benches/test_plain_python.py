"""Every family of benchmarks has a baseline in plain Python, which the short form runs and checks.

Those that measure errors alone, or what is there before any work (import, sizes), have none.
"""

import pytest
from bench_runs import rows

SECTIONS = [
    ("noise.py", "plain Python", ["opendp"]),
    ("discrete.py", "times", ["opendp"]),
    ("several_cells.py", "plain Python", ["scipy"]),
    ("tables.py", "integers", ["pyarrow"]),
    ("consistent.py", "times generated", ["mbi", "statsmodels"]),
    ("fourier.py", "plain Python", ["scipy"]),
    ("marginals.py", "plain Python", ["scipy"]),
    ("calibration.py", "gaussian", ["dp_accounting", "opendp"]),
    ("streams.py", "batches", ["jax_privacy", "opendp", "scipy"]),
    ("stream_errors.py", "all", ["jax_privacy", "opendp"]),
    ("training.py", "steps", ["jax_privacy", "opendp"]),
    ("geometry.py", "optima", ["jax_privacy", "opendp", "scipy"]),
    ("optimality.py", "plain Python", ["jax_privacy", "matplotlib", "opendp", "scipy"]),
    ("sparse.py", "times", ["scipy"]),
    ("adaptive_marginals.py", "12 attributes of 8 levels", []),
    ("compressive.py", "sparse", ["scipy"]),
    ("smooth.py", "encode", ["scipy"]),
    ("event_streams.py", "functions", ["igraph", "networkx"]),
    ("services.py", "charges", []),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "section", "libraries"), SECTIONS, ids=[name for name, *_ in SECTIONS])
def test_a_family_is_measured_beside_plain_python(name, section, libraries):
    for library in libraries:
        pytest.importorskip(library)
    assert any(row["other"].startswith("plain Python") and row["ratio"] for row in rows(name, section))
