"""Surveys of clients who trust nobody."""
