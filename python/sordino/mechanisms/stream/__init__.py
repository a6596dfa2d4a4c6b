"""Streams: catalogue of strategies for answers while data arrive."""
