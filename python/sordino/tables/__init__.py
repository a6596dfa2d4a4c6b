"""From tables of records to counts with a bound on what one person contributes."""

from sordino.tables.tabulation import Tabulated, tabulate

__all__ = ["Tabulated", "tabulate"]
