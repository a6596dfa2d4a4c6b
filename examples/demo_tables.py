"""From a file of flights to a labelled table: an aircraft flies again and again, and all its flights are protected."""

from pathlib import Path

import numpy as np
from demo_pictures import PUBLIC

import sordino as so
from sordino.plots.tables import ACCENT, INK, SIGNAL, dress, heading, new_figure, save_figure

FILE = Path(__file__).parent / "data" / "nyc_aircraft_2013.parquet"
PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
TIMES = so.tables.Times("2013-01-01", "2014-01-01", unit="month", zone="America/New_York")
AIRPORTS = so.tables.Levels(["EWR", "JFK", "LGA"])


def schema_of(bounds: so.Bounds) -> so.Schema:
    """Return months and airports, with so much of one aircraft."""
    return so.Schema(
        {"scheduled": TIMES, "origin": AIRPORTS}, user="tailnum", bounds=bounds, label="one aircraft, all its flights"
    )


def release_aircraft(path: Path, ledger: so.Ledger) -> None:
    """Compare bounds, make the table from the file by DuckDB, release it, and draw it."""
    print("\n== aircraft: departures by month and airport, from Parquet ==")
    print("what bounds cost, known before anything is spent:")
    for bounds in (so.Bounds(6, 4, 16), so.Bounds(20, 20, 160), so.Bounds(36, 40, 400)):
        plan = so.plan(schema_of(bounds).counts(), PRIVACY)
        print(f"  {bounds.records:4} flights of an aircraft, {bounds.per_cell:2} in a cell: rmse {plan.rmse:.4g}")
    schema = schema_of(so.Bounds(20, 20, 160))
    plan = so.plan(schema.group_by("scheduled", "origin", "origin.total"), PRIVACY)
    print(plan.explain())
    table = so.tabulate(FILE, schema, request_id="aircraft/2013")
    frame = plan.release(table, ledger=ledger, request_id="aircraft/2013").to_frame(library="pandas")
    print(frame.head(4).to_string(index=False))
    truth = so.tabulate(FILE, so.Schema({"scheduled": TIMES, "origin": AIRPORTS}, user=None), request_id="truth")
    bounded = table.to_numpy()
    draw(path, frame, bounded, truth.to_numpy())
    # Both are private; here the data is public.
    print(f"bounds leave out {1 - bounded.sum() / truth.to_numpy().sum():.1%} of the flights, which no interval shows")


def draw(path: Path, frame, bounded: np.ndarray, truth: np.ndarray) -> None:
    """Draw each airport's months with their intervals, what the bounds count, and the truth."""
    figure = new_figure(10.0, 5.6)
    axes = figure.subplots()
    months = np.arange(len(TIMES.labels))
    for k, (airport, color) in enumerate(zip(AIRPORTS.labels, (ACCENT, SIGNAL, INK), strict=True)):
        own = frame[frame["origin"] == airport]
        size = own["value"] - own["lower"], own["upper"] - own["value"]
        counted, every = ("counted within bounds", "all flights") if k == 2 else (None, None)
        beside = months + 0.08 * (k - 1)
        axes.errorbar(beside, own["value"], yerr=size, fmt="o", ms=4, color=color, capsize=3, label=f"{airport}, 95 %")
        axes.plot(months, bounded[:, k], color=color, linewidth=1.0, label=counted)
        axes.plot(months, truth[:, k], color=color, linewidth=1.0, linestyle=":", label=every)
    axes.set_xticks(months, [label[5:] for label in TIMES.labels])
    axes.set_ylim(bottom=0.0)
    heading(axes, "Departures a month, with all flights of an aircraft protected", f"{PRIVACY}; {PUBLIC}")
    dress(axes, "month of 2013", "departures")
    axes.legend(loc="lower left", ncols=5, frameon=False, fontsize=9, labelcolor=INK)
    save_figure(figure, path)
