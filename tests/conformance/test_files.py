"""Files are written whole or not at all, private ones for their owner alone, and read up to a limit."""

import os
import stat

import numpy as np
import pytest

import sordino as so
from sordino._support.files import atomic_write, read_file

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@posix
def test_a_private_file_is_its_owners_whatever_was_there(tmp_path):
    """A file that somebody prepared keeps neither its mode nor its readers; a link leads nowhere."""
    path, victim = tmp_path / "a.sketch", tmp_path / "victim"
    path.write_bytes(b"old")
    path.chmod(0o666)
    reader = path.open("rb")
    sketch = so.sketches.Sketch(8, 4)
    sketch.update(3)
    for _ in range(2):
        sketch.save(path)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert so.sketches.Sketch.load(path).to_bytes() == sketch.to_bytes()
        assert reader.read() in {b"old", b""}
        path.unlink()
        victim.write_bytes(b"untouched")
        path.symlink_to(victim)
    assert victim.read_bytes() == b"untouched"
    assert names(tmp_path) == ["a.sketch", "victim"]
    reader.close()


@posix
def test_what_is_public_keeps_its_mode_and_its_link(tmp_path):
    target, link = tmp_path / "plan.json", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    atomic_write(link, b"new", "plan")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "fresh", b"", "plan")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    assert str(atomic_write("/dev/null", b"gone", "output")) == "/dev/null"


@posix
def test_private_files_are_regular_files(tmp_path):
    """A private file in place of a device or a pipe would be read by whoever made it, or take the device away."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for place in (pipe, link, tmp_path, "/dev/null"):
        before = os.lstat(place).st_mode
        with pytest.raises(so.errors.InputFileError, match="no regular file"):
            so.sketches.Sketch(8, 4).save(place)
        assert os.lstat(place).st_mode == before
    assert names(tmp_path) == ["link", "pipe"]


def test_a_new_file_is_not_written_over_another(tmp_path):
    key = tmp_path / "key"
    atomic_write(key, b"first", "key", private=True, new=True)
    with pytest.raises(so.errors.InputFileError, match="exists"):
        atomic_write(key, b"second", "key", private=True, new=True)
    assert key.read_bytes() == b"first"
    assert names(tmp_path) == ["key"]


def full(*_arguments):
    raise OSError(28, "No space left on device")


def interrupted(*_arguments):
    raise KeyboardInterrupt


APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
SMOOTH = so.smooth.SmoothQueries(1, points=9, bounds=(0.0, 1.0), query_class=so.smooth.GaussianKernels(0.3))


def smooth_release():
    return so.plan(SMOOTH, APPROX).release(np.linspace(0, 1, 9))


WRITERS = {
    "plan": lambda path: so.plan(so.Histogram(3), APPROX).save(path),
    "plan with arrays": lambda path: so.plan(so.Matrix(np.tri(40)), APPROX, mechanism="optimal").save(path),
    "stream": lambda path: so.plan(so.Continual(so.RunningSum(9)), APPROX).save(path),
    "events": lambda path: so.plan(so.events.EdgeCount(4, 9), APPROX).save(path),
    "smooth plan": lambda path: so.plan(SMOOTH, APPROX).save(path),
    "smooth release": lambda path: smooth_release().save(path),
    "local": lambda path: so.plan(so.local.LocalSurvey(9), APPROX).save(path),
    "sketch": lambda path: so.sketches.Sketch(8, 4).save(path),
    "sums of points": lambda path: so.plan(SMOOTH, APPROX).sums().save(path),
}


@pytest.mark.parametrize("failure", [full, interrupted], ids=["full disk", "signal"])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_old_file_outlives_a_failed_write(write, failure, tmp_path, monkeypatch):
    path = tmp_path / "file"
    write(path)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    monkeypatch.setattr(os, "fsync", failure)
    with pytest.raises((so.errors.InputFileError, KeyboardInterrupt)):
        write(path)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
    monkeypatch.undo()
    write(path)
    assert len(names(tmp_path)) == len(before)


def test_reading_ends(tmp_path):
    with pytest.raises(so.errors.InputFileError, match="no regular file"):
        read_file("/dev/zero", "plan")
    assert read_file("/dev/null", "plan") == b""
    for load in (so.Plan.load, so.StreamPlan.load, so.SurveyPlan.load, so.sketches.Sketch.load, so.ReleasePlan.load):
        for path in ("/dev/zero", tmp_path, tmp_path / "none", "a\0b"):
            with pytest.raises(so.errors.InputFileError):
                load(path)
        for path in (None, 3):
            with pytest.raises(so.errors.DataTypeError):
                load(path)


DEEP = b"[" * 100_000
HOSTILE = [
    b"",
    b"\xff",
    b"[]",
    b"3",
    DEEP,
    b'{"schema": 1}',
    b'{"schema": 1, "x": NaN}',
    b'{"schema": 1, "x": 1e999}',
    b"9" * 5000,
]


@pytest.mark.parametrize(
    "load",
    [
        so.Plan.load,
        so.StreamPlan.load,
        so.SurveyPlan.load,
        so.ReleasePlan.load,
        so.smooth.SmoothRelease.load,
        so.adaptive.TreeRelease.load,
        so.adaptive.MarginalsRelease.load,
    ],
)
def test_files_of_strangers_raise_one_error(load, tmp_path):
    for number, content in enumerate(HOSTILE):
        path = tmp_path / f"{number}.json"
        path.write_bytes(content)
        with pytest.raises(so.errors.PlanFileError):
            load(path)
