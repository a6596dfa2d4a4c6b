"""Plans: what will be measured, with which noise, at which error. One plan, one comparison, one planner, one file format."""
