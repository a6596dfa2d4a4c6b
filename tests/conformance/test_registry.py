"""No family, mechanism, stream or file is missing from the registry."""

import inspect

import cases
import pytest

import sordino as so
from sordino import _core
from sordino.mechanisms.adaptive.catalogue import ADAPTIVE_MECHANISMS
from sordino.mechanisms.linear.catalogue import MECHANISMS
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS
from sordino.workloads.events.base import EventWorkload
from spaces import SPACES

# Base classes, and what is planned as another.
BASES = {"Continual", "Filter", "OfRecords", "Workload"}


NAMES = {name: value for space in SPACES for name, value in vars(space).items() if inspect.isclass(value)}


def public(kind):
    return {name: value for name, value in NAMES.items() if issubclass(value, kind)}


def test_every_workload_is_planned():
    planned = {type(workload) for workload, _ in cases.TABLES.values()}
    planned |= {type(workload) for workload in cases.FILTERS.values()}
    live = [so.Continual.of(case.workload) for case in cases.STREAMS]
    planned |= {type(asked.workload) for asked in live} | {type(cases.SMOOTH), type(cases.SURVEY), type(cases.KEYS)}
    assert {name for name, kind in public(so.workloads.Workload).items() if kind not in planned} <= BASES
    assert set(public(EventWorkload).values()) <= planned


def test_every_mechanism_is_planned():
    planned = {mechanism for _, _, mechanism, _ in cases.table_mechanisms()}
    assert planned == {mechanism.name for mechanism in MECHANISMS}
    assert {mechanism for _, mechanism, _ in cases.LOOKING} == {mechanism.name for mechanism in ADAPTIVE_MECHANISMS}


# What the core makes of a name alone is a recipe; these need more: a search, a unit, a sketch, or several strategies.
SEARCHED = {"p-identity", "ellipsoid", "dense", "k-norm", "optimal", "sparse", "universal"}
SEARCHED |= {"dense-rescaled", "dense-printed", "sparse-printed"}
WITH_MORE = {"identity-common", "laminar", "split", "residual", "compressive"}


def test_the_core_and_the_catalogue_name_the_same():
    def is_recipe(mechanism):
        try:
            _core.Strategy(so.Histogram(4).core, mechanism.measures, mechanism.law)
        except so.SordinoError as error:
            return "unknown" not in str(error)
        return True

    assert {m.measures for m in MECHANISMS if not is_recipe(m)} == SEARCHED | WITH_MORE


def test_every_stream_mechanism_is_planned():
    planned = {mechanism for _, _, mechanism in cases.filter_streams()}
    assert planned == {mechanism.name for mechanism in STREAM_MECHANISMS}


def test_everything_that_spends_is_a_spender():
    """Whatever has a method that takes a ledger."""
    spending = {
        (name, method)
        for name, kind in NAMES.items()
        for method, function in vars(kind).items()
        if inspect.isfunction(function) and "ledger" in inspect.signature(function).parameters
    }
    plans = {type(spender.plan).__name__ for spender in cases.SPENDERS}
    assert {name for name, _ in spending} - {"LedgerStorage"} <= plans


def test_every_kind_of_stream_is_open_somewhere():
    """Whatever a plan's `open` returns."""
    opened = {type(case.loud.open()).__name__ for case in cases.STREAMS}
    streams = {name for name in NAMES if name.endswith("Stream")}
    assert streams - {"EventStream", "OpenStream"} <= opened


def test_everything_that_is_saved_is_a_file_here():
    saved = {name for name, kind in NAMES.items() if hasattr(kind, "save")} - {"Plan"}  # of which there are kinds
    assert saved <= {type(make()).__name__ for make, _ in cases.FILES.values()}


@pytest.mark.parametrize("name", cases.FILES)
def test_every_file_comes_back(name, tmp_path):
    make, load = cases.FILES[name]
    thing = make()
    path = cases.file_of(name, tmp_path)
    thing.save(path)
    assert type(load(path)) is type(thing)
