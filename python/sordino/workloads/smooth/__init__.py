"""Queries of points: classes of smooth functions, and functions themselves."""
