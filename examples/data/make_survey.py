"""Build anes96_survey.csv: what 944 people said about themselves and an election, one row per person.

Source: seven columns of ``statsmodels.datasets.anes96`` (American National Election Study of 1996).

    pip install statsmodels==0.15.0 pandas
    python make_survey.py

Rows keep the order of the source and codes are those of the source; only the names of the columns differ.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pandas as pd

SOURCE_ROWS = 944
COLUMNS = {
    "age": ("age", range(19, 92)),
    "educ": ("education", range(1, 8)),
    "income": ("income", range(1, 25)),
    "PID": ("party", range(7)),
    "selfLR": ("left_right", range(1, 8)),
    "TVnews": ("tv_news", range(8)),
    "vote": ("vote", range(2)),
}


def default_source() -> Path:
    """Return the path of anes96.csv in the installed statsmodels, without importing statsmodels."""
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("statsmodels is not installed: pip install statsmodels==0.15.0, or give --source")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "anes96" / "anes96.csv"


def survey(anes: pd.DataFrame) -> pd.DataFrame:
    """Return the seven columns under their new names, after a look at their codes."""
    for name, (_, codes) in COLUMNS.items():
        if not pd.api.types.is_integer_dtype(anes[name]) or not anes[name].isin(codes).all():
            raise SystemExit(f"{name} is expected to hold integers from {codes[0]} to {codes[-1]}, with none missing")
    return anes[list(COLUMNS)].rename(columns={old: new for old, (new, _) in COLUMNS.items()})


def main() -> None:
    """Write the columns and print the row count."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Build the election survey of 1996 from statsmodels.")
    parser.add_argument("--source", type=Path, help="anes96.csv (default: the installed package's)")
    parser.add_argument("--out", type=Path, default=here / "anes96_survey.csv")
    args = parser.parse_args()

    anes = pd.read_csv(args.source or default_source(), sep=r"\s+", quotechar="'")
    if len(anes) != SOURCE_ROWS:
        raise SystemExit(f"expected {SOURCE_ROWS} people, found {len(anes)}")
    table = survey(anes)
    table.to_csv(args.out, index=False, lineterminator="\n")
    print(f"rows: {len(table)}")
    print(f"expected to vote for Dole: {int(table['vote'].sum())}")


if __name__ == "__main__":
    main()
