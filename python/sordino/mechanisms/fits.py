"""A request and its fit: what every family has in common, said once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, get_args

from sordino._support.checks import flag, integer, one_of, text
from sordino._support.records import SCHEMA, record_digest
from sordino.accuracy.bounds import Bound
from sordino.accuracy.factorizations import Factorization
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Entry, Law
from sordino.mechanisms.linear.compression import Compression, compression_from_json
from sordino.privacy.costs import Cost, cost_from_json
from sordino.privacy.guarantees import Privacy, privacy_from_json, privacy_of
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel, group_of, unit_from_json
from sordino.privacy.wording import promise_of
from sordino.workloads.base import Workload, laid_out, workload_from_spec
from sordino.workloads.bases import Basis, Haar, basis_of
from sordino.workloads.constraints import Constraint, check_constraint, constraint_from_json
from sordino.workloads.layout import Layout

__all__ = [
    "USUAL_CELLS",
    "AnyDoor",
    "Domain",
    "DoorFit",
    "Effort",
    "Fit",
    "Objective",
    "Request",
    "checked",
    "choose_domain",
    "fit_all",
    "kind_of_error",
    "least_error",
]

Objective = Literal["mean", "max"]
Effort = Literal["closed_form", "optimize"]

# Inflation that the default domain may cost.
_INFLATION = 1e-4
_MOST_INFLATION = 1e-2

USUAL_CELLS = 2**12
"""Bound of cells that is not given up for less error where none is declared."""

# Records of one thing in a cell beyond which they are steps of an amount; bits of the largest default.
_FEW = 2**8
_MOST_BITS = 45
# Degree or arity: the state grows with it.
_MOST_DEGREE = 2**16


@dataclass(frozen=True)
class Request:
    """What a plan is asked for, all of it public.

    Attributes:
        workload: The queries.
        privacy: The guarantee of one release, or of a whole stream.
        unit: What one protected thing can change.
        mechanism: As asked for: 'auto' or a name.
        objective: Error that is minimised.
        max_value: Declared bound of a cell or an entry, None for the default.
        integral: Whether cells or entries are declared integers.
        constraint: What is publicly known about the input, for projections.
        effort: Whether searches are made without being named.
        basis: In which thresholds look for what is not noise.
        compression: What a compressive mechanism measures.
        memory: Most bytes that may be kept or sent in place of the table, or kept by a stream.
        degree: Of `blt`, or arity of a tree.
        noise: Law of the noise that `auto` takes; either if None.
        factorization: What a searched mechanism measures, if it was found before.
    """

    workload: Workload
    privacy: Privacy
    unit: Unit
    mechanism: str = "auto"
    objective: Objective = "mean"
    max_value: int | None = None
    integral: bool = True
    constraint: Constraint | None = None
    effort: Effort = "optimize"
    basis: Basis = field(default_factory=Haar)
    compression: Compression | None = None
    memory: int | None = None
    degree: int | None = None
    noise: Law | None = None
    factorization: Factorization | None = field(default=None, repr=False)

    def record(self) -> dict[str, Any]:
        """Return the request as a JSON-like record; arrays of the workload stay arrays.

        Raises:
            UnsupportedMechanismError: A basis that matters is given by functions.
        """
        layout = self.workload.layout
        return {
            "workload": {"kind": self.workload.kind, "spec": self.workload.spec()},
            **({} if layout is None else {"layout": layout.to_json()}),
            "privacy": self.privacy.to_json(),
            "unit": self.unit.to_json(),
            "mechanism": self.mechanism,
            "objective": self.objective,
            "integral": self.integral,
            "constraint": None if self.constraint is None else self.constraint.to_json(),
            "effort": self.effort,
            "basis": self.basis.name,
            "compression": None if self.compression is None else self.compression.saved,
            "memory": self.memory,
            "degree": self.degree,
            "noise": self.noise,
        }

    def asked(self) -> bytes:
        """Return a digest of all that was asked for, which a repeated request has in common.

        It is not that of what was fitted: a newer sordino may fit slightly other noise to the same request.

        Raises:
            UnsupportedMechanismError: A basis that matters is given by functions.
        """
        return bytes.fromhex(record_digest({**self.record(), "max_value": self.max_value}))

    @staticmethod
    def rebuilt(record: Mapping[str, Any], max_value: int | None) -> Request:
        """Return the request that a record describes; it is checked like any other.

        Raises:
            SordinoError: A field is out of range.
        """
        found, basis = record["workload"], record["basis"]
        if not isinstance(basis, str):
            raise PlanFileError("the plan's basis is no name")
        compression = record["compression"]
        workload, layout = workload_from_spec(found["kind"], found["spec"]), record.get("layout")
        return checked(
            workload if layout is None else laid_out(workload, Layout.from_json(layout)),
            privacy_from_json(record["privacy"]),
            unit_from_json(record["unit"]),
            mechanism=record["mechanism"],
            objective=record["objective"],
            max_value=max_value,
            integral=record["integral"],
            constraint=None if record["constraint"] is None else constraint_from_json(record["constraint"]),
            effort=record["effort"],
            basis="haar" if basis == "custom" else basis,
            compression=None if compression is None else compression_from_json(compression),
            memory=record["memory"],
            degree=record["degree"],
            noise=record["noise"],
        )


def checked(workload: object, privacy: object, unit: object = None, **options: Any) -> Request:
    """Return a request whose arguments are of their types and in their ranges.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
    """
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.RunningSum(10)")
    if unit is not None and not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
        raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
    bounds = {"max_value": (1, 2**53), "memory": (0, 2**62), "degree": (0, _MOST_DEGREE)}
    for name, (least, most) in bounds.items():
        if options.get(name) is not None:
            options[name] = integer(name, options[name], least=least, most=most)
    one_of("objective", options.get("objective", "mean"), get_args(Objective))
    one_of("effort", options.get("effort", "optimize"), get_args(Effort))
    if options.get("noise") is not None:
        one_of("noise", options["noise"], get_args(Law))
    flag("integral", options.get("integral", True))
    text("mechanism", options.get("mechanism", "auto"))
    check_constraint(options.get("constraint"))
    options["basis"] = basis_of(options.get("basis", "haar"))
    for name, kind, where in (
        ("compression", Compression, "sordino.sketches"),
        ("factorization", Factorization, "sordino.optimal"),
    ):
        if options.get(name) is not None and not isinstance(options[name], kind):
            raise DataTypeError(f"{name} must be a {where}.{kind.__name__}")
    return Request(workload, privacy_of(privacy), AddRemove(1) if unit is None else unit, **options)


@dataclass(frozen=True)
class Domain:
    """What is declared about the input: never read from data.

    Attributes:
        max_value: Cells are clamped to `[-max_value, max_value]`.
        fraction_bits: Cells are rounded to multiples of `2**-fraction_bits`; 0 for integers.
    """

    max_value: int
    fraction_bits: int


class AnyDoor(Protocol):
    """Lattice and noise."""

    @property
    def grid(self) -> int:
        """Exponent of the lattice."""
        ...

    @property
    def quarter_units(self) -> int:
        """Noise, in quarters of a lattice unit."""
        ...

    @property
    def noise(self) -> float:
        """Noise, in the unit of what is measured: of discrete noise the scale of Laplace noise as large."""
        ...

    @property
    def scale(self) -> float:
        """What the privacy rests on, in the unit of what is measured."""
        ...

    @property
    def sensitivity(self) -> tuple[float, float, float]:
        """Upper bounds of what neighbours differ by, by cause."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Fit(ABC):
    """A mechanism fitted to a request: lattice, noise, cost and error, before any data is touched.

    Attributes:
        request: What was asked for.
    """

    family: ClassVar[str]
    # What a plan of it can do.
    verb: ClassVar[Literal["release", "open", "encode"]] = "release"
    # What a sentence about the guarantee ends with, and what groups consist of.
    scope: ClassVar[str] = ""
    things: ClassVar[str] = "single records"
    # A simpler mechanism is preferred if it has at most this much more error.
    tie: ClassVar[float] = 1.01

    request: Request

    @property
    @abstractmethod
    def name(self) -> str:
        """Full name of the mechanism, such as 'fourier-gaussian'."""

    # Fields of some families and properties of others: a field cannot stand where a property is inherited.
    if TYPE_CHECKING:

        @property
        def cost(self) -> Cost:
            """What a release, or a whole stream, costs: at most the requested privacy."""

        @property
        def rmse(self) -> float:
            """Root mean squared error over the answers."""

        @property
        def max_stderr(self) -> float | None:
            """Largest standard deviation of an answer, None where it is not known."""

        @property
        def domain(self) -> Domain | None:
            """Declared bounds of the input, None where the workload has others."""

    @property
    @abstractmethod
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise of everything that is measured."""

    @property
    def proportional(self) -> bool:
        """Whether the error is proportional to the noise ratio."""
        return True

    @property
    def rmse_kind(self) -> str:
        """How `rmse` is known: 'exact', 'upper bound', 'noise only' or 'estimate'."""
        return "exact"

    @property
    def bound(self) -> Bound | None:
        """Least error of any mechanism with Gaussian noise, None where none is known."""
        return None

    @property
    def optimality(self) -> float | None:
        """Error over `bound` where it binds (1 is the optimum), None elsewhere."""
        return None

    @property
    def sensitivity(self) -> dict[str, float]:
        """Upper bounds of what neighbours differ by in the measured norm, by cause."""
        return dict(zip(("ideal", "encoding", "rounding"), self.doors[0].sensitivity, strict=True))

    @property
    def has_intervals(self) -> bool:
        """Whether answers are known without bias, so that there are intervals of them."""
        return True

    def error(self, objective: Objective) -> float:
        """Return what is minimised."""
        largest = None if objective == "mean" else self.max_stderr
        return self.rmse if largest is None else largest

    def largest_half_width(self, level: float) -> float:
        """Return the half width of an interval that every answer is in with this probability, each by itself.

        Raises:
            UnsupportedMechanismError: It is not known.
        """
        raise UnsupportedMechanismError(f"of {self.name} no half width is known beforehand")

    @abstractmethod
    def lines(self) -> list[str]:
        """Say what will be measured and how good that is, below mechanism and guarantee."""

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond request, lattice and cost, so that the same is fitted again."""
        return {}

    @property
    def subject(self) -> str:
        """What is protected, as the subject of a sentence."""
        return self.request.unit.protected()

    @property
    def extent(self) -> str:
        """How much the unit changes at most, in words."""
        return self.request.unit.extent()

    @property
    def condition(self) -> str:
        """What the guarantee rests on that nobody checks, as the end of a sentence."""
        return ""

    def units_in(self, records: int) -> int:
        """Return how many units cover any group of so many things."""
        return self.request.unit.units_in(records)

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return promise_of(self.cost, 1, self.request.privacy)

    def guarantee(self, records: int | None = None) -> str:
        """Return the guarantee in one plain sentence, for a group of `records` things if given.

        Raises:
            DataTypeError: `records` is no integer.
            InvalidParameterError: `records` is not from 1 to 2**63.
        """
        request = self.request
        if records is None:
            return f"{self.subject} is protected by {self.promise}{self.scope}."
        count = group_of(records)
        promise = promise_of(self.cost, self.units_in(count), request.privacy)
        said = f"Any {count} {self.things} together are protected by {promise}{self.scope}{self.condition}"
        return f"{said} (unit: {request.unit.label})."

    def facts(self, private: bool) -> list[tuple[str, str]]:
        """Return what a card says of what was published: its guarantee, if the noise is not known, and mechanism."""
        return [("guarantee", self.guarantee() if private else "none: the noise is known"), ("mechanism", self.name)]

    @property
    def doors_record(self) -> list[dict[str, int]]:
        """Lattice and noise of everything that is measured, as a record says them."""
        return [{"grid": door.grid, "quarter_units": door.quarter_units} for door in self.doors]

    @property
    def _domain_record(self) -> dict[str, Any] | None:
        domain = getattr(self, "domain", None)
        return None if domain is None else vars(domain)

    def record(self) -> dict[str, Any]:
        """Return the fit as a JSON-like record: what was asked, what was fitted, what it means.

        Raises:
            UnsupportedMechanismError: A basis that matters is given by functions.
        """
        return {
            "schema": SCHEMA,
            "family": self.family,
            "request": self.request.record(),
            "domain": self._domain_record,
            "fitted": self.name,
            "doors": self.doors_record,
            "cost": self.cost.to_json(),
            "rmse": self.rmse,
            "max_stderr": self.max_stderr,
            "rmse_kind": self.rmse_kind,
            **self.details(),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the record: what two equal fits have in common.

        Raises:
            UnsupportedMechanismError: A basis that matters is given by functions.
        """
        return record_digest(self.record())

    def is_same(self, other: object) -> bool:
        """Return whether another fit is of the same request, and would be measured in the same way."""
        if not isinstance(other, Fit) or type(other) is not type(self):
            return False
        try:
            return other is self or other.digest == self.digest
        except UnsupportedMechanismError:
            return False  # a basis given by functions has no digest: such a fit is itself alone

    def __repr__(self) -> str:
        request = self.request
        return (
            f"{type(self).__name__}({request.workload!r}, {request.privacy!r}, mechanism={self.name!r}, "
            f"rmse={self.rmse:.6g}{kind_of_error(self.rmse_kind)})"
        )

    def verify(self, record: Mapping[str, Any]) -> None:
        """Refuse a record that states another mechanism, domain or cost, or less noise, than fitting gives.

        Raises:
            PlanFileError: It does.
        """
        if record["fitted"] != self.name or record["domain"] != self._domain_record:
            raise PlanFileError("the plan's mechanism or domain is not the one that fitting gives")
        if len(record["doors"]) != len(self.doors):
            raise PlanFileError("the plan's parts are not those that fitting gives")
        for stored, door in zip(record["doors"], self.doors, strict=True):
            noise = int(stored["quarter_units"]) * 2.0 ** int(stored["grid"])
            if noise < door.quarter_units * 2.0**door.grid:
                raise PlanFileError("the plan stores less noise than its privacy needs")
        if cost_from_json(record["cost"]) != self.cost:
            raise PlanFileError("the plan's cost is not what a release costs")


@dataclass(frozen=True, eq=False, repr=False)
class DoorFit(Fit):
    """A fit of one mechanism with one lattice and noise."""

    # Fields of every such fit.
    if TYPE_CHECKING:

        @property
        def mechanism(self) -> Entry:
            """Which mechanism."""

        @property
        def door(self) -> AnyDoor:
            """Lattice and noise."""

        @property
        def ratio(self) -> float:
            """Noise over sensitivity that was asked for."""

    @property
    def name(self) -> str:
        """Full name of the mechanism, such as 'fourier-gaussian'."""
        return self.mechanism.name

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise."""
        return (self.door,)

    @property
    def noise_multiplier(self) -> float | None:
        """Gaussian only: standard deviation over l2 sensitivity as calibrated, None for Laplace noise."""
        return self.ratio if self.mechanism.law == "gaussian" else None

    @property
    def optimality(self) -> float | None:
        """Error over `bound` for Gaussian mechanisms (1 is the optimum), None for others."""
        return self.over(self.bound)

    def over(self, bound: Bound | None) -> float | None:
        """Return the error over a bound; None where it does not bind or is zero."""
        if bound is None or bound.value <= 0.0 or self.mechanism.law != "gaussian":
            return None
        return self.error(self.request.objective) / bound.value

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice, encoding and rounding up."""
        return max(self.door.scale / (self.ratio * self.door.sensitivity[0]) - 1.0, 0.0)


def kind_of_error(kind: str) -> str:
    """Return what is printed behind an rmse of this kind: nothing if it is exact."""
    return "" if kind == "exact" else f" ({kind})"


_Fit = TypeVar("_Fit", bound=Fit)


def least_error(fits: Sequence[_Fit], objective: Objective) -> _Fit:
    """Return the first fit, the simpler ones first, whose error is within a tie of the least."""
    least = min(fit.error(objective) for fit in fits)
    return next(fit for fit in fits if fit.error(objective) <= fit.tie * least)


_Entry = TypeVar("_Entry", bound=Entry)


def fit_all(
    mechanisms: Iterable[_Entry], request: Request, fit_one: Callable[[_Entry], _Fit]
) -> tuple[list[_Fit], dict[str, str]]:
    """Fit the mechanisms of the wanted law that can give the privacy; say of the others that do not serve why."""
    fits: list[_Fit] = []
    refused: dict[str, str] = {}
    for mechanism in mechanisms:
        if not mechanism.allows(request.privacy) or request.noise not in {None, mechanism.law}:
            continue
        try:
            fits.append(fit_one(mechanism))
        except (UnsupportedMechanismError, InvalidParameterError) as error:
            refused[mechanism.name] = str(error)
    return fits, refused


_AnyDoor = TypeVar("_AnyDoor", bound=AnyDoor)


def choose_domain(
    fit_door: Callable[[Domain], _AnyDoor], request: Request, bits: tuple[int, ...], above: int = 0
) -> tuple[Domain, _AnyDoor]:
    """Return the declared domain, or the largest default one that costs at most 1e-4 of noise, and its door.

    Defaults: `max_value` the largest power of two up to 2**24, and the first of the fractions' `bits`, that fit. If one
    thing may add an amount to a cell, not a few records, 2**24 counts things that add the most; so it does for records
    of `above` bits more than one. `USUAL_CELLS` may cost 1 %: sums of millions of cells are rounded by more than 1e-4,
    and what is rounded less may have many times the noise.

    Raises:
        InvalidParameterError: Nothing fits.
    """
    most, declared = request.unit.most_per_cell, request.max_value
    largest = min(max(24 + above + (most.bit_length() - 1 if most > _FEW else 0), 0), _MOST_BITS)
    values = (declared,) if declared is not None else tuple(2**b for b in range(largest, -1, -1))
    refusal: InvalidParameterError | None = None
    fallback: tuple[Domain, _AnyDoor] | None = None
    for domain in (Domain(value, b) for value in values for b in bits):
        try:
            door = fit_door(domain)
        except InvalidParameterError as error:
            refusal = error
            continue
        ideal, encoding, rounding = door.sensitivity
        usual = domain.max_value == USUAL_CELLS and declared is None and domain.fraction_bits == bits[-1]
        if encoding + rounding <= (_MOST_INFLATION if usual else _INFLATION) * ideal:
            return domain, door
        if fallback is None or sum(door.sensitivity) < sum(fallback[1].sensitivity):
            fallback = domain, door
    if fallback is not None:
        return fallback
    raise refusal or InvalidParameterError("no domain fits")
