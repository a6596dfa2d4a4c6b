"""The mechanisms of streams by name, and what they serve.

A full name is `strategy-noise`; the strategy alone means Gaussian noise, or Laplace noise under `PureDP`.

==========================  =================================================================================
`identity`                  fresh noise on every item
`output`                    fresh noise on every sum
`blt`                       buffered linear Toeplitz: a few numbers of memory, any horizon
`comb`                      the same on a comb: sliding windows
`two-diagonals`             two diagonal scalings around it: near the optimum, hard horizon
`time-varying-blt`          buffers whose coefficients change with the step: the least error, hard horizon
`outer`                     outer factor of any causal filter
`square-root`               exact square root of the workload's series
`normalized-square-root`    the same with equal columns, hard horizon
`optimal`                   the least error of all, up to 1024 steps, with certificate
`binary-tree`               binary tree of sums
`honaker-tree`              the same, averaged from below
`smooth-tree`               binary tree with the same variance at every step
`subtraction-tree`          k-ary tree with subtraction, Laplace noise
==========================  =================================================================================
"""

from dataclasses import dataclass

from sordino.accuracy.bounds import LONGEST_PREFIXES
from sordino.mechanisms.catalogue import Entry
from sordino.workloads import ExponentialSmoothing, MovingAverage, RunningAverage, RunningSum, Workload
from sordino.workloads.continual import Horizon

__all__ = ["MOST_TABLES", "STREAM_MECHANISMS", "StreamMechanism"]

_SUMS = (RunningSum, RunningAverage)
# Beyond these lengths the certified optimum, or tables for every step, take too much time or memory.
_MOST_OPTIMAL = 1024
_MOST_STEPS = 2**40
MOST_TABLES = 2**24
"""Steps of a stream with numbers for each of them."""


@dataclass(frozen=True)
class StreamMechanism(Entry):
    """A strategy for streams with a law of noise."""

    def serves(self, workload: Workload, horizon: Horizon) -> bool:
        """Return whether the strategy is made for this stream (the core has the last word)."""
        sums, decay = isinstance(workload, _SUMS), isinstance(workload, ExponentialSmoothing)
        length: int = getattr(workload, "length", None) or _MOST_STEPS
        hard = horizon == "hard"
        match self.strategy:
            case "identity":
                return True
            case "blt":
                return sums or decay
            case "square-root":
                return decay or (sums and hard and length <= MOST_TABLES)
            case "two-diagonals" | "normalized-square-root":
                return sums and hard and length <= MOST_TABLES
            case "time-varying-blt":
                return sums and hard and length <= LONGEST_PREFIXES
            case "optimal":
                return sums and hard and length <= _MOST_OPTIMAL
            case "output":
                return sums and hard
            case "comb":
                return isinstance(workload, MovingAverage) and workload.window > 1
            case "outer":
                return not sums and not decay
            case _:
                return sums


def _both(strategy: str, automatic: bool = True) -> tuple[StreamMechanism, StreamMechanism]:
    return (
        StreamMechanism(f"{strategy}-laplace", strategy, "laplace", automatic),
        StreamMechanism(f"{strategy}-gaussian", strategy, "gaussian", automatic),
    )


STREAM_MECHANISMS: tuple[StreamMechanism, ...] = (
    *_both("identity"),
    *_both("output"),
    StreamMechanism("blt-gaussian", "blt", "gaussian"),
    StreamMechanism("comb-gaussian", "comb", "gaussian"),
    StreamMechanism("two-diagonals-gaussian", "two-diagonals", "gaussian"),
    StreamMechanism("time-varying-blt-gaussian", "time-varying-blt", "gaussian", automatic=False),
    *_both("binary-tree"),
    *_both("smooth-tree", automatic=False),
    StreamMechanism("subtraction-tree-laplace", "subtraction-tree", "laplace"),
    StreamMechanism("honaker-tree-gaussian", "honaker-tree", "gaussian", automatic=False),
    StreamMechanism("outer-gaussian", "outer", "gaussian"),
    StreamMechanism("square-root-gaussian", "square-root", "gaussian", automatic=False),
    StreamMechanism("normalized-square-root-gaussian", "normalized-square-root", "gaussian", automatic=False),
    StreamMechanism("optimal-gaussian", "optimal", "gaussian", automatic=False),
)
"""All mechanisms of streams, the simpler ones first: that is how ties are broken."""
