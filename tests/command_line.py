"""`sordino ...` in this process, and the files that its tests read and write."""

import csv

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import CliRunner

from sordino.cli.commands import application


def sordino(*arguments, text=None):
    """Return what the command said, and its exit code."""
    return CliRunner().invoke(application, [str(argument) for argument in arguments], input=text)


def done(*arguments, text=None):
    """Return what a command said that must succeed."""
    result = sordino(*arguments, text=text)
    assert result.exit_code == 0, result.output
    return result


def write(path, header, rows):
    """Write a CSV file and return its path."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path
