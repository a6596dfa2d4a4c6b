"""From tables of records to counts with enforced bounds on what one user adds."""

from sordino.tables.bounding import BoundsComparison, compare_bounds, private_activity
from sordino.tables.dimensions import Edges, Hierarchy, Integers, Levels
from sordino.tables.keys import Keys, select_keys
from sordino.tables.queries import sql
from sordino.tables.schema import Bounds, Schema, Value
from sordino.tables.tabulation import tabulate
from sordino.tables.tally import Table, Tally
from sordino.tables.times import Times
from sordino.tables.windows import Windows

__all__ = [
    "Bounds",
    "BoundsComparison",
    "Edges",
    "Hierarchy",
    "Integers",
    "Keys",
    "Levels",
    "Schema",
    "Table",
    "Tally",
    "Times",
    "Value",
    "Windows",
    "compare_bounds",
    "private_activity",
    "select_keys",
    "sql",
    "tabulate",
]
