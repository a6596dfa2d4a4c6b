"""Mechanisms that look: what is measured later depends on what was published before."""
