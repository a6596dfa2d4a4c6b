"""Twelve jobs of users, each done with several libraries and with none; `python benches/comparison.py` runs them.

A file is a job. It has `TITLE`, `QUESTION` and `ERROR` in words, `data()`, which is made and public, `truth(data)`, and one
function for each contestant that can do the job: it takes the data and returns what it publishes, or it takes nothing, plans with
public facts, and returns a function that does so. What it takes to write is the
lines of that function, its imports included. The promise is the same everywhere: (1, 1e-6)-differential
privacy for one record more or less, all answers together.
"""
