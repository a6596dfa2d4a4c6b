"""Build randhie_visits.csv: outpatient visits to a doctor, one row per person and year.

Source: the column ``mdvis`` of ``statsmodels.datasets.randhie`` (RAND Health Insurance Experiment).

    pip install statsmodels==0.15.0 pandas
    python make_visits.py

The rows keep the order of the source. One person fills one to five rows (one per study year); the output
has no person key, so it supports a guarantee per person-year (per row), not per person.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pandas as pd

SOURCE_ROWS = 20_190


def default_source() -> Path:
    """Return the path of randhie.csv in the installed statsmodels, without importing statsmodels."""
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("statsmodels is not installed: pip install statsmodels==0.15.0, or give --source")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "randhie" / "randhie.csv"


def visits_per_person_year(randhie: pd.DataFrame) -> pd.DataFrame:
    """Return the number of visits as one column of non-negative integers."""
    visits = randhie["mdvis"]
    if not pd.api.types.is_integer_dtype(visits) or (visits < 0).any():
        raise SystemExit("mdvis is expected to hold non-negative integers, with none missing")
    return pd.DataFrame({"visits": visits})


def main() -> None:
    """Write the column and print its row count and total."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Build the doctor visits per person-year from statsmodels.")
    parser.add_argument("--source", type=Path, help="randhie.csv (default: the installed package's)")
    parser.add_argument("--out", type=Path, default=here / "randhie_visits.csv")
    args = parser.parse_args()

    randhie = pd.read_csv(args.source or default_source())
    if len(randhie) != SOURCE_ROWS:
        raise SystemExit(f"expected {SOURCE_ROWS} person-years, found {len(randhie)}")
    table = visits_per_person_year(randhie)
    table.to_csv(args.out, index=False, lineterminator="\n")
    print(f"rows: {len(table)}")
    print(f"total visits: {int(table['visits'].sum())}")
    print(f"largest count: {int(table['visits'].max())}")


if __name__ == "__main__":
    main()
