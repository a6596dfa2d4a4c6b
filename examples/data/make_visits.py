"""Build randhie_visits.csv: outpatient visits to a doctor, one row per person and year.

Source: the column ``mdvis`` of ``statsmodels.datasets.randhie`` (RAND Health Insurance Experiment).

    pip install statsmodels==0.15.0 pandas
    python make_visits.py

The rows keep the order of the source. One person fills one to five rows (one per study year); the output
has no person key, so it supports a guarantee per person-year (per row), not per person.
"""

from __future__ import annotations

import pandas as pd
from making import Source, options, write

PERSON_YEARS = Source("statsmodels==0.15.0", "datasets/randhie/randhie.csv", 20_190, "person-years")


def visits_per_person_year(randhie: pd.DataFrame) -> pd.DataFrame:
    """Return the number of visits as one column of non-negative integers."""
    visits = randhie["mdvis"]
    if not pd.api.types.is_integer_dtype(visits) or (visits < 0).any():
        raise SystemExit("mdvis is expected to hold non-negative integers, with none missing")
    return pd.DataFrame({"visits": visits})


def main() -> None:
    """Write the column and print its row count and total."""
    args = options(
        "Build the doctor visits per person-year from statsmodels.", "randhie_visits.csv", help=PERSON_YEARS.help
    )
    randhie = PERSON_YEARS.read(args.source)
    table = visits_per_person_year(randhie)
    write(table, args.out)
    print(f"rows: {len(table)}")
    print(f"total visits: {int(table['visits'].sum())}")
    print(f"largest count: {int(table['visits'].max())}")


if __name__ == "__main__":
    main()
