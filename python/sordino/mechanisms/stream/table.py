"""Histograms after every step of a stream: a counter for each cell, for each step, or for each number of a sketch.

==============  ======================================================================================================
`per-cell`      a private running sum for each of the n cells
`compressive`   a private running sum for each of the k numbers of a sketch; the table is recovered when asked for
`per-item`      where step t fills cell t - 1 and no other: every cell gets noise once (parallel composition)
`differenced`   the same table as differences of one running sum by a binary tree: what the paper compares itself with
==============  ======================================================================================================

A record adds one column of the sketch to the counters: `||Phi e_j||` is the square root of its entries (l1: their
number), so the counters *together* have that times the sensitivity of one. The guarantee covers all of them and all
steps.

Source: Li, Zhang, Winslett and Yang 2011, Section 5 (the continual compressive mechanism), with the joint sensitivity:
k counters that spend epsilon each, as printed there, spend k epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import AnyDoor, Domain, Fit, Request
from sordino.mechanisms.linear.compression import Compression, compression_within
from sordino.mechanisms.stream.family import best_stream
from sordino.mechanisms.stream.fit import StreamFit, continual
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import PureDP
from sordino.workloads import RunningHistogram, RunningSum
from sordino.workloads.bases import Haar
from sordino.workloads.continual import Continual

__all__ = ["TABLE", "Representation", "TableFit"]

# Bytes of a running sum, which is kept even where its noise is not.
_SUM = 8
_MOST_COUNTERS = 2**20
_REFERENCE = 2**20

Representation = Literal["per-cell", "compressive", "per-item", "differenced"]


def table_of(request: Request) -> RunningHistogram:
    """Return the table that changes."""
    workload = continual(request).workload
    assert isinstance(workload, RunningHistogram)
    return workload


@dataclass(frozen=True, eq=False, repr=False)
class TableFit(Fit):
    """How a changing histogram will be kept.

    Attributes:
        representation: 'per-cell', 'compressive', 'per-item' or 'differenced'.
        counters: The running sums, all of them together.
        compression: What the sketch is and how the table is recovered from it.
    """

    family: ClassVar[str] = "table"
    verb: ClassVar[Literal["release", "open", "encode"]] = "open"

    representation: Representation
    counters: StreamFit = field(repr=False)
    compression: Compression | None = None

    @property
    def name(self) -> str:
        """Full name, such as 'compressive: blt-gaussian'."""
        tree = "pan-private " if self.pan_private else ""
        return f"{self.representation}: {tree}{self.counters.name}"

    @property
    def workload(self) -> RunningHistogram:
        """Cells and steps."""
        return table_of(self.request)

    @property
    def pan_private(self) -> bool:
        """Whether the state may be looked at once without harm."""
        return continual(self.request).pan_private

    @property
    def cost(self) -> Cost:
        """What the whole stream costs."""
        return self.counters.cost

    @property
    def domain(self) -> Domain:
        """Declared bounds of what a step adds to a counter."""
        return self.counters.domain

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise of the running sums."""
        return self.counters.doors

    @property
    def scope(self) -> str:  # type: ignore[override]
        """What a sentence about the guarantee ends with."""
        looks = " together with one look at the state" if self.pan_private else ", but not by its state: that is secret"
        return f", over all steps together, by everything that the stream publishes{looks}"

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        return self.counters.steps

    @property
    def numbers(self) -> int:
        """Private running sums: n, k or 1."""
        return self.counters.dim

    @property
    def memory(self) -> int:
        """Bytes of the state at the last step: independent of the number of cells for a sketch."""
        return max(self.counters.memory, _SUM * self.numbers)

    @cached_property
    def operator(self) -> _core.SketchOperator | None:
        """The sketch in the core."""
        return None if self.compression is None else self.compression.operator(self.workload.cells)

    @property
    def last(self) -> int:
        """The last step, or 2**20 if there is none: where the error is judged."""
        return self.workload.length or _REFERENCE

    def noise_at(self, step: int) -> float:
        """Return the standard deviation of the noise in each private number after a step.

        Raises:
            InvalidParameterError: The step is out of range.
        """
        # A pan-private node has noise before and after.
        return float(self.counters.std([step])[0]) * (math.sqrt(2.0) if self.pan_private else 1.0)

    def noise_of_cells(self, step: int) -> float:
        """Return the standard deviation of the noise in each cell that was filled, after a step."""
        match self.representation:
            case "per-item":
                return float(self.counters.std([1])[0])
            case "differenced":
                # The sums of steps t - 1 and t of a binary tree share all nodes but the one that ends with t and those
                # that it replaces, one for each trailing zero of t.
                steps = np.arange(1, step + 1)
                zeros = np.log2(steps & -steps)
                return float(self.counters.std([1])[0]) * math.sqrt(float(1.0 + zeros.mean()))
            case _:
                return self.noise_at(step)

    def rmse_at(self, step: int) -> float:
        """Return the root mean squared error of the table after a step.

        For a sketch: of its noise alone, for data with no more coefficients than are recovered. Elsewhere exact, for
        the noisy table before any threshold.

        Raises:
            InvalidParameterError: The step is out of range.
        """
        cells = self.workload.cells
        match self.representation:
            case "compressive":
                assert self.operator is not None
                assert self.compression is not None
                k, s = self.compression.sizes(cells)
                return self.noise_at(step) * math.sqrt(s * k / (k - s) / self.operator.column_entries / cells)
            case "per-cell":
                return self.noise_at(step)
            case _:
                return self.noise_of_cells(step) * math.sqrt(step / cells)

    @property
    def rmse(self) -> float:
        """Root mean squared error of the table after the last step."""
        return self.rmse_at(self.last)

    @property
    def rmse_kind(self) -> str:
        """'exact', or 'noise only' for a sketch."""
        return "noise only" if self.representation == "compressive" else "exact"

    @property
    def max_stderr(self) -> float | None:
        """Largest standard deviation of a cell; None, not known, for sketches and differences."""
        match self.representation:
            case "per-cell":
                return self.counters.max_stderr * (math.sqrt(2.0) if self.pan_private else 1.0)
            case "per-item":
                return self.noise_of_cells(1)
            case _:
                return None

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common.

        Raises:
            UnsupportedMechanismError: A basis is given by functions.
        """
        if self.request.basis.name == "custom":
            raise UnsupportedMechanismError("a basis given by functions cannot be saved: keep the plan in memory")
        return {"counters": self.counters.digest}

    def lines(self) -> list[str]:
        """Say what will be kept and how good that is."""
        lines = [
            f"counters       {self.numbers} private running sums",
            f"error          rmse {self.rmse:.6g} of a cell after step {self.last}"
            + (", noise only" if self.representation == "compressive" else ""),
            f"state          {self.memory} bytes",
        ]
        if self.compression is not None and self.representation == "compressive":
            measurements, sparsity = self.compression.sizes(self.workload.cells)
            lines.append(
                f"sketch         {self.compression.sketch}, {measurements} numbers in place of {self.workload.cells}, "
                f"{sparsity} coefficients recovered in the {self.compression.transform.name} basis"
            )
        return lines


class _Table(Family):
    name: ClassVar[str] = "table"
    options: ClassVar[frozenset[str]] = frozenset(
        ("objective", "max_value", "memory", "effort", "degree", "noise", "compression", "basis")
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", 12, ".6g"),
        Column("rmse_kind", 12, "", "kind"),
        Column("numbers", 10, ""),
        Column("memory", 14, "", "bytes"),
    )
    scales: ClassVar[bool] = False

    def check(self, request: Request) -> Request:
        asked, table = continual(request), table_of(request)
        if request.compression is not None and not request.compression.made:
            raise InvalidParameterError(
                "a stream cannot choose its sparsity from data that is still to come: give a number"
            )
        if asked.pan_private and request.mechanism not in {"auto", "binary-tree"}:
            raise UnsupportedMechanismError("only a binary tree is pan-private: mechanism='binary-tree' or 'auto'")
        if asked.pan_private and (asked.horizon != "hard" or table.length is None):
            raise UnsupportedMechanismError("a pan-private stream needs a length, and ends there: horizon='hard'")
        if table.once and asked.horizon != "hard":
            raise InvalidParameterError("with once=True the stream ends with the last cell: horizon='hard'")
        if request.mechanism in {"per-item", "differenced"} and not table.once:
            raise UnsupportedMechanismError(f"{request.mechanism} needs once=True: every step fills a cell of its own")
        return request

    def choose(self, request: Request, progress: Progress | None = None) -> TableFit:
        """Count every cell (with `once`, every cell once), which has less error on all data that was tried.

        A sketch is taken where `compression` is given, or `memory` leaves no room for the counters of all cells.
        """
        table, pan_private = table_of(request), continual(request).pan_private
        compression = request.compression
        representation: Representation = "compressive" if compression is not None else "per-cell"
        match request.mechanism:
            case "per-item":
                representation = "per-item"
            case "differenced":
                representation = "differenced"
            case "auto" if table.once and compression is None and not pan_private:
                representation = "per-item"
            case _:
                pass
        fit = _fit(request, representation, compression if representation == "compressive" else None)
        if request.memory is None or fit.memory <= request.memory:
            return fit
        if fit.representation == "compressive" or request.mechanism in {"per-item", "differenced"}:
            raise UnsupportedMechanismError(f"{fit.representation} keeps {fit.memory} bytes, more than memory allows")
        one = max(best_stream(_counters(request)).memory, _SUM)
        return _fit(request, "compressive", compression_within(request.memory // one))

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        asked = {"per-cell": replace(request, compression=None, memory=None)}
        if table_of(request).once:
            asked = {name: replace(asked["per-cell"], mechanism=name) for name in ("per-item", "differenced")} | {
                # Counters of all cells are not what `auto` means here.
                "per-cell": replace(asked["per-cell"], mechanism="binary-tree")
            }
        if request.compression is not None:
            asked["compressive"] = replace(request, memory=None)
        fits, refused = [], {}
        for name, each in asked.items():
            try:
                fits.append(self.choose(each))
            except (UnsupportedMechanismError, InvalidParameterError) as error:
                refused[name] = str(error)
        if not fits:
            raise none_serves(refused, "stream")
        chosen = self.choose(replace(request, mechanism="auto", compression=None))
        if chosen.representation == "compressive":
            fits.append(chosen)
        fits.sort(key=lambda fit: (fit.rmse_kind != "exact", fit.rmse))
        return Shown(fits, chosen.name, refused)

    def row(self, fit: TableFit, shown: Shown) -> dict[str, Any]:
        return {"rmse": fit.rmse, "rmse_kind": fit.rmse_kind, "numbers": fit.numbers, "memory": fit.memory}

    def refit(self, request: Request, record: Mapping[str, Any]) -> TableFit:
        fit = self.choose(request)
        if record["counters"] != fit.counters.digest:
            raise PlanFileError("the plan's counters are not those that fitting gives")
        return fit


TABLE = _Table()


def _counters(request: Request, mechanism: str | None = None, **coordinates: Any) -> Request:
    """Return the request of the running sums."""
    asked = continual(request)
    name = mechanism or ("binary-tree" if asked.pan_private else request.mechanism)
    sums = Continual(RunningSum(asked.length), horizon=asked.horizon, **coordinates)
    return replace(request, workload=sums, mechanism=name, memory=None, compression=None, basis=Haar())


def _fit(request: Request, representation: Representation, compression: Compression | None) -> TableFit:
    cells = table_of(request).cells
    (request.basis if compression is None else compression.transform).core(cells)
    match representation:
        case "per-item":
            counters = best_stream(_counters(request, "identity-laplace"))
            if not isinstance(request.privacy, PureDP):
                gaussian = best_stream(_counters(request, "identity-gaussian"))
                counters = min(counters, gaussian, key=lambda fit: float(fit.std([1])[0]))
        case "differenced":
            counters = best_stream(_counters(request, "binary-tree"))
        case "compressive":
            assert compression is not None
            operator = compression.operator(cells)
            # A sparse column touches a few numbers, a dense one all.
            k, entries = operator.description[2], operator.column_entries
            counters = best_stream(_counters(request, dim=k, cells_per_record=entries, one_signed=False))
        case "per-cell":
            if cells > _MOST_COUNTERS:
                raise UnsupportedMechanismError("more than 2**20 counters: give a compression")
            counters = best_stream(_counters(request, dim=cells))
    return TableFit(request, representation, counters, compression)
