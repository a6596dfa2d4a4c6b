"""Fichtenberger, Henzinger & Upadhyay: Figures 1 to 4 and Table 2; the bounds of Table 1."""

import math

import numpy as np
import paper_figures
from harness import Row

from papers.result import Result

__all__ = ["PICTURES", "results"]

PICTURES = ("figure-1.png", "figure-2.png", "figure-3.png", "figure-4.png")

_SAID = ("print", "claimed", "implied by print")
_NOISE = (
    "the print is that of more noise than either constant says, for both mechanisms alike; here the noise is calibrated exactly, "
    "1.7 times less than by the paper's definition"
)
_WHY = {
    "share of streams": "the bound lacks a factor √2 and is made with the bound of Theorem 1, which is below the exact norm",
    "largest error over": "drawn in the paper with its constant; calibrated exactly here",
    "standard error at step": "the paper reads it off a picture of one run",
    "exceeds the bound": "the proof of Theorem 1 bounds a sum of a decreasing function by an integral that is smaller",
    "Mathias": "the distance is below 0.5 for the false bound only",
    "signal over noise, p": _NOISE,
    "mean absolute error": _NOISE,
    "commonest item's count": "exact calibration, and one vector of noise for the whole stream",
}


def _bounds() -> list[Result]:
    """Return what is true of the formula that all rows of Table 1 multiply."""
    found = []
    for bits in (8, 16, 20):
        length = 2**bits
        exact = float(paper_figures.norms(length)[-1])
        claimed = 1.0 + math.log((4.0 * length - 3.0) / 5.0) / math.pi
        found.append(
            Result(
                "Table 1",
                f"Ψ(T), which is in every row, at T = 2^{bits}; the exact product of the norms",
                f"{claimed:.4f}",
                f"{exact:.4f}",
                "Theorem 1 is false by 0.137 for large T",
            )
        )
    sizes = np.array([3, 5, 10])
    ratio = np.sqrt((sizes + 1.0) * (sizes + 2.0) / (3.0 * sizes))
    found.append(
        Result(
            "Table 1",
            "substrings of up to 3, 5, 10 letters: sensitivity over the paper's",
            "1",
            ", ".join(f"{value:.2f}" for value in ratio),
            "one letter changes the count of a substring at several times, and there are more pairs of windows than the proof counts",
        )
    )
    return found


def _result(place: str, row: Row) -> Result:
    """Return a row with the paper's number apart from what was computed by its formulas."""
    printed = [part.split(": ", 1)[1] for part in row.other.split("; ") if part.startswith(_SAID)]
    computed = [part for part in row.other.split("; ") if part and not part.startswith(_SAID)]
    why = next((text for key, text in _WHY.items() if key in row.what), "")
    made = "; ".join([row.ours, *computed])
    return Result(
        place.capitalize(), row.what.removeprefix(f"{place}, "), printed[0] if printed else "no number", made, why
    )


def results() -> list[Result]:
    rows = paper_figures.figures()
    found = []
    for place in ("figure 1", "figure 2", "table 2", "figure 4"):
        if place == "table 2":
            found += _bounds()
        found += [_result(place, row) for row in rows if row.what.startswith(place)]
    return found
