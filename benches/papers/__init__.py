"""The figures and tables of the five papers, made again; `python benches/reproduction.py` runs them.

A file is a paper: `results()` returns what its figures, tables and theorems say beside what was made here.
"""
