"""A plan: mechanism, noise, expected error and certificate, before any data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from sordino._support.cards import card, facts_of
from sordino._support.extras import drawn
from sordino._support.records import guarded, rebuilt, write_record
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.fits import Fit, Request
from sordino.mechanisms.local.family import SurveyFit
from sordino.plans.comparison import Comparison, compare_request
from sordino.privacy.books import Charge
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import Privacy
from sordino.privacy.ledger import Ledger
from sordino.privacy.spending import noise_beside, opened, released
from sordino.privacy.units import Unit
from sordino.releases.local.encoding import reports_of, values_of
from sordino.releases.local.server import LocalServer
from sordino.releases.making import empty_sketch, empty_sums, making
from sordino.releases.sketches import Sketch
from sordino.releases.smooth.point_sums import PointSums
from sordino.storage.store import Store, store_of
from sordino.streams.base import OpenStream
from sordino.streams.counter import Stream
from sordino.streams.opening import attached, check_store, opened_stream
from sordino.streams.stored import StoredOpening, open_stored
from sordino.streams.whole import StreamRelease, whole_stream
from sordino.testing import current_key
from sordino.workloads.base import Workload

if TYPE_CHECKING:
    from sordino.storage.steps import StepStore

__all__ = ["Plan", "ReleasePlan", "StreamPlan", "SurveyPlan", "plan_of"]


# Width of names in what a plan explains.
_NAMES = 15


@dataclass(frozen=True, eq=False)
class Plan:
    """How a workload will be answered: made by `sordino.plan`, costs nothing, can be saved and read.

    Attributes:
        fit: What was asked for and fitted: strategy, lattice and noise, with everything that is known of them. A
            `LinearFit`, `TreeFit`, `SmoothFit`, `StreamFit`, `TableFit`, `RareFit` or `SurveyFit`; all are a `Fit`.
        beside: What its charge does to the ledger beside which it was planned, in lines of text.
    """

    fit: Any
    beside: tuple[str, ...] = ()

    @property
    def _common(self) -> Fit:
        """What all fits have."""
        fit: Fit = self.fit
        return fit

    @property
    def request(self) -> Request:
        """What was asked for."""
        return self._common.request

    @property
    def workload(self) -> Workload:
        """The queries."""
        return self.request.workload

    @property
    def privacy(self) -> Privacy:
        """What a release, or everything that a stream publishes, guarantees."""
        return self.request.privacy

    @property
    def unit(self) -> Unit:
        """For whom: what one protected thing can change."""
        return self.request.unit

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism, such as 'fourier-gaussian'."""
        return self._common.name

    @property
    def cost(self) -> Cost:
        """What a release, or a whole stream, costs: at most the requested privacy."""
        return self._common.cost

    @property
    def rmse(self) -> float:
        """Root mean squared error over the answers (weighted as the workload says); `fit.rmse_kind` says how known."""
        return self._common.rmse

    @property
    def max_stderr(self) -> float | None:
        """Largest standard deviation of an answer, before any post-processing; None where it is not known."""
        return self._common.max_stderr

    @property
    def optimality(self) -> float | None:
        """Error over `fit.bound` where it binds (1 is the optimum), None elsewhere."""
        return self._common.optimality

    @property
    def bound_kind(self) -> Literal["proved", "none"]:
        """Whether a proved bound binds the error, so that `optimality` is known; no bound is an estimate."""
        return "none" if self.optimality is None else "proved"

    def guarantee(self, records: int | None = None) -> str:
        """Return the guarantee in one plain sentence, for a group of `records` things if given.

        Raises:
            DataTypeError: `records` is no integer.
            InvalidParameterError: `records` is not from 1 to 2**63.
        """
        return self._common.guarantee(records)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        chosen = "chosen by auto" if self.request.mechanism == "auto" else "as asked"
        lines = [
            repr(self.workload),
            f"mechanism      {self.mechanism}, {chosen}",
            f"guarantee      {self.guarantee()}",
            f"unit           {self.unit.label}: {self._common.extent}",
            *self._common.lines(),
            *self.beside,
        ]
        return "\n".join(lines)

    def compare(self) -> Comparison:
        """Return `sordino.compare` for the same request."""
        return compare_request(self.request)

    def record(self) -> dict[str, Any]:
        """Return the plan as a JSON-like record; arrays stay arrays.

        Raises:
            UnsupportedMechanismError: A basis is given by functions.
            InvalidParameterError: The loss of a survey is given by functions.
        """
        return self._common.record()

    @property
    def digest(self) -> str:
        """SHA-256 of the record: what two equal plans have in common.

        Raises:
            UnsupportedMechanismError: A basis is given by functions.
        """
        return self._common.digest

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON, large arrays in an `.npz` beside it.

        Raises:
            UnsupportedMechanismError: A basis is given by functions.
            InvalidParameterError: The loss of a survey is given by functions.
            InputFileError: The file cannot be written.
        """
        return write_record(self.record(), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan and verify it: the noise is fitted again, and a plan that stores less is refused.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no plan of this kind, was altered, or understates noise or cost.
        """
        return rebuilt(path, cls._of)

    @classmethod
    def from_record(cls, record: object) -> Self:
        """Rebuild a plan from its record and verify it.

        Raises:
            PlanFileError: The record is malformed, or understates noise or cost.
        """
        return guarded(lambda: cls._of(record))

    @classmethod
    def _of(cls, record: object) -> Self:
        plan = plan_of(fit_of(record))
        if not isinstance(plan, cls):
            raise PlanFileError(f"this is a {type(plan).__name__}: read it with sordino.Plan.load")
        return plan

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Draw the expected error: of every answer, with the spectrum of convolutions; of a stream against the step.

        Args:
            path: Where to save the picture, None to only return it.
            ax: matplotlib's axes to draw the errors into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
            UnsupportedMechanismError: There is no picture of such a plan.
        """
        figure = drawn(self._common.family, self, path, ax=ax)
        if figure is None:
            raise UnsupportedMechanismError("there is no picture of such a plan")
        return figure

    def _repr_html_(self) -> str:
        return card(*facts_of(self.explain(), _NAMES))

    def __repr__(self) -> str:
        return repr(self.fit).replace(type(self.fit).__name__, type(self).__name__, 1)


class ReleasePlan(Plan):
    """A plan whose data are there: `release` measures them once."""

    def release(self, data: object, *, ledger: Ledger | None = None, request_id: str | None = None) -> Any:
        """Measure private data once: the only call that touches it.

        The call is checked first, then the budget is charged, then noise is drawn. A repeated `request_id` is
        answered from the ledger's record if it was made from the same plan, and refused otherwise.

        Args:
            data: Table of shape `workload.input_shape` (array, list or column), or record codes for marginals; for a
                compressive plan also a `Sketch` that was made with the same compression. For `SmoothQueries` points,
                shape (n, d) in data units, a table of d columns, an iterable of batches of them, or `PointSums` of this
                plan; points outside the bounds are moved to the nearest inside. For `KeyCounts` a `Sketch` of this
                plan, or keys, one a record; others than exist are null items.
            ledger: Where the cost is charged; None leaves the release unaccounted.
            request_id: Name of the request, charged at most once.

        Returns:
            A `Release`; a `SmoothRelease` for `SmoothQueries`, a `KeyRelease` for `KeyCounts`, a `TreeRelease` or
            `MarginalsRelease` for mechanisms that look at the data.

        Raises:
            DataTypeError: The data is no array of numbers, or the ledger no ledger.
            ShapeError: The data has another shape.
            InvalidParameterError: The data has entries that are not finite, another number of points than is public,
                or noise is deterministic and a ledger is given.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this cost.
            UnitError: The ledger protects another thing.
            DuplicateRequestError: The request was made before, from another plan.
            ForkError: The ledger belongs to another process.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """
        return released(ledger, making(self.fit).answering(self.fit, data, request_id, ledger is not None))

    def sketch(self) -> Sketch:
        """Return an empty sketch for this plan, to be filled here or elsewhere and released once.

        Raises:
            UnsupportedMechanismError: The mechanism measures no sketch, or its sparsity is chosen from the table.
        """
        return empty_sketch(self.fit)

    def sums(self, points: object = None) -> PointSums:
        """Return sums of points for this plan, to be filled here or elsewhere, merged, and released once.

        Args:
            points: First points, as `PointSums.update` takes them.

        Raises:
            UnsupportedMechanismError: The plan is not of `SmoothQueries`.
        """
        made = empty_sums(self.fit)
        return made if points is None else made.update(points)


class StreamPlan(Plan):
    """A plan whose data arrive: `open` opens a stream of them."""

    def open(
        self,
        ledger: Ledger | None = None,
        *,
        request_id: str | None = None,
        store: Store | StepStore | str | Path | None = None,
        stream_id: str | None = None,
        take_over: bool = False,
        keep_steps: object = "30 days",
    ) -> Any:
        """Open a stream: the budget of all its steps is charged now.

        In a `sordino.Store` it is opened, or gone on with if it is there: then nothing is charged. Charge, stream and
        state are one transaction, and so is every step with the state behind it.

        Args:
            ledger: Where the cost is charged; None leaves the stream unaccounted.
            request_id: Name of the request, charged at most once.
            store: Where published steps are kept before they are returned; needed for `step_id`. A `sordino.Store` with
                a key, its path or URL, with the ledger in the same; or a step store, for one process and checkpoints.
            stream_id: Name of the stream in a `sordino.Store`.
            take_over: Whether the stream is taken from an owner who may be alive: that one publishes nothing any more.
            keep_steps: How long a `sordino.Store` keeps the answers of steps; None for ever.

        Returns:
            A `Stream`; a `GraphStream`, `GraphFunctionStream` or `WordStream` for counts of events, a
            `HistogramStream` for a `RunningHistogram`, a `RareStream` for a `RareCount`.

        Raises:
            DataTypeError: The ledger is no ledger.
            InvalidParameterError: Noise is deterministic and a ledger is given; a store where nothing can be stored.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this cost.
            UnitError: The ledger protects another thing.
            DuplicateRequestError: The request was charged before.
            StepStoreError: The store is in use, or belongs to another stream.
            StreamInUseError: The stream is open elsewhere.
            KeyMissingError: The `sordino.Store` has no key.
            StoreError: The `sordino.Store` cannot be used.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """
        if isinstance(store, Store | str | Path):
            noise_beside(ledger)
            if stream_id is None:
                raise InvalidParameterError("a stream in a sordino.Store has a name: stream_id=")
            if current_key() is not None:
                raise InvalidParameterError("a stream under deterministic noise is not private: it is not stored")
            return open_stored(
                self.fit, StoredOpening(store_of(store), stream_id, take_over, keep_steps), ledger, request_id
            )
        if stream_id is not None or take_over:
            raise InvalidParameterError("stream_id and take_over are of streams in a sordino.Store")
        check_store(self.fit, store)
        charge = Charge(self.cost, request_id, self.unit.label, self.unit)
        stream: OpenStream = opened(ledger, charge, lambda key: opened_stream(self.fit, store, key))
        counters = getattr(stream, "counters", None)
        if isinstance(counters, Stream):
            counters.accounted = stream.accounted  # what a checkpoint says
        return stream

    def release(self, items: object, *, ledger: Ledger | None = None, request_id: str | None = None) -> StreamRelease:
        """Publish a whole stream of numbers at once, by the same recursion; a repeated request has the same answer.

        Args:
            items: Shape (n,), or (n, dim), at most `fit.steps` steps.
            ledger: As in `open`.
            request_id: Name of the request, charged at most once.

        Raises:
            ShapeError: Another shape.
            HorizonError: More steps than the horizon has.
            UnsupportedMechanismError: The stream is none of numbers.
            SordinoError: As `open` and `Stream.update`.
        """
        return released(ledger, whole_stream(self.fit, items, request_id, ledger is not None))

    def attach(self, counters: object, replay: object = None) -> Any:
        """Go on with counters that `sordino.restore` brought back, for streams that make items of something else.

        The events so far are not in a checkpoint: `replay` takes them in again, nothing is published by that. Nor are
        cells, basis and seed of a sketch: they must be those of the plan that made it.

        Args:
            counters: What `sordino.restore` returned.
            replay: For counts of events: a function of a stream that calls its `update` with the events up to the
                checkpoint, as they were.

        Raises:
            DataTypeError: They are no stream, or `replay` cannot be called.
            InvalidParameterError: The counters are those of another plan, or other steps were taken in.
            UnsupportedMechanismError: What was published before the checkpoint is not in it.
        """
        return attached(self.fit, counters, replay)


class SurveyPlan(Plan):
    """A plan whose data stay where they are: clients encode their values, a server adds the reports up."""

    @property
    def _survey(self) -> SurveyFit:
        return cast(SurveyFit, self.fit)

    def encode_client(self, value: object, *, ledger: Ledger | None = None) -> NDArray[np.int64]:
        """Return the report of one client: what it may send to anybody.

        Runs on the client. A second report of the same value costs as much again.

        Args:
            value: The client's number; beyond the bounds it is clamped, and not-a-number is a null item: noise alone.
            ledger: The client's own budget, charged; None leaves the report unaccounted.

        Returns:
            Integers, shape (numbers,).

        Raises:
            BudgetExceededError: The ledger's total would be exceeded.
            EntropyError: The operating system gives no randomness.
        """
        message: NDArray[np.int64] = self.encode_clients(values_of(value, 0).reshape(1), ledger=ledger)[0]
        return message

    def encode_clients(self, values: object, *, ledger: Ledger | None = None) -> NDArray[np.int64]:
        """Return the reports of many clients: for a collector that they trust, and for trying out.

        Args:
            values: Shape (clients,).
            ledger: Charged once: the clients are different people.

        Returns:
            Integers, shape (clients, numbers).

        Raises:
            DataTypeError: Not numbers.
            ShapeError: Not one-dimensional.
            BudgetExceededError: The ledger's total would be exceeded.
            EntropyError: The operating system gives no randomness.
        """
        fit, array = self._survey, values_of(values, 1)
        return released(ledger, reports_of(fit, array))

    def server(self) -> LocalServer:
        """Return a server that adds up reports."""
        return LocalServer(self._survey)


def plan_of(fit: Fit, beside: tuple[str, ...] = ()) -> Plan:
    """Return the plan of a fit, by what can be done with it."""
    kinds: dict[str, type[Plan]] = {"release": ReleasePlan, "open": StreamPlan, "encode": SurveyPlan}
    return kinds[fit.verb](fit, beside)
