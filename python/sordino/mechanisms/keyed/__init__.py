"""Counts of keys that nobody lists, by a sketch."""
