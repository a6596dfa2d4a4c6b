"""One plan, one comparison, one planner, one file format."""
