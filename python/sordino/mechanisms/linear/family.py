"""Tables: which mechanism is taken, and which are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from sordino.accuracy.factorizations import Factorization, certify
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import named, recorded
from sordino.mechanisms.family import Column, Family, Shown, none_serves
from sordino.mechanisms.fits import USUAL_CELLS, Request, fit_all, least_error
from sordino.mechanisms.linear.catalogue import MECHANISMS, WRITTEN, Mechanism, parts_of
from sordino.mechanisms.linear.compression import compression_within
from sordino.mechanisms.linear.effort import affords, improves
from sordino.mechanisms.linear.fit import LinearFit, least_gaussian_error
from sordino.mechanisms.linear.fitting import fit_linear, with_best_branching
from sordino.mechanisms.linear.floors import LONG, Floors
from sordino.mechanisms.linear.measurement import Part
from sordino.mechanisms.linear.search import Progress
from sordino.mechanisms.linear.split import choose_parts
from sordino.privacy.units import AddRemove, ReplaceOne
from sordino.workloads import AllRanges, Histogram, Intervals, Kronecker, Matrix, Union, Workload
from sordino.workloads.constraints import PublicTotal
from sordino.workloads.recognition import recognised

__all__ = ["LINEAR"]

# An error over its bound that no tie betters.
_SETTLED = 1.006
# Two machines compute the same singular values to this.
_AGREE = 1.0 + 1e-9
_UNASKED = "searched for only when named: too many cells, or effort='closed_form'"


class _Linear(Family):
    name: ClassVar[str] = "linear"
    options: ClassVar[frozenset[str]] = frozenset(
        (
            "objective",
            "max_value",
            "integral",
            "constraint",
            "effort",
            "factorization",
            "basis",
            "compression",
            "memory",
            "noise",
        )
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", 14, ".6g"),
        Column("max_stderr", 14, ".6g", "max stderr"),
        Column("optimality", 12, ".4f", "over bound"),
        Column("rmse_kind", 13, "", "kind"),
    )

    def check(self, request: Request) -> Request:
        if isinstance(request.constraint, PublicTotal) and not isinstance(request.unit, ReplaceOne):
            raise InvalidParameterError("a public total cannot change with the protected thing: plan with ReplaceOne")
        request = replace(request, workload=_recognised(request))
        if request.objective == "max" and _has_unlisted_ranges(request.workload):
            raise UnsupportedMechanismError(
                "the largest error of more than 11,584 cells' ranges is not known: objective='mean'"
            )
        cells, memory, compression = request.workload.core.input_len, request.memory, request.compression
        if memory is None or cells is None:
            return request
        if compression is None and 8 * cells > memory:
            return replace(request, compression=compression_within(memory // 8))
        if compression is not None and 8 * compression.sizes(cells)[0] > memory:
            raise InvalidParameterError("this compression has more numbers than the memory")
        return request

    def choose(self, request: Request, progress: Progress | None = None) -> LinearFit:
        mechanism, found = request.mechanism, request.factorization
        if found is not None:
            own = "sparse" if request.constraint is not None else f"{found.kind}-{found.law}"
            name = own if mechanism == "auto" else mechanism
            _check_certificate(found, request)
            return fit_linear(request, named(MECHANISMS, name, request.privacy, request.noise), factorization=found)
        if mechanism != "auto":
            return _best_branching(request, named(MECHANISMS, mechanism, request.privacy, request.noise), progress)
        return _chosen(self._fitted(request, progress, all_of_them=False), request)

    def candidates(self, request: Request, progress: Progress | None = None) -> list[LinearFit]:
        """Return every mechanism that `auto` may take, fitted, the simpler ones first."""
        return self._fitted(request, progress, all_of_them=True)

    def _fitted(self, request: Request, progress: Progress | None, *, all_of_them: bool) -> list[LinearFit]:
        """Return them, or without those that cannot be taken at this privacy."""
        if request.constraint is None and _is_too_large(request):
            fits, refused = _fits(request, [m for m in MECHANISMS if m.strategy == "compressive"], progress)
            if not fits:
                why = "; ".join(sorted(set(refused.values())) or ["no sketch serves this workload"])
                raise UnsupportedMechanismError(f"the cells need more than the memory, and a sketch: {why}")
            return fits
        automatic = [m for m in MECHANISMS if _is_automatic(m, request)]
        fits = _first_of_long_lines(request, automatic, progress)
        near = [fit for fit in fits if (fit.optimality or math.inf) <= _SETTLED]
        if near:  # no other of its law has anything to gain
            automatic = [m for m in automatic if m.law != "gaussian"]
        automatic = [m for m in automatic if m not in [fit.mechanism for fit in fits]]
        floors, unfit = Floors(request, tuple(near)), {}
        for mechanism in sorted(automatic, key=lambda m: floors.of_one(m.law)):
            if all_of_them or not floors.rule_out(mechanism, fits):
                found, refused = _fits(request, [mechanism], progress)
                fits.extend(found)
                unfit.update(refused)
        fits = sorted(fits, key=lambda fit: MECHANISMS.index(fit.mechanism))
        if request.constraint is not None:
            # What is made for a constraint first: ties are its own.
            return fits + self._projecting(request, progress, searched=bool(fits))
        if not fits:
            raise none_serves(unfit)
        return fits

    def _projecting(self, request: Request, progress: Progress | None, *, searched: bool) -> list[LinearFit]:
        """Return the mechanism that would be taken without a constraint, projected.

        With what is made for one if that is not possible without more error, and was not searched for.

        Raises:
            UnsupportedMechanismError: None serves.
        """
        free = self.candidates(replace(request, constraint=None), progress)
        first = _chosen(free, request)
        others = sorted(free, key=lambda fit: fit.error(request.objective))
        found: list[LinearFit] = []
        why = UnsupportedMechanismError("no mechanism for these queries measures a table")
        for fit in (first, *others):
            try:
                own = fit_linear(request, fit.mechanism, fit.branching, fit.factorization, parts=fit.parts)
            except UnsupportedMechanismError as error:
                why = error
                continue
            found = [replace(own, passed_over=fit.passed_over)]
            break
        if searched or (found and _compares(found[0], first, request)):
            return found
        with suppress(UnsupportedMechanismError):
            found.append(
                _best_branching(request, named(MECHANISMS, "sparse", request.privacy, request.noise), progress)
            )
        if not found:
            raise why
        return found

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        # Thresholds serve every table, but are judged by its cells; a calibration by composition takes seconds.
        left_out = {"fourier-composed"} | (set() if isinstance(request.workload, Histogram) else {"threshold"})
        fits, refused = _fits(request, [m for m in MECHANISMS if m.strategy not in left_out], progress)
        if not fits:
            raise none_serves(refused)
        automatic = [fit for fit in fits if _is_automatic(fit.mechanism, request)]
        automatic = automatic or [fit for fit in fits if fit.mechanism.automatic]
        sketches = [fit for fit in fits if fit.mechanism.strategy == "compressive"]
        if request.constraint is not None:
            chosen = self.choose(request, progress)
        else:
            # With too little memory for the cells only a sketch is left.
            chosen = _chosen(sketches if sketches and _is_too_large(request) else automatic, request)
        ordered = sorted(fits, key=lambda fit: (_guesses(fit), fit.error(request.objective)))
        return Shown(
            ordered,
            chosen.name,
            refused,
            least_gaussian_error(request),
        )

    def row(self, fit: LinearFit, shown: Shown) -> dict[str, Any]:
        return {
            "rmse": fit.rmse,
            "max_stderr": fit.max_stderr,
            "rmse_kind": fit.rmse_kind,
            "optimality": fit.over(shown.bound),
            "inflation": fit.inflation,
        }

    def refit(self, request: Request, record: Mapping[str, Any]) -> LinearFit:
        mechanism = recorded(MECHANISMS, record["fitted"])
        if mechanism.strategy == "threshold" and record["request"]["basis"] == "custom":
            raise PlanFileError("a basis given by functions is in no file")
        stored = record["factorization"]
        if not mechanism.factored if stored is not None else mechanism.searched(request.workload):
            raise PlanFileError("the plan's mechanism and what it measures do not belong together")
        found = None if stored is None else Factorization.from_json(stored, request.workload, request.unit)
        measured = record.get("parts", [])
        apart = parts_of(request.workload, request.unit) if mechanism.strategy == "split" else None
        of = () if apart is None else apart.parts
        if len(measured) != len(of):
            raise PlanFileError("the plan's mechanism and its parts do not belong together")
        parts = tuple(Part.from_json(each, part, request.unit) for each, part in zip(measured, of, strict=False))
        return fit_linear(request, mechanism, int(record["branching"]), found, parts=parts)


LINEAR = _Linear()


def _recognised(request: Request) -> Workload:
    """Return what the queries are.

    A matrix that is searched for as it is stays one where another form knows less: merged cells of units that change
    several, products of all units but one record.
    """
    given = request.workload
    found = recognised(given)
    if not isinstance(given, Matrix) or min(given.A.shape) > WRITTEN:
        return found
    if isinstance(found, Intervals) and request.unit.changes is not None:
        return found if found.merged is found else given
    if isinstance(found, Kronecker) and (request.unit != AddRemove() or request.objective == "max"):
        return given
    return found


def _compares(fit: LinearFit, other: LinearFit, request: Request) -> bool:
    """Return whether a fit has no more error than another, but for a tie."""
    return fit.error(request.objective) <= 1.01 * other.error(request.objective)


def _guesses(fit: LinearFit) -> bool:
    """Return whether the error depends on how sparse the data is."""
    return fit.mechanism.strategy in {"threshold", "compressive"}


def _is_too_large(request: Request) -> bool:
    """Return whether the cells need more memory than there is."""
    cells = request.workload.core.input_len
    return request.memory is not None and cells is not None and 8 * cells > request.memory


def _chosen(fits: list[LinearFit], request: Request) -> LinearFit:
    """Return the fit of least error, of those that take cells as large as most data have unless a bound is declared."""
    best = least_error(fits, request.objective)
    widest = max(fit.domain.max_value for fit in fits)
    if request.max_value is not None or best.domain.max_value >= min(widest, USUAL_CELLS):
        return best
    wide = least_error([fit for fit in fits if fit.domain.max_value >= min(widest, USUAL_CELLS)], request.objective)
    return replace(wide, passed_over=best)


def _has_unlisted_ranges(workload: Workload) -> bool:
    if isinstance(workload, Kronecker | Union):
        parts = workload.factors if isinstance(workload, Kronecker) else workload.parts
        return any(map(_has_unlisted_ranges, parts))
    return isinstance(workload, AllRanges) and not workload.is_listed


def _is_automatic(mechanism: Mechanism, request: Request) -> bool:
    """Whether `auto` may take the mechanism: one that projects with a constraint, none that cannot improve."""
    if request.constraint is not None:
        return mechanism.strategy == "sparse"
    return mechanism.automatic and (mechanism.strategy != "optimal" or improves(request))


def _check_certificate(found: Factorization, request: Request) -> None:
    """Refuse a certificate that does not prove its bound for this workload: it is another's.

    Raises:
        InvalidParameterError: It does not.
    """
    proof = found.certificate
    if proof is None:
        return
    try:
        known = certify(request.workload, proof.objective, proof.cell_weights, proof.query_weights, proof.changes)
    except PlanFileError:
        known = None
    if known is None or proof.lower > known.lower * _AGREE:
        raise InvalidParameterError("this factorization is of another workload: its certificate proves nothing here")
    if not proof.holds_for(request.unit):
        raise InvalidParameterError("this factorization is of another unit: its certificate proves nothing here")


def _first_of_long_lines(request: Request, automatic: list[Mechanism], progress: Progress | None) -> list[LinearFit]:
    """Return what is likely so near the bound that no other Gaussian mechanism betters it by a tie.

    Nothing where fitting all of them takes no time.
    """
    least = WRITTEN if isinstance(request.workload, Union) else LONG
    if (request.workload.core.input_len or 0) <= least or request.objective != "mean":
        return []
    fits, _ = _fits(request, [m for m in automatic if m.strategy == "balanced"], progress)
    return fits


def _best_branching(request: Request, mechanism: Mechanism, progress: Progress | None = None) -> LinearFit:
    if mechanism.strategy == "split":
        return fit_linear(request, mechanism, parts=choose_parts(request, mechanism.law))
    return with_best_branching(request, mechanism, progress)


def _fits(
    request: Request, mechanisms: Iterable[Mechanism], progress: Progress | None
) -> tuple[list[LinearFit], dict[str, str]]:
    """Fit the mechanisms that serve; say of the others that should why they do not."""

    def serves(mechanism: Mechanism) -> bool:
        if mechanism.projected and request.constraint is None:
            return False
        if mechanism.strategy == "compressive" and request.compression is None:
            return False
        if mechanism.strategy == "identity-common" and not getattr(request.unit, "raises_several", False):
            return False
        return mechanism.serves(request.workload)

    def fit_one(mechanism: Mechanism) -> LinearFit:
        if mechanism.searched(request.workload) and not affords(request, mechanism.law, mechanism.strategy):
            raise UnsupportedMechanismError(_UNASKED)
        return _best_branching(request, mechanism, progress)

    return fit_all(filter(serves, mechanisms), request, fit_one)
