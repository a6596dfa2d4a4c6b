"""Which searches are made without being named: from public sizes alone."""

from typing import TYPE_CHECKING

from sordino.workloads import AllRanges, Filter, GroupConvolution, Histogram, Marginals, Workload

if TYPE_CHECKING:
    from sordino.fitting import Objective, Request

__all__ = ["affords", "improves"]

# Cells up to which the optimal strategy, and those of pure privacy, are searched for.
_CELLS = {"gaussian": 512, "laplace": 256}
_MAX_ENTRIES = 2**25


def affords(request: "Request", law: str) -> bool:
    """Whether a search is quick enough to be made unasked."""
    cells, answers = request.workload.core.input_len, request.workload.core.answers_len
    if request.effort != "optimize" or cells is None or cells > _CELLS[law]:
        return False
    condensed = isinstance(request.workload, AllRanges) and request.objective == "mean"
    return condensed or answers * cells <= _MAX_ENTRIES


def improves(request: "Request") -> bool:
    """Whether a search may find a better Gaussian mechanism, or a better bound, than the closed forms."""
    return affords(request, "gaussian") and not _attained(request.workload, request.objective)


def _attained(workload: Workload, objective: "Objective") -> bool:
    """Whether a closed form attains the nuclear-norm bound: symmetric under a group acting on cells and answers."""
    match workload:
        case Histogram() | GroupConvolution() | Filter(boundary="circular"):
            return True
        case Marginals():
            return objective == "mean"
        case _:
            return False
