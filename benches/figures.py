"""Run every benchmark; write the figures to the terminal, `figures.md` and between the markers of README.md.

Run `python benches/figures.py`, or name some: `python benches/figures.py noise fourier`. `--wheel` builds a wheel
for its size. `SORDINO_BENCH_QUICK=1` makes a short run, which writes no file. The exit code is 1 if an audit
fails; times never fail.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import adaptive_marginals
import audit
import audit_adaptive
import audit_laws
import audit_ledger
import audit_streams
import calibration
import compressive
import compressive_errors
import consistent
import discrete
import event_errors
import event_streams
import fourier
import geometry_errors
import import_and_size
import marginals
import noise
import optimality
import paper_figures
import planning
import pure_errors
import services
import several_cells
import smooth
import smooth_errors
import sparse
import stream_errors
import training
from generated import machine, written
from harness import Row, in_process, quick, table

import geometry
import streams
import tables

_HERE = Path(__file__).resolve().parent


def _main() -> int:
    wheel = "--wheel" in sys.argv
    benches: dict[str, Callable[[], list[Row]]] = {
        "noise": noise.figures,
        "discrete": discrete.figures,
        "several_cells": several_cells.figures,
        "tables": tables.figures,
        "consistent": consistent.figures,
        "fourier": fourier.figures,
        "marginals": marginals.figures,
        "pure_errors": pure_errors.figures,
        "calibration": calibration.figures,
        "streams": streams.figures,
        "stream_errors": stream_errors.figures,
        "geometry": geometry.figures,
        "geometry_errors": geometry_errors.figures,
        "optimality": optimality.figures,
        "planning": planning.figures,
        "sparse": sparse.figures,
        "adaptive_marginals": adaptive_marginals.figures,
        "compressive": compressive.figures,
        "compressive_errors": compressive_errors.figures,
        "smooth": smooth.figures,
        "smooth_errors": smooth_errors.figures,
        "training": training.figures,
        "event_streams": event_streams.figures,
        "event_errors": event_errors.figures,
        "services": services.figures,
        "paper_figures": paper_figures.figures,
        "import_and_size": partial(import_and_size.figures, wheel),
        "audit": audit.attacks,
        "audit_streams": partial(in_process, audit_streams.__file__, "all", threads=1),
        "audit_laws": audit_laws.figures,
        "audit_adaptive": audit_adaptive.figures,
        "audit_ledger": partial(in_process, audit_ledger.__file__, "all", threads=1),
    }
    chosen = [argument for argument in sys.argv[1:] if argument != "--wheel"] or list(benches)
    if unknown := set(chosen) - set(benches):
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(benches)}")
    ran = machine()
    readme = _HERE / "README.md"
    parts = [f"# Figures\n\n{ran}"]
    found: dict[str, list[Row]] = {}
    for name in chosen:
        found[name] = benches[name]()
        parts.append(f"## {name}\n\n{table(found[name])}")
        print(parts[-1], flush=True)
        if not quick():
            figures = f"{ran}\n\n{table(found[name])}"
            readme.write_text(written(readme.read_text(), name, figures))
    if not quick() and set(chosen) == set(benches):
        (_HERE / "figures.md").write_text("\n\n".join(parts) + "\n")
    missed = [row for rows in found.values() for row in rows if row.met is False]
    print(f"\n{len(missed)} goals missed" + "".join(f"\n  {row.what}: {row.ours}; {row.other}" for row in missed))
    audits = [row for name in benches if name.startswith("audit") for row in found.get(name, [])]
    return 0 if all(row.met for row in audits) else 1


if __name__ == "__main__":
    sys.exit(_main())
