"""What a compressive mechanism measures and how it is read: sizes, sketch, basis, recovery. All public."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

from sordino import _core
from sordino._support.checks import MAX_CELLS, integer, one_of, open_unit, sequence
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import gaussian_mu, noise_ratio, pure_epsilon, pure_of_mu
from sordino.privacy.costs import ApproxCost, Cost
from sordino.privacy.guarantees import ApproxDP, Privacy
from sordino.workloads.bases import Basis, basis_of

__all__ = ["ChosenSparsity", "Compression", "compression_from_json", "measurements_for", "sparsity_for"]

SketchKind = Literal["sparse", "bernoulli", "hadamard"]
RecoveryName = Literal["cosamp", "hard-thresholding", "basis-pursuit"]
Law = Literal["gaussian", "laplace"]

KINDS = ("sparse", "bernoulli", "hadamard")
RECOVERIES = ("cosamp", "hard-thresholding", "basis-pursuit")


def measurements_for(sparsity: int, cells: int) -> int:
    """Return `min(n/2, 2 S log2(n/S))`, rounded up: enough for recovery with room to spare."""
    wanted = math.ceil(2.0 * sparsity * max(math.log2(cells / sparsity), 1.0))
    return max(min(wanted, cells // 2), min(2 * sparsity, cells), 1)


def sparsity_for(measurements: int, cells: int) -> int:
    """Return the largest sparsity that so many measurements are enough for."""
    low, high = 1, max(min(measurements // 2, int(cells / math.e)), 1)
    while low < high:
        middle = (low + high + 1) // 2
        if 2.0 * middle * max(math.log2(cells / middle), 1.0) <= measurements:
            low = middle
        else:
            high = middle - 1
    return low


@lru_cache(maxsize=8)
def _operator(kind: str, cells: int, measurements: int, seed: int, nonzeros: int) -> _core.SketchOperator:
    """Return the sketch in the core; the last ones are kept, for a release asks for its own several times."""
    return _core.SketchOperator(kind, cells, measurements, seed, nonzeros)


def compression_within(numbers: int) -> Compression:
    """Return the default sketch of so many numbers.

    Raises:
        InvalidParameterError: There are less than two.
    """
    if numbers < 2:
        raise InvalidParameterError("memory must have room for two numbers at least")
    return Compression(measurements=numbers, nonzeros=min(4, numbers))


@dataclass(frozen=True)
class ChosenSparsity:
    """Let the data choose the sparsity, privately: a share of the budget goes to the choice.

    The choice is the noisy minimum of `||c - c_S||_1/sqrt(S) + noise(S)` over the candidates, `c` the coefficients; it
    needs the table, not a sketch. With cosines it is nearly blind at a small budget: a record changes all coefficients.
    Under `ApproxDP` Gaussian noise behind a choice costs an `ApproxCost`: a ledger that sums those is made with
    `composition="basic"`.

    Attributes:
        share: Part of epsilon that the choice may spend (under `GaussianDP` and `ZeroConcentratedDP` with Gaussian
            noise: of mu squared).
        candidates: Sparsities to choose from, rising; powers of two up to an eighth of the cells if None.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: The share is not strictly between 0 and 1, or candidates do not rise from 1.
    """

    share: float = 0.1
    candidates: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", open_unit("share", self.share))
        if self.candidates is not None:
            listed = sequence("candidates", self.candidates, "integers", ordered=False)
            found = tuple(integer("candidates", value, least=1, most=MAX_CELLS) for value in listed)
            found = tuple(sorted(found)) if isinstance(self.candidates, set | frozenset) else found
            if not found or any(a >= b for a, b in itertools.pairwise(found)):
                raise InvalidParameterError("candidates must rise, and there must be one at least")
            object.__setattr__(self, "candidates", found)

    def options(self, cells: int) -> tuple[int, ...]:
        """Return the candidates for tables of so many cells.

        Raises:
            InvalidParameterError: A candidate is more than cells/e.
        """
        found = self.candidates or tuple(2**i for i in range(max((cells // 8).bit_length(), 1)))
        if found[-1] > cells / math.e:
            raise InvalidParameterError(
                "candidates must be at most cells/e: beyond, the error is not that of the sketch"
            )
        return found


@dataclass(frozen=True)
class Compression:
    """A sketch in place of the table, and how the table is recovered from it.

    The sketch `y = Phi x` has k numbers in place of n; whoever has the seed can compute it, add to it and merge it.
    What is recovered is the table with at most S coefficients in the basis that explains `y` best.

    Attributes:
        measurements: k; if None, `min(n/2, 2 S log2(n/S))`.
        sparsity: S; if None, the largest that k allows. `ChosenSparsity` has it chosen privately.
        basis: In which the data is sparse: 'haar', 'cosine', 'standard', or an `OrthonormalBasis`.
        sketch: 'sparse' (few signs a column: least noise under pure privacy, O(s) a record), 'bernoulli' (dense
            signs), or 'hadamard' (rows of a Hadamard matrix).
        nonzeros: s, signs a column of the sparse sketch.
        seed: Of the sketch: public, stored in the plan. Sketches with one seed can be added.
        recovery: 'cosamp', 'hard-thresholding' or 'basis-pursuit'.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, or neither k nor S is given.
    """

    measurements: int | None = None
    sparsity: int | ChosenSparsity | None = None
    basis: Basis | str = "haar"
    sketch: SketchKind = "sparse"
    nonzeros: int = 4
    seed: int = 0
    recovery: RecoveryName = "cosamp"
    _chosen: int | None = None

    def __post_init__(self) -> None:
        if self.measurements is None and self.sparsity is None:
            raise InvalidParameterError("give measurements or sparsity")
        for name in ("measurements", "sparsity"):
            size = getattr(self, name)
            if size is not None and not (name == "sparsity" and isinstance(size, ChosenSparsity)):
                object.__setattr__(self, name, integer(name, size, least=1, most=2**53))
        object.__setattr__(self, "basis", basis_of(self.basis))
        object.__setattr__(self, "sketch", one_of("sketch", self.sketch, KINDS))
        object.__setattr__(self, "recovery", one_of("recovery", self.recovery, RECOVERIES))
        object.__setattr__(self, "nonzeros", integer("nonzeros", self.nonzeros, least=1, most=MAX_CELLS))
        object.__setattr__(self, "seed", integer("seed", self.seed, least=0, most=2**64 - 1))

    @property
    def transform(self) -> Basis:
        """The basis as an object."""
        return basis_of(self.basis)

    @property
    def choice(self) -> ChosenSparsity | None:
        """How the sparsity is chosen, if it is."""
        return self.sparsity if isinstance(self.sparsity, ChosenSparsity) else None

    @property
    def made(self) -> bool:
        """Whether the sparsity is known: given, or chosen already."""
        return self.choice is None or self._chosen is not None

    def sizes(self, cells: int) -> tuple[int, int]:
        """Return (k, S) for tables of so many cells; with a choice still to be made, those of the largest candidate.

        Raises:
            InvalidParameterError: k is more than n, or S is more than n/e or k/2.
        """
        if isinstance(self.sparsity, ChosenSparsity):
            sparsity: int | None = self._chosen or self.options(cells)[-1]
        else:
            sparsity = self.sparsity
        measurements = self.measurements
        if measurements is None:
            measurements = measurements_for(cast("int", sparsity), cells)
        if measurements > cells:
            raise InvalidParameterError(
                f"measurements must be at most the number of cells, {cells}: a sketch is smaller"
            )
        if sparsity is None:
            sparsity = sparsity_for(measurements, cells)
        if sparsity > cells / math.e:
            raise InvalidParameterError("sparsity must be at most cells/e; data with more coefficients is not sparse")
        if 2 * sparsity > measurements:
            raise InvalidParameterError("sparsity must be at most half the number of measurements")
        return measurements, sparsity

    def options(self, cells: int) -> tuple[int, ...]:
        """Return the sparsities to choose from: those that the measurements allow.

        Raises:
            InvalidParameterError: There are none.
        """
        assert isinstance(self.sparsity, ChosenSparsity)
        most = cells if self.measurements is None else self.measurements // 2
        found = tuple(s for s in self.sparsity.options(cells) if s <= most)
        if not found:
            raise InvalidParameterError("no candidate is at most half the number of measurements")
        return found

    def chosen(self, sparsity: int) -> Compression:
        """Return the same with the choice made."""
        return replace(self, _chosen=sparsity)

    def operator(self, cells: int) -> _core.SketchOperator:
        """Return the sketch in the core.

        Raises:
            InvalidParameterError: Sizes do not fit.
        """
        return _operator(self.sketch, cells, self.sizes(cells)[0], self.seed, self.nonzeros)

    def shares(self, privacy: Privacy, law: Law) -> tuple[float | None, float, Cost]:
        """Return epsilon of the choice (None without one), the noise ratio of the sketch, and what both cost."""
        whole = calibrated_cost(privacy, law)
        if self.choice is None:
            return None, noise_ratio(privacy, law), whole
        share = self.choice.share
        if law == "laplace":
            epsilon = pure_epsilon(privacy)
            first = share * epsilon
            return first, 1.0 / math.nextafter(epsilon - first, 0.0) * (1.0 + 2.0**-50), whole
        if isinstance(privacy, ApproxDP):
            first = share * privacy.epsilon
            rest = ApproxDP(epsilon=math.nextafter(privacy.epsilon - first, 0.0), delta=privacy.delta)
            return first, noise_ratio(rest, law), ApproxCost(privacy.epsilon, privacy.delta)
        mu = gaussian_mu(privacy)
        first = pure_of_mu(math.sqrt(share) * mu * (1.0 - 2.0**-50))
        return first, 1.0 / (mu * math.sqrt(1.0 - share)) * (1.0 + 2.0**-50), whole

    @cached_property
    def saved(self) -> dict[str, Any]:
        """The compression as a JSON object.

        Raises:
            UnsupportedMechanismError: The basis is given by functions, which cannot be saved.
        """
        basis = self.transform
        if basis.name == "custom":
            raise UnsupportedMechanismError("a basis given by functions cannot be saved: keep the plan in memory")
        choice = self.choice
        return {
            "measurements": self.measurements,
            "sparsity": self.sparsity if choice is None else None,
            "choice": None
            if choice is None
            else {"share": choice.share, "candidates": None if choice.candidates is None else list(choice.candidates)},
            "chosen": self._chosen,
            "basis": basis.name,
            "sketch": self.sketch,
            "nonzeros": self.nonzeros,
            "seed": self.seed,
            "recovery": self.recovery,
        }

    def __repr__(self) -> str:
        parts = [f"measurements={self.measurements}", f"sparsity={self.sparsity}", f"basis={self.transform.name!r}"]
        parts += [f"sketch={self.sketch!r}", f"seed={self.seed}", f"recovery={self.recovery!r}"]
        return f"Compression({', '.join(parts)})"


def compression_from_json(data: Any) -> Compression:
    """Read back what `Compression.saved` returned.

    Raises:
        PlanFileError: The object is malformed or a field is out of range.
    """
    try:
        choice = data["choice"]
        candidates = None if choice is None or choice["candidates"] is None else tuple(choice["candidates"])
        sparsity = data["sparsity"] if choice is None else ChosenSparsity(choice["share"], candidates)
        found = Compression(
            measurements=data["measurements"],
            sparsity=sparsity,
            basis=str(data["basis"]),
            sketch=data["sketch"],
            nonzeros=data["nonzeros"],
            seed=data["seed"],
            recovery=data["recovery"],
        )
        return found if data["chosen"] is None else found.chosen(integer("chosen", data["chosen"], least=1))
    except (KeyError, TypeError, DataTypeError, InvalidParameterError) as error:
        raise PlanFileError(f"the plan's compression cannot be rebuilt: {error}") from None
