"""Li, Zhang, Winslett & Yang: Figures 3 to 6. Three of their files may be read but not handed on: `signals.hay`."""

import compressive_errors
from harness import Row, in_process

from papers.result import Result

__all__ = ["PICTURES", "results"]

PICTURES = ("compressive-choice.png", "compressive-epsilon.png", "compressive-streams.png")


_CHOSEN = "weights by a sensitivity that depends on S look for the least of another score, at smaller S"
_ORACLE = "for sketches the best of several sizes and algorithms is taken, which no user knows; noise and a threshold need no sketch"
_SPENT = "as printed it spends k times its ε; sketches that keep their promise have more noise"


def _all(row: Row) -> str:
    """Return the errors of sketches and of all others."""
    return f"{row.ours}; {row.other.split('; least')[0]}"


def _static(row: Row) -> str:
    """Return the paper's claim."""
    return (
        "more than noise on all cells"
        if row.what.endswith("epsilon 1")
        else "less than noise on all cells, and than all others"
    )


_TABLES = [
    Result(
        "Table 1",
        "error of the compressive mechanism",
        "O(log n/ε)",
        "O(S log(n/S)/ε)",
        "the table holds for a constant number S of coefficients only; noise and a threshold have O(√(S log n)/ε)",
    ),
    Result(
        "Table 2",
        "error of the mechanism on streams at ε",
        "O(log^1.5 T/ε)",
        "O(k log^1.5 T/ε)",
        "k counters spend kε as printed",
    ),
]


def results() -> list[Result]:
    choice = in_process(compressive_errors.__file__, "choice", threads=2)
    static = in_process(compressive_errors.__file__, "static", threads=2)
    streams = in_process(compressive_errors.__file__, "streams", threads=2)
    cosine, haar = ([row for row in static if (", cosine," in row.what) == wanted] for wanted in (True, False))
    return [
        *_TABLES,
        *(
            Result("Figure 3", row.what, "S near the best is chosen", f"{row.other}; ours: {row.ours}", _CHOSEN)
            for row in choice
        ),
        *(Result("Figure 4", row.what, _static(row), _all(row), _ORACLE) for row in haar),
        *(Result("Figure 5", row.what, "less than one counter an item", _all(row), _SPENT) for row in streams),
        *(Result("Figure 6", row.what, "far less than noise on all cells", _all(row), _ORACLE) for row in cosine),
    ]
