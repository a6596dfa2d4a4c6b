"""Build anes96_survey.csv: what 944 people said about themselves and an election, one row per person.

Source: seven columns of ``statsmodels.datasets.anes96`` (American National Election Study of 1996).

    pip install statsmodels==0.15.0 pandas
    python make_survey.py

Rows keep the order of the source and codes are those of the source; only the names of the columns differ.
"""

from __future__ import annotations

import pandas as pd
from making import Source, options, write

PEOPLE = Source("statsmodels==0.15.0", "datasets/anes96/anes96.csv", 944, "people")
COLUMNS = {
    "age": ("age", range(19, 92)),
    "educ": ("education", range(1, 8)),
    "income": ("income", range(1, 25)),
    "PID": ("party", range(7)),
    "selfLR": ("left_right", range(1, 8)),
    "TVnews": ("tv_news", range(8)),
    "vote": ("vote", range(2)),
}


def survey(anes: pd.DataFrame) -> pd.DataFrame:
    """Return the seven columns under their new names, after a look at their codes."""
    for name, (_, codes) in COLUMNS.items():
        if not pd.api.types.is_integer_dtype(anes[name]) or not anes[name].isin(codes).all():
            raise SystemExit(f"{name} is expected to hold integers from {codes[0]} to {codes[-1]}, with none missing")
    return anes[list(COLUMNS)].rename(columns={old: new for old, (new, _) in COLUMNS.items()})


def main() -> None:
    """Write the columns and print the row count."""
    args = options("Build the election survey of 1996 from statsmodels.", "anes96_survey.csv", help=PEOPLE.help)
    anes = PEOPLE.read(args.source, sep=r"\s+", quotechar="'")
    table = survey(anes)
    write(table, args.out)
    print(f"rows: {len(table)}")
    print(f"expected to vote for Dole: {int(table['vote'].sum())}")


if __name__ == "__main__":
    main()
