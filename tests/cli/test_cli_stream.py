"""`sordino stream`: lines in, answers out, over crashes and restarts; and what no message may say."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import command_line
import sordino as so
from sordino.cli.stream_lines import Interruption, LineParser, LineReader
from sordino.cli.stream_state import open_stored

PROGRAM = [sys.executable, "-c", "from sordino.cli import main; main()", "stream"]
SUM = ["--workload", "running-sum", "--epsilon", "1", "--delta", "1e-6", "--mechanism", "blt"]
SHARP = ["--workload", "running-sum", "--epsilon", "10000"]
SECRET = "Zbigniew-4711"
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def sordino(*arguments):
    return command_line.sordino("stream", *arguments)


def piped(arguments, text, cwd):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], input=text, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


class Live:
    """A running command: a line in, an answer out."""

    def __init__(self, arguments, cwd):
        pipe = subprocess.PIPE
        command = [*PROGRAM, *map(str, arguments)]
        self.process = subprocess.Popen(command, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def end(self, number=None):
        """End by a signal, or by the end of the input; return code and messages."""
        if number is not None:
            self.process.send_signal(number)
        else:
            self.process.stdin.close()
        code = self.process.wait(60)
        message = self.process.stderr.read()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            file.close()
        return code, message


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def values(text):
    return [float(row["value"]) for row in rows(text)]


@pytest.fixture
def kept(tmp_path):
    """Options of a stream that is kept, and two folders with the same new one."""
    options = [*SUM, "--state", "state", "--key-file", "key"]
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    done = piped(options, "", first)
    assert (done.returncode, done.stdout, done.stderr) == (0, "step,value\n", "")
    # The same key twice: never outside of tests.
    shutil.copytree(first, second)
    return options, first, second


# Live.


def test_a_line_in_an_answer_out(tmp_path):
    live = Live([*SHARP, "--stderr"], tmp_path)
    assert live.answer() == "step,value,stderr"
    total = 0
    for step, item in enumerate([5, 0, 7, -2, 1000], 1):
        total += item
        answer = live.ask(item).split(",")
        assert int(answer[0]) == step
        assert float(answer[1]) == pytest.approx(total, abs=0.1)
        assert 0.0 < float(answer[2]) < 0.1
    assert live.end() == (0, "")


@pytest.mark.slow
@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number, tmp_path):
    live = Live(SHARP, tmp_path)
    live.answer()
    live.ask(1)
    assert live.end(number) == (0, "")


@posix
def test_a_reader_that_goes_away_ends_it_silently(tmp_path):
    live = Live(SHARP, tmp_path)
    live.answer()
    live.process.stdout.close()
    live.process.stdin.write("1\n")
    code, message = live.end()
    assert (code, message) == (1, "")


# Kept.


@pytest.mark.slow
@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_the_stream_goes_on(number, kept):
    options, first, second = kept
    items = list(range(40))
    whole = piped(options, "".join(f"{item}\n" for item in items), first).stdout
    live = Live(options, second)
    answers = [live.answer()] + [live.ask(item) for item in items[:15]]
    assert live.end(number) == (0, "")
    live = Live(options, second)
    answers += [live.ask(item) for item in items[15:]]
    assert live.end() == (0, "")
    assert answers == whole.splitlines()


@pytest.mark.slow
@posix
def test_after_a_kill_answers_come_again(kept):
    options, first, second = kept
    items = list(range(40))
    text = "".join(f"{item}\n" for item in items)
    whole = piped(options, text, first).stdout.splitlines()
    live = Live(options, second)
    before = [live.answer()] + [live.ask(item) for item in items[:15]]
    assert live.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert before == whole[:16]
    done = piped([*options, "--from-start"], text, second)
    assert (done.returncode, done.stderr) == (0, "")
    after = [line for line in done.stdout.splitlines() if line != "step,value"]
    # Nothing is missing; what comes twice is the same.
    assert after == whole[len(whole) - len(after) :]
    assert len(after) >= 25
    # And once more: everything was written, nothing is left to do.
    done = piped([*options, "--from-start"], text, second)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@posix
def test_a_crash_before_the_state_was_saved(kept):
    options, first, second = kept
    whole = piped(options, "1\n2\n3\n4\n", first).stdout
    shutil.copy(first / "state.steps", second / "state.steps")
    # The input goes on: lines after the state must come again.
    done = piped(options, "9\n", second)
    assert (done.returncode, done.stdout) == (4, "step,value\n")
    note, refusal = done.stderr.splitlines()
    assert "Lines 1 to 4 must come again" in note
    assert refusal.startswith("Error: these steps were released before, with other items")
    # Nothing was lost by trying.
    done = piped([*options, "--from-start"], "1\n2\n3\n4\n5\n", second)
    assert done.returncode == 0
    assert done.stdout.startswith(whole)
    assert len(rows(done.stdout)) == 5


@pytest.mark.slow
def test_a_file_begins_at_the_start(kept):
    options, first, _ = kept
    path = first / "items.csv"
    path.write_text("day,n\n1,10\n2,20\n")
    command = [path, *options, "--column", "n", "--every", "1"]
    assert len(rows(piped(command, "", first).stdout)) == 2
    with path.open("a") as file:
        file.write("3,30\n")
    done = piped(command, "", first)
    assert done.stdout.startswith("3,")
    assert done.stdout.count("\n") == 1
    assert piped(command, "", first).stdout == ""
    path.write_text("day,n\n1,10\n")
    done = piped(command, "", first)
    assert (done.returncode, done.stdout) == (3, "")
    assert "shorter than what was published" in done.stderr


@pytest.mark.slow
def test_options_are_in_the_state(kept):
    _, first, _ = kept
    kept_only = ["--state", "state", "--key-file", "key"]
    assert piped([*kept_only], "1\n", first).stdout.startswith("step,value\n1,")
    done = piped([*kept_only, *SUM, "--max-value", "7"], "1\n", first)
    assert (done.returncode, done.stdout) == (2, "")
    assert "other options" in done.stderr
    assert piped([*kept_only, "--stderr"], "1\n", first).stdout.startswith("2,")


@posix
def test_files_are_private(kept):
    _, first, _ = kept
    for name in ("key", "state", "state.steps"):
        assert (first / name).stat().st_mode & 0o077 == 0, name
    assert not list(first.glob("*.new"))
    assert len(bytes.fromhex((first / "key").read_text())) == 32
    (first / "key").chmod(0o644)
    done = piped(["--state", "state", "--key-file", "key"], "", first)
    assert (done.returncode, done.stdout) == (3, "")
    assert "chmod 600" in done.stderr


@pytest.mark.slow
def test_a_state_that_cannot_be_used(kept):
    options, first, _ = kept
    sealed, key, steps = first / "state", first / "key", first / "state.steps"

    def refusal(code=3):
        done = piped(options, "5\n", first)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr

    good = sealed.read_bytes()
    for bad in (good[:-1], good[:40], b"", bytes([*good[:-9], good[-9] ^ 1, *good[-8:]])):
        sealed.write_bytes(bad)
        assert "checkpoint" in refusal()
    sealed.write_bytes(good)
    secret = key.read_text()
    key.write_text("00" * 32)
    assert "the key is another" in refusal()
    key.write_text("00" * 31)
    assert "64 hexadecimal digits" in refusal()
    key.unlink()
    assert "key file of this state is missing" in refusal()
    assert not key.exists()
    key.write_text(secret)
    key.chmod(0o600)
    with open_store(first):
        assert "in use" in refusal()
    assert piped(options, "5\n", first).returncode == 0
    good, content = sealed.read_bytes(), steps.read_bytes()
    steps.unlink()
    assert "'state.steps', are missing" in refusal()
    steps.write_bytes(content)
    sealed.unlink()
    assert "no state" in refusal()
    assert not sealed.exists()
    sealed.write_bytes(good)
    assert piped(options, "5\n", first).stdout.startswith("2,")


def test_a_crash_before_the_first_state(tmp_path):
    # Nothing was published: another stream begins.
    with so.plan(so.Continual(so.RunningSum()), so.PureDP(epsilon=1.0)).open(
        store=so.streams.FileStepStore(tmp_path / "state.steps")
    ):
        pass
    done = piped([*SUM, "--state", "state", "--key-file", "key"], "1\n", tmp_path)
    assert (done.returncode, len(rows(done.stdout))) == (0, 1)


def open_store(folder):
    return so.restore(
        (folder / "state").read_bytes(),
        bytes.fromhex((folder / "key").read_text()),
        so.streams.FileStepStore(folder / "state.steps"),
    )


def test_a_state_that_cannot_be_written(tmp_path):
    done = piped([*SUM, "--state", "nowhere/state", "--key-file", "key"], "1\n", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    done = piped([*SUM, "--state", "state", "--key-file", "nowhere/key"], "1\n", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert not (tmp_path / "state").exists()


def test_saving_waits_for_a_pause(tmp_path, monkeypatch):
    from sordino.cli.stream_options import StreamChoices

    choices = StreamChoices(workload="running-sum", epsilon=1.0)
    saved = open_stored(choices, tmp_path / "state", tmp_path / "key")
    with saved.stream:
        assert saved.patience() is None
        before = (tmp_path / "state").read_bytes()
        saved.stream.update(1)
        assert 0.0 < saved.patience() < 1.0
        assert not saved.due
        now = saved._time
        monkeypatch.setattr("sordino.cli.stream_state.time.monotonic", lambda: now + 2.0)
        assert saved.due
        saved.save()
        assert saved.patience() is None
        assert (tmp_path / "state").read_bytes() != before


# Output.


def test_every_kth_step_as_json_lines(tmp_path):
    text = "1\n" * 10
    done = piped([*SHARP, "--every", "4", "--format", "jsonl", "--stderr"], text, tmp_path)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["step"] for record in found] == [4, 8]
    assert [record["value"] for record in found] == pytest.approx([4.0, 8.0], abs=0.1)
    assert list(found[0]) == ["step", "value", "stderr"]


def test_several_columns(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text('\ufeffa,"b,c",d\r\n1,10,x\r\n2,20,y\r\n', encoding="utf-8")
    result = sordino(path, *SHARP, "--column", "b,c", "--column", "a")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == 'step,"b,c",a'
    assert [float(row["b,c"]) for row in rows(result.stdout)] == pytest.approx([10.0, 30.0], abs=0.1)
    assert [float(row["a"]) for row in rows(result.stdout)] == pytest.approx([1.0, 3.0], abs=0.1)
    path.write_text("1,2,3\n4,5,6\n7,8\n")
    result = sordino(path, *SHARP, "--dim", 3, "--format", "jsonl")
    assert json.loads(result.stdout.splitlines()[2])["value"] == pytest.approx([5.0, 7.0, 9.0], abs=0.1)


def test_a_real_stream(tmp_path):
    path = tmp_path / "reals.txt"
    path.write_text("0.25\n-0.5\n1e9\n")
    result = sordino(path, *SHARP, "--real", "--max-value", 64)
    assert values(result.stdout) == pytest.approx([0.25, -0.25, 63.75], abs=0.1)


def test_the_plan_reads_nothing(tmp_path):
    options = ["--workload", "running-sum", "--length", 100, "--epsilon", 1, "--delta", 1e-6]
    result = sordino(tmp_path / "nowhere", *options, "--plan")
    plan = so.plan(so.Continual(so.RunningSum(100)), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert (result.exit_code, result.stdout) == (0, f"{plan.explain()}\n\n{plan.compare()}\n")
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    assert sordino(*options, "--plan", "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["running-average"], "RunningAverage(length=None)"),
        (["sliding-window", "--window", 7], "SlidingWindow(window=7"),
        (["moving-average", "--window", 7, "--length", 50], "MovingAverage(window=7, length=50"),
        (["exponential-smoothing", "--decay", 0.5], "ExponentialSmoothing(decay=0.5"),
        (["convolution", "--kernel", "1,2,1", "--length", 9], "Convolution"),
        (["running-sum", "--length", 9, "--horizon", "soft"], "soft: best for n = 9"),
        (["running-sum", "--unit", "one flight", "--records", 2], "one flight"),
        (["running-sum", "--max-participations", 4, "--min-separation", 7], "one user"),
        (["running-sum", "--length", 9, "--mechanism", "binary-tree"], "binary-tree-gaussian, as asked"),
        (["running-sum", "--dim", 5, "--cells-per-record", 2, "--signed"], "5 coordinates"),
    ],
)
def test_every_stream_can_be_said(options, shown):
    result = sordino("--workload", *options, "--rho", 0.1, "--plan")
    assert result.exit_code == 0, result.output
    assert shown in result.stdout


# Malformed lines and refusals.


@pytest.mark.parametrize("line", ["", SECRET, "nan", "inf", "1,2", '"', "\x00", "\u00e9", "0x10", "x" * 200_000])
def test_a_malformed_line_is_zero_silently(line, tmp_path):
    path = tmp_path / "lines"
    path.write_text(f"3\n{line}\n4\n", encoding="utf-8")
    done = sordino(path, *SHARP)
    assert (done.exit_code, done.stderr) == (0, "")
    assert values(done.stdout) == pytest.approx([3.0, 3.0, 7.0], abs=0.1)
    assert SECRET not in done.stdout


@pytest.mark.parametrize("line", ["1e999", "9" * 5000])
def test_a_number_beyond_all_floats_is_clamped(line, tmp_path):
    path = tmp_path / "lines"
    path.write_text(f"3\n{line}\n4\n", encoding="utf-8")
    assert values(sordino(path, *SHARP).stdout) == pytest.approx([3.0, 3.0 + 2**24, 7.0 + 2**24], abs=0.1)


def test_numbers_just_below_a_half_stay_below_it(tmp_path):
    path = tmp_path / "lines"
    path.write_text("1.49999999999999984\n2.49999999999999984\n2.5\n", encoding="utf-8")
    assert values(sordino(path, *SHARP).stdout) == pytest.approx([1.0, 3.0, 6.0], abs=0.1)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "odd"
    path.write_bytes(b"\xff\xfe\n5\n\r\n6")
    result = sordino(path, *SHARP)
    assert result.exit_code == 0
    assert values(result.stdout) == pytest.approx([0.0, 5.0, 5.0, 11.0], abs=0.1)


def test_large_numbers_are_clamped(tmp_path):
    done = piped([*SHARP, "--max-value", "100"], f"1e300\n{10**30}\n-1e300\n", tmp_path)
    assert values(done.stdout) == pytest.approx([100.0, 200.0, 100.0], abs=0.1)


@pytest.mark.slow
def test_the_horizon_ends_the_stream(tmp_path):
    options = [*SUM, "--length", "3", "--state", "state", "--key-file", "key"]
    done = piped(options, "1\n2\n3\n4\n5\n", tmp_path)
    assert (done.returncode, len(rows(done.stdout))) == (4, 3)
    assert done.stderr == "Error: the stream has ended: its budget covers 3 steps\n"
    done = piped(options, "", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    done = piped(options, "1\n", tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert piped([*SHARP, "--length", "3"], "1\n2\n3\n", tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (2, ["--epsilon", "1"]),
        (2, ["--workload", "running-sum"]),
        (2, [*SUM, "--window", "7"]),
        (2, ["--workload", "sliding-window", "--epsilon", "1"]),
        (2, ["--workload", "convolution", "--kernel", "1,1", "--epsilon", "1"]),
        (2, ["--workload", "histogram", "--epsilon", "1"]),
        (2, [*SUM, "--horizon", "hard"]),
        (2, [*SUM, "--min-separation", "3"]),
        (2, [*SUM, "--max-participations", "3", "--replace"]),
        (2, [*SUM, "--column", "a", "--column", "b", "--dim", "3"]),
        (2, [*SUM, "--cells-per-record", "2"]),
        (2, [*SUM, "--every", "0"]),
        (2, [*SUM, "--state", "state"]),
        (2, [*SUM, "--key-file", "key"]),
        (2, [*SUM, "--plot", "x.png"]),
        (2, [*SUM, "--plan", "--plot", "x.docx"]),
        (3, [*SUM, "--plan", "--plot", "nowhere/x.png"]),
        (4, ["--workload", "running-sum", "--epsilon", "1", "--mechanism", "blt-gaussian"]),
        (3, ["nowhere.csv", *SUM]),
        (3, [".", *SUM]),
    ],
)
def test_refusals_are_one_line_and_a_code(code, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = sordino(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not rows(result.stdout)


@pytest.mark.parametrize("header", [SECRET, f"n,n,{SECRET}", ""])
def test_a_missing_column_is_named_without_the_header(header, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(f"{header}\n1\n")
    result = sordino(path, *SUM, "--column", "n")
    assert (result.exit_code, result.stderr) == (3, "Error: the input file must have one column 'n'\n")


def test_the_number_of_columns_is_that_of_the_state(tmp_path):
    files = ["--state", tmp_path / "state", "--key-file", tmp_path / "key"]
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    assert sordino(path, *SHARP, *files, "--column", "a", "--column", "b").exit_code == 0
    assert sordino(path, *files, "--column", "a").exit_code == 2


# The parts.


def test_lines_are_cut_anywhere():
    read, write = os.pipe()
    text = b"12\n345\r\n\n" + b"7" * 70_000 + b"," + b"8" * 200_000 + b"\n9"
    found = []
    with Interruption() as interruption:
        reader = LineReader(read, interruption, 1)
        assert not reader.wait(0.0)
        for start in range(0, len(text), 1000):
            os.write(write, text[start : start + 1000])
            assert reader.wait(1.0)
            found += reader.read()
        os.close(write)
        found += reader.read()
        assert reader.read() is None
    os.close(read)
    assert found == [b"12", b"345\r", b"", b"", b"9"]


@posix
def test_a_signal_ends_a_wait():
    read, write = os.pipe()
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        assert not LineReader(read, interruption, 1).wait(None)
        assert interruption.stopped
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    os.close(read)
    os.close(write)


def test_items_of_lines():
    parser = LineParser(2, ("y", "x"))
    assert parser.items([]).shape == (0, 2)
    assert parser.items([b"x,y,z"]).shape == (0, 2)
    lines = [b"1,2,3", b"1", b'"4",5', b"a,1", b"1,2,3,4", b" 6 , 7"]
    np.testing.assert_array_equal(parser.items(lines), [[2, 1], [0, 0], [5, 4], [0, 0], [2, 1], [7, 6]])


def test_help_has_examples():
    result = sordino("--help")
    assert result.exit_code == 0
    assert "sordino stream " in result.output
