"""Answers that data without negative counts could have."""
