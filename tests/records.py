"""Records as short lists, counted as tables are."""

import sordino as so


def tabulate(records, bins, *, user=None, max_records=None, per_cell=None, label=None):
    """Return the table of records that are codes 0, 1, ... below `bins`, or numbers in bins with these edges."""
    cells = so.tables.Integers(0, bins - 1) if isinstance(bins, int) else so.tables.Edges(bins)
    columns, bounds = {"cell": records}, None
    if user is not None:
        columns["user"] = user
        each = max_records if per_cell is None else per_cell
        bounds = so.Bounds(min(max_records, cells.size), each, max_records)
    schema = so.Schema({"cell": cells}, user=None if user is None else "user", bounds=bounds, label=label)
    return so.tabulate(columns, schema, request_id="test")
