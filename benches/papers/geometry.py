"""Nikolov, Talwar & Zhang, who have no tables: their algorithms' errors beside certified bounds and ours."""

import geometry_errors
from harness import Row, in_process

from papers.result import Result

__all__ = ["PICTURES", "results"]

PICTURES = ("geometry-mechanisms.png", "geometry-projections.png")

_DENSE = {
    "as printed": "private, with more noise than it needs: what it measures together has a sensitivity below 1",
    "scaled to": "noise for the sensitivity that it has; its shares of the blocks are not the best ones",
    "optimal coefficients": "the paper's decomposition with the best shares",
    "minimum ellipsoid": "one part of the paper's algorithm by itself",
    "optimal strategy": "a convex program in place of the decomposition",
}
_PURE = {
    "as printed": "epsilon is split between the blocks",
    "scaled to": "noise for the sensitivity of all blocks together, its own shares",
    "block norms": "one norm for all blocks together, and no epsilon is split",
    "p-identity": "a search that no theorem covers",
    "ellipsoid norm": "one ellipsoid in place of blocks",
    "K-norm": "the norm of the workload itself, sampled exactly in few dimensions",
}


def _why(reasons: dict[str, str], what: str) -> str:
    return next((reason for key, reason in reasons.items() if key in what), "")


def _dense(row: Row) -> Result:
    assert row.ratio is not None
    made = f"{row.ours}, which is {row.ratio:.3g} times the least; {row.other}"
    return Result(
        "Theorem 13",
        f"total squared error, {row.what}",
        "O(log² d log 1/δ) times the least",
        made,
        _why(_DENSE, row.what),
    )


def _pure(row: Row) -> Result:
    assert row.ratio is not None
    made = f"{row.ours}, which is {row.ratio:.3g} times that of {row.other}"
    return Result(
        "Algorithm 4",
        f"total squared error, {row.what}",
        "polylogarithmic times the least",
        made,
        _why(_PURE, row.what),
    )


def _worst(row: Row) -> Result:
    why = "one release, with the strategy for the worst query, and no medians" if "optimal for" in row.what else ""
    return Result("Theorems 23, 24", row.what, "logarithms of d times the least", f"{row.ours}; {row.other}", why)


def _sparse(row: Row) -> Result:
    made = f"{row.ours}; {row.other}"
    why = "everything is projected at once, in the norm of the noise"
    return Result("Algorithm 3", f"squared error per query, {row.what}", "logarithms times the least", made, why)


def _result(row: Row) -> Result:
    if "no Gaussian strategy" in row.other:
        return _dense(row)
    if row.other.startswith("noise on the cells"):
        return _pure(row)
    return _sparse(row) if "Algorithm 3 as printed" in row.other else _worst(row)


def results() -> list[Result]:
    return [_result(row) for row in in_process(geometry_errors.__file__, "all", threads=1)]
