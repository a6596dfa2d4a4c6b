"""The mechanisms by name: what they need, and in which order ties are broken.

A full name is `strategy-noise`, such as `identity-laplace`; the strategy alone means Gaussian noise where the
privacy allows it and Laplace noise under `PureDP`.

=====================  ======================================================================================
`identity`             noise on every cell of the input
`output`               noise on every answer
`fourier`              optimal weights in the Fourier basis of the line, ring or group, and for marginals
`fourier-uniform`      marginals with the same noise on every character
`tree`                 tree of counts with least squares, best branching
`haar`                 Haar wavelet with optimal level weights
`square-root`          square root of a causal filter, lower triangular (Gaussian noise)
`fourier-composed`     Laplace noise on Fourier coefficients, calibrated by composition (`ApproxDP`)
`fourier-planar`       planar Laplace noise on each frequency, pure
`fourier-grouped`      spherical Laplace noise on blocks of frequencies, pure
=====================  ======================================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from sordino.errors import InvalidParameterError
from sordino.privacy import ApproxDP, Privacy, PureDP
from sordino.workloads import Filter, GroupConvolution, Histogram, Marginals, RunningSum, Workload

__all__ = ["MECHANISMS", "Mechanism", "entry_named", "mechanism_named"]

Law = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class Mechanism:
    """A strategy with a law of noise.

    Attributes:
        name: Full name.
        strategy: Name of the strategy in the core.
        law: Law of the noise.
        automatic: Whether `auto` considers it; otherwise it is reached by name only.
    """

    name: str
    strategy: str
    law: Law
    automatic: bool = True

    def allows(self, privacy: Privacy) -> bool:
        """Return whether this noise can give this privacy."""
        if self.strategy == "fourier-composed":
            return isinstance(privacy, ApproxDP)
        return self.law == "laplace" or not isinstance(privacy, PureDP)

    def branchings(self, workload: Workload) -> tuple[int, ...]:
        """Return the options to try."""
        if self.strategy != "tree":
            return (2,)
        size = max(workload.core.answers_len, 2)
        options = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32) if size <= 2**17 else (8, 16)
        return tuple(b for b in options if b <= size) or (2,)

    def serves(self, workload: Workload) -> bool:
        """Return whether the strategy is made for this workload (the core has the last word)."""
        match self.strategy:
            case "tree" | "haar":
                return isinstance(workload, RunningSum)
            case "square-root":
                return isinstance(workload, Filter) and workload.boundary == "causal"
            case "fourier-uniform":
                return isinstance(workload, Marginals)
            case "fourier-composed" | "fourier-planar" | "fourier-grouped":
                return isinstance(workload, Filter)
            case "fourier":
                return isinstance(workload, Filter | GroupConvolution | Marginals)
            case "output":
                return not isinstance(workload, Histogram | GroupConvolution)
            case _:
                return True


def _pair(strategy: str, automatic: bool = True) -> tuple[Mechanism, Mechanism]:
    return (
        Mechanism(f"{strategy}-laplace", strategy, "laplace", automatic),
        Mechanism(f"{strategy}-gaussian", strategy, "gaussian", automatic),
    )


MECHANISMS: tuple[Mechanism, ...] = (
    *_pair("identity"),
    *_pair("output"),
    *_pair("fourier"),
    *_pair("tree"),
    *_pair("haar"),
    Mechanism("square-root-gaussian", "square-root", "gaussian"),
    *_pair("fourier-uniform", automatic=False),
    Mechanism("fourier-planar", "fourier-planar", "laplace"),
    Mechanism("fourier-grouped", "fourier-grouped", "laplace"),
    Mechanism("fourier-composed", "fourier-composed", "laplace", automatic=False),
)
"""All mechanisms, the simpler ones first: that is how ties are broken."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def strategy(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Named)


def entry_named(mechanisms: Sequence[_Entry], name: str, privacy: Privacy) -> _Entry:
    """Return the mechanism that a user means: by full name, or by strategy with the noise that the privacy allows.

    Raises:
        InvalidParameterError: No such name.
    """
    by_name = {m.name: m for m in mechanisms}
    law = "laplace" if isinstance(privacy, PureDP) else "gaussian"
    found = by_name.get(name) or by_name.get(f"{name}-{law}") or by_name.get(f"{name}-laplace")
    if found is None:
        families = sorted({m.strategy for m in mechanisms})
        raise InvalidParameterError(f"unknown mechanism; choose 'auto' or one of {', '.join(families)}")
    return found


def mechanism_named(name: str, privacy: Privacy) -> Mechanism:
    """Return the mechanism of a release that a user means.

    Raises:
        InvalidParameterError: No such name.
    """
    return entry_named(MECHANISMS, name, privacy)
