"""What sordino costs before it does anything: import time over numpy's and beside its peers', size of the wheel.

The wheel is built from this tree by maturin into a temporary directory, if asked for:
`python benches/import_and_size.py --wheel`. Otherwise the size of the installed extension is reported.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from harness import Row, amount, main, noted, rounds

from sordino import _core

_ROOT = Path(__file__).resolve().parent.parent
_PEERS = ("opendp", "dp_accounting", "jax_privacy")
_MOST_SECONDS = 0.04
_MOST_BYTES = 3e6


def _import_time() -> list[Row]:
    """Fresh interpreters, interleaved: nothing, numpy, numpy and sordino, numpy and each peer that is installed."""
    peers = {name: f"import numpy, {name}" for name in _PEERS if importlib.util.find_spec(name) is not None}
    ours = {"both": "import numpy, sordino", "plan": "import numpy, sordino; sordino.plan"}
    programs = {"nothing": "pass", "numpy": "import numpy", **ours, **peers}
    # As installed: modules are compiled once, and read from then on.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(rounds(31) + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, env=environment)
            if turn:  # the first one fills the caches
                seconds[name].append(time.perf_counter() - start)
    medians = {name: median(times) for name, times in seconds.items()}
    others = {
        "numpy": medians["numpy"] - medians["nothing"],
        **{name: medians[name] - medians["numpy"] for name in peers},
    }
    bare, whole = (medians[name] - medians["numpy"] for name in ours)
    compared = ", ".join(f"{name}: {amount(figure)}" for name, figure in others.items())
    what = "import sordino after numpy (fresh interpreters, medians)"
    return [
        Row(what, amount(bare), compared, None, "≤ 40 ms", bare <= _MOST_SECONDS),
        noted("the same, and what a first plan fetches", amount(whole)),
    ]


def _size(wheel: bool) -> list[Row]:
    extension = Path(_core.__file__)
    rows = [noted("installed extension", f"{extension.stat().st_size / 1e6:.2f} MB")]
    maturin = shutil.which("maturin") or shutil.which("maturin", path=str(Path(sys.executable).parent))
    if wheel and maturin is not None:
        with tempfile.TemporaryDirectory() as folder:
            build = [maturin, "build", "--release", "--out", folder, "--interpreter", sys.executable]
            subprocess.run(build, check=True, cwd=_ROOT, stdout=sys.stderr)
            size = next(Path(folder).glob("*.whl")).stat().st_size
        rows.append(noted("wheel", f"{size / 1e6:.2f} MB", float(size), _MOST_BYTES, "≤ 3 MB"))
    return rows


def figures(wheel: bool = False) -> list[Row]:
    """Return all rows."""
    return _import_time() + _size(wheel)


if __name__ == "__main__":
    build_wheel = "--wheel" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--wheel"]
    main({}, lambda: figures(build_wheel))
