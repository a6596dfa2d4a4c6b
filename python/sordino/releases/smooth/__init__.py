"""Releases of summaries of points, and the queries that they answer."""
