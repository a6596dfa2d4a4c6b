"""Open streams: what they take, publish and refuse."""

import gc
import os
import pickle
import threading
import traceback

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

GAUSSIAN = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
KEY = bytes(range(32))

STREAMS = [
    (so.RunningSum(16), GAUSSIAN, "identity"),
    (so.RunningSum(16), GAUSSIAN, "output"),
    (so.RunningSum(16), GAUSSIAN, "blt"),
    (so.RunningSum(16), GAUSSIAN, "two-diagonals"),
    (so.RunningSum(16), GAUSSIAN, "time-varying-blt"),
    (so.RunningSum(16), GAUSSIAN, "binary-tree"),
    (so.RunningSum(16), GAUSSIAN, "honaker-tree"),
    (so.RunningSum(16), GAUSSIAN, "smooth-tree"),
    (so.RunningSum(16), GAUSSIAN, "square-root"),
    (so.RunningSum(16), GAUSSIAN, "normalized-square-root"),
    (so.RunningSum(16), GAUSSIAN, "optimal"),
    (so.RunningSum(16), PURE, "identity"),
    (so.RunningSum(16), PURE, "output"),
    (so.RunningSum(16), PURE, "binary-tree"),
    (so.RunningSum(16), PURE, "smooth-tree"),
    (so.RunningSum(16), PURE, "subtraction-tree"),
    (so.RunningAverage(16), GAUSSIAN, "blt"),
    (so.RunningAverage(16), GAUSSIAN, "time-varying-blt"),
    (so.RunningAverage(16), PURE, "subtraction-tree"),
    (so.RunningSum(), GAUSSIAN, "blt"),
    (so.ExponentialSmoothing(0.7), GAUSSIAN, "blt"),
    (so.ExponentialSmoothing(0.7), PURE, "identity"),
    (so.MovingAverage(4), GAUSSIAN, "comb"),
    (so.SlidingWindow(4), PURE, "identity"),
    (so.SlidingWindow(4, 16), GAUSSIAN, "outer"),
    (so.Convolution([1.0, 0.5, -0.25], 16, "causal"), GAUSSIAN, "outer"),
]
plan_of = pytest.mark.parametrize(("workload", "privacy", "mechanism"), STREAMS)


def truth(workload, items):
    """Answers without noise, from the definition."""
    n = len(items)
    t = np.arange(n)
    match workload:
        case so.RunningAverage():
            return np.cumsum(items, axis=0) / (t + 1.0).reshape(-1, *[1] * (items.ndim - 1))
        case so.RunningSum():
            taps = np.ones(n)
        case so.ExponentialSmoothing():
            taps = (1.0 - workload.decay if workload.normalized else 1.0) * workload.decay**t
        case _:
            taps = np.pad(workload.kernel, (0, n))[:n]
    lags = t[:, None] - t
    return np.where(lags >= 0, taps[lags], 0.0) @ items


@pytest.fixture
def plan():
    return so.plan(so.Continual(so.RunningSum(64)), GAUSSIAN, max_value=1000)


@pytest.mark.statistical
@plan_of
def test_errors_and_intervals_are_as_declared(workload, privacy, mechanism, known_noise):
    """4096 streams at once, as coordinates.

    Relative error of an estimated standard deviation below 0.022 (Laplace: kurtosis 6); coverage of a 90 % interval
    within 0.0047. Limits at 6 of these: false alarm below 1e-7 for all steps together; the key is fixed.
    """
    dim = 4096
    plan = so.plan(so.Continual(workload, dim=dim), privacy, mechanism=mechanism)
    items = np.random.default_rng(2).integers(-5, 20, (16, dim))
    release = plan.release(items)
    errors = release.values - truth(workload, items)
    assert release.stderr.shape == release.values.shape == (16, dim)
    ratio = np.sqrt((errors**2).mean(axis=1)) / plan.fit.std(range(1, 17))
    assert np.abs(ratio - 1.0).max() < 6 * (0.011 if privacy is GAUSSIAN else 0.018)
    assert np.abs(errors.mean(axis=1) / plan.fit.std(range(1, 17))).max() < 6 / 64
    interval = release.interval(0.9)
    covered = (np.abs(errors) <= (interval.upper - interval.lower) / 2).mean(axis=1)
    assert covered.min() > 0.9 - 6 * 0.0047
    # Whole steps of discrete noise cover more.
    assert covered.max() < 0.9 + 6 * 0.0047 + (0.002 if privacy is GAUSSIAN else 0.04)
    together = release.interval(0.9, simultaneous=True)
    assert together.simultaneous
    assert np.all(together.upper - together.lower > interval.upper - interval.lower)


@pytest.mark.statistical
def test_simultaneous_intervals_hold_together(known_noise):
    """600 streams of 4 coordinates: all coordinates of the last step inside in at least 90 %.

    Standard deviation of the share below 0.0123; limit at 6 of them.
    """
    plan = so.plan(so.Continual(so.RunningSum(5), dim=4), GAUSSIAN)
    inside = 0
    for number in range(600):
        with so.testing.deterministic_noise(number.to_bytes(32, "little")), plan.open() as stream:
            stream.update(np.ones((5, 4)))
            interval = stream.interval(0.9, simultaneous=True)
        inside += bool(np.all((interval.lower <= 5.0) & (interval.upper >= 5.0)))
    assert 0.9 - 6 * 0.0123 < inside / 600 < 0.9 + 6 * 0.0123


@plan_of
@pytest.mark.parametrize("dim", [1, 2])
def test_releasing_is_opening_and_updating(workload, privacy, mechanism, dim, known_noise):
    plan = so.plan(so.Continual(workload, dim=dim), privacy, mechanism=mechanism)
    items = np.random.default_rng(3).integers(0, 9, (16, dim)).reshape((16, dim) if dim > 1 else 16)
    release = plan.release(items)
    assert not release.private
    assert not release.accounted
    with plan.open() as stream:
        one_by_one = [stream.update(item) for item in items]
    assert np.array_equal(one_by_one, release.values)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    case=st.sampled_from(STREAMS),
    cuts=st.lists(st.integers(1, 16), max_size=8),
    dim=st.integers(1, 3),
    stored=st.booleans(),
)
def test_batches_may_be_cut_anywhere(case, cuts, dim, stored):
    workload, privacy, mechanism = case
    plan = so.plan(so.Continual(workload, dim=dim), privacy, mechanism=mechanism)
    items = np.random.default_rng(4).integers(0, 9, (16, dim)).reshape((16, dim) if dim > 1 else 16)
    store = so.streams.InMemoryStepStore()
    with plan.open(store=store) as stream:
        checkpoint = stream.checkpoint(KEY)
        whole = stream.update(items)
    # The same key, from the checkpoint; with deterministic noise for streams without a store.
    with so.restore(checkpoint, KEY, store, replay=True) as stream:
        parts = np.split(items, sorted({min(cut, 15) for cut in cuts}))
        assert np.array_equal(np.concatenate([stream.update(part) for part in parts]), whole)


def test_forms_of_items(plan, known_noise):
    pandas = pytest.importorskip("pandas")
    items = [3, 0, 1, 5]
    with plan.open() as stream:
        expected = stream.update(np.array(items))
    frame = pandas.DataFrame({"x": items})
    packed = np.zeros(4, dtype=[("tag", "i1"), ("x", "<i8")])
    packed["x"] = items
    unaligned = np.frombuffer(b"\0" + np.array(items).tobytes(), dtype=np.int64, offset=1)
    forms = [
        items,
        tuple(items),
        *(np.array(items, dtype=d) for d in "bBhHiIlLqQfdg"),
        np.array(items, dtype=np.float16),
        np.array(items, dtype=">i4"),
        np.array(items, dtype=">f8"),
        np.array(items, dtype=object),
        np.array([x + 0.25 for x in items]),
        np.repeat(items, 2)[::2],
        np.array(items[::-1])[::-1],
        frame["x"],
        frame["x"].astype("Int64"),
        packed["x"],
        memoryview(np.array(items)),
        unaligned,
    ]
    for form in forms:
        with plan.open() as stream:
            assert np.array_equal(stream.update(form), expected), type(form)
    with plan.open() as stream:
        assert stream.update(np.array(items)[:, None]).shape == (4, 1)
    with plan.open() as stream:
        scalars = [3, 0.0, np.int8(1), np.float32(5)]
        answers = [stream.update(x) for x in scalars]
        assert answers == expected.tolist()
        assert {type(a) for a in answers} == {float}


def test_bools_are_counted(known_noise, plan):
    with plan.open() as one, plan.open() as other:
        assert one.update(True) == other.update(1)
        assert one.update(np.bool_(False)) == other.update(0)
        assert np.array_equal(one.update([True, False]), other.update([1, 0]))


@pytest.mark.parametrize(
    "huge", [1001, 2**62, 2**63, 2**64 - 1, 10**30, 10**400, 1e300, np.uint64(2**64 - 1), np.int64(2**63 - 1)]
)
def test_large_items_are_clamped_at_the_declared_bound(plan, huge, known_noise):
    with plan.open() as stream:
        expected = stream.update(1000)
    for item in (huge, [huge], np.array([huge])):
        with plan.open() as stream:
            assert np.all(stream.update(item) == expected)
    if not isinstance(huge, np.generic):
        with plan.open() as one, plan.open() as other:
            assert one.update(-huge) == other.update(-1000)
            assert np.all(one.update([-huge, 1]) == other.update([-1000, 1]))


def test_declared_integers_are_rounded_half_up_and_reals_to_the_grid(known_noise):
    plan = so.plan(so.Continual(so.RunningSum(8)), GAUSSIAN, max_value=1000)
    with plan.open() as one, plan.open() as other:
        assert np.array_equal(one.update([0.5, 1.49, -0.5, -1.5]), other.update([1, 1, 0, -1]))
        assert [one.update(x) for x in (0.5, -1.5)] == [other.update(x) for x in (1, -1)]
    real = so.plan(so.Continual(so.RunningSum(8)), GAUSSIAN, max_value=4, integral=False)
    with real.open() as one, real.open() as other:
        assert abs(one.update(0.3) - other.update(0) - 0.3) < 2.0**-real.fit.domain.fraction_bits
        assert abs(one.update([0.25, 7.0])[1] - other.update([0, 0])[1] - 4.55) < 2.0 ** -(
            real.fit.domain.fraction_bits - 2
        )


BAD = [
    ("12345.5", so.errors.DataTypeError),
    (b"12345", so.errors.DataTypeError),
    (["12345x", 1], so.errors.DataTypeError),
    (12345j, so.errors.DataTypeError),
    ([12345, None, {}], so.errors.DataTypeError),
    (None, so.errors.DataTypeError),
    (object(), so.errors.DataTypeError),
    ([[12345], [1, 2]], so.errors.DataTypeError),
    (np.datetime64("12345-01-01"), so.errors.DataTypeError),
    (float("nan"), so.errors.InvalidParameterError),
    (float("inf"), so.errors.InvalidParameterError),
    (-np.inf, so.errors.InvalidParameterError),
    ([12345.0, float("nan")], so.errors.InvalidParameterError),
    ([12345, None], so.errors.InvalidParameterError),
    (np.zeros((2, 2)) + 12345, so.errors.ShapeError),
    (np.zeros((1, 1, 1)) + 12345, so.errors.ShapeError),
    ([], so.errors.ShapeError),
]


@pytest.mark.parametrize(("items", "error"), BAD, ids=lambda x: repr(x)[:20])
@pytest.mark.parametrize("stored", [False, True])
def test_bad_items_release_nothing_and_are_not_quoted(plan, items, error, stored):
    store = so.streams.InMemoryStepStore() if stored else None
    stream = plan.open(store=store)
    stream.update(1)
    with pytest.raises(error) as caught:
        stream.update(items)
    assert "12345" not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert stream.step == 1
    stream.update(1)
    if store is not None:
        assert len(store.entries()) == 2


def test_wrong_dimensions():
    plan = so.plan(so.Continual(so.RunningSum(8), dim=3), GAUSSIAN)
    stream = plan.open()
    for items in (1, [1, 2], np.ones((2, 2)), np.ones((3, 2)), np.ones((1, 2, 3)), np.ones((0, 3)), np.ones(6)):
        with pytest.raises(so.errors.ShapeError):
            stream.update(items)
    assert stream.step == 0
    assert stream.update([1, 2, 3]).shape == (3,)
    assert stream.update(np.ones((4, 3))).shape == (4, 3)
    assert stream.value.shape == (3,)
    assert stream.interval(0.9).lower.shape == (3,)


def test_value_step_stderr_interval(plan):
    stream = plan.open()
    assert (stream.value, stream.stderr, stream.interval(0.9), stream.step) == (None, None, None, 0)
    last = stream.update([1, 2, 3])[-1]
    assert stream.value == last
    assert stream.step == 3
    assert stream.stderr == plan.fit.std([3])[0]
    interval = stream.interval(0.95)
    assert interval.lower < last < interval.upper
    assert (interval.upper - interval.lower) / 2 == pytest.approx(1.959964 * stream.stderr, rel=1e-6)
    for level in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(so.errors.InvalidParameterError):
            stream.interval(level)
    with pytest.raises(so.errors.ForkError):  # its own array: callers cannot change what is published next
        pickle.dumps(stream)


def test_answers_are_copies():
    stream = so.plan(so.Continual(so.RunningSum(8), dim=2), GAUSSIAN).open()
    answers = stream.update([1, 2])
    kept = answers.copy()
    answers[:] = 0.0
    stream.value[:] = 0.0
    assert np.array_equal(stream.value, kept)


def test_items_are_not_changed(plan):
    items = np.array([1, 5000, -3])
    plan.open().update(items)
    assert items.tolist() == [1, 5000, -3]


@pytest.mark.parametrize("stored", [False, True])
def test_a_hard_horizon_ends_the_stream(stored):
    plan = so.plan(so.Continual(so.RunningSum(4)), GAUSSIAN)
    stream = plan.open(store=so.streams.InMemoryStepStore() if stored else None)
    stream.update([1, 2])
    with pytest.raises(so.errors.HorizonError, match="covers: 2;"):
        stream.update([1, 2, 3])
    assert stream.step == 2
    stream.update([1, 2])
    for items in (1, [1], 1.0, True):
        with pytest.raises(so.errors.HorizonError, match="covers: 0;"):
            stream.update(items)
    assert stream.step == 4
    assert stream.value is not None
    with pytest.raises(so.errors.HorizonError):
        plan.release(np.ones(5))


@pytest.mark.parametrize("horizon", ["soft", "unbounded"])
def test_other_horizons_go_on(horizon):
    plan = so.plan(so.Continual(so.RunningSum(4), horizon=horizon), GAUSSIAN)
    stream = plan.open()
    assert stream.update(np.ones(64)).shape == (64,)
    assert plan.fit.steps == 2**40


def test_nothing_private_in_texts(plan):
    stream = plan.open()
    stream.update(777)
    assert "777" not in repr(stream) + str(stream)
    assert "values" not in repr(plan.release([777]))


@pytest.mark.parametrize("stored", [False, True])
def test_a_fork_refuses(plan, stored, tmp_path):
    """The child gets ForkError from everything that would publish; the parent goes on."""
    stream = plan.open(store=so.streams.FileStepStore(tmp_path / "steps") if stored else None)
    stream.update(1)
    child = os.fork()
    if child == 0:
        refused = 0
        try:
            calls = [lambda: stream.update(1), lambda: stream.update([1, 2]), lambda: stream.value]
            if stored:
                calls += [lambda: stream.checkpoint(KEY), stream.resume, lambda: stream.update(1, step_id="x")]
            for call in calls:
                try:
                    call()
                except so.errors.ForkError:
                    refused += 1
            stream.close()
        finally:
            os._exit(0 if refused == len(calls) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stream.update(1)
    assert stream.step == 2


@pytest.mark.parametrize("batch", [1, 3, 9000])
def test_concurrent_updates_publish_each_step_once(batch):
    """Every step has one noise: the last sum is that of all items plus the noise of its step."""
    plan = so.plan(so.Continual(so.RunningSum(24 * batch)), GAUSSIAN, mechanism="blt")
    with so.testing.deterministic_noise(KEY):
        quiet = plan.release(np.zeros(24 * batch)).values
        stream = plan.open()
    seen, items = [], np.ones(batch, dtype=np.int64)

    def work():
        for _ in range(6):
            seen.append(np.atleast_1d(stream.update(1 if batch == 1 else items)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stream.step == 24 * batch
    answers = np.sort(np.concatenate([part - quiet_part for part, quiet_part in _matched(seen, quiet, batch)]))
    assert np.allclose(answers, np.arange(1, 24 * batch + 1), atol=1e-6)


def _matched(parts, quiet, batch):
    """Pair every batch of answers with the noise of the steps that it was published at."""
    places = {}
    for start in range(0, len(quiet), batch):
        places[start] = quiet[start : start + batch]
    for part in parts:
        start = min(places, key=lambda s: np.abs(part - places[s] - np.arange(s + 1, s + batch + 1)).max())
        yield part, places.pop(start)


@pytest.mark.parametrize(
    "items", [[], np.ones(65), np.ones((2, 2)), [float("nan")], "x", [1, None], 5, np.float64(3.0), None]
)
def test_bad_input_charges_nothing(plan, items):
    ledger = so.Ledger(GAUSSIAN)
    with pytest.raises(so.SordinoError):
        plan.release(items, ledger=ledger)
    assert not ledger.history
    release = plan.release([1, 2], ledger=ledger, request_id="r")
    assert release.accounted
    assert release.private


def test_private_streams_differ(plan):
    first, second = plan.open(), plan.open()
    assert first.private
    assert first.update(0) != second.update(0)


def test_the_key_is_that_of_the_context_at_open(plan, known_noise):
    inside = plan.open()
    with so.testing.deterministic_noise(KEY):
        other = plan.open()
        assert inside.update(0) != other.update(0)
    assert not other.private


def test_a_dropped_stream_frees_its_file(tmp_path):
    """As after an exception that nobody caught: the file must not stay locked until the process ends."""
    plan, path = so.plan(so.Continual(so.RunningSum(4)), GAUSSIAN), tmp_path / "steps"
    stream = plan.open(store=so.streams.FileStepStore(path))
    checkpoint = stream.checkpoint(KEY)
    del stream
    gc.collect()
    so.restore(checkpoint, KEY, so.streams.FileStepStore(path)).close()
