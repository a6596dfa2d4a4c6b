"""Guarantees, units, costs, calibration, composition."""
