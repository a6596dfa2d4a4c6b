"""Bounds, certificates and half widths: what is known about errors."""
