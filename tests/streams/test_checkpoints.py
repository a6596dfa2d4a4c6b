"""Checkpoints: what they bring back, what they refuse, and the leaks that the guard is there for."""

import json
import secrets

import numpy as np
import pytest

import sordino as so
from sordino import _core

GAUSSIAN = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
KEY = bytes(range(32))

STREAMS = [
    *(
        (so.RunningSum(24), GAUSSIAN, name)
        for name in (
            "identity",
            "output",
            "blt",
            "two-diagonals",
            "time-varying-blt",
            "binary-tree",
            "smooth-tree",
            "honaker-tree",
            "square-root",
            "normalized-square-root",
            "optimal",
        )
    ),
    *((so.RunningSum(24), PURE, n) for n in ("identity", "output", "binary-tree", "smooth-tree", "subtraction-tree")),
    (so.RunningAverage(24), GAUSSIAN, "blt"),
    (so.RunningAverage(24), GAUSSIAN, "time-varying-blt"),
    (so.ExponentialSmoothing(0.8), GAUSSIAN, "blt"),
    (so.ExponentialSmoothing(0.8), GAUSSIAN, "square-root"),
    (so.SlidingWindow(5), GAUSSIAN, "comb"),
    (so.SlidingWindow(5), GAUSSIAN, "outer"),
    (so.Convolution([1.0, -2.0, 0.5], 24, "causal"), GAUSSIAN, "outer"),
    (so.RunningSum(), GAUSSIAN, "blt"),
]


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize(("workload", "privacy", "mechanism"), STREAMS)
def test_a_restored_stream_goes_on_as_the_one_that_never_stopped(workload, privacy, mechanism, dim):
    plan = so.plan(so.Continual(workload, dim=dim), privacy, mechanism=mechanism)
    items = np.random.default_rng(5).integers(0, 9, (24, dim)).reshape((24, dim) if dim > 1 else 24)
    store = so.streams.InMemoryStepStore()
    with plan.open(store=store) as stream:
        early = stream.checkpoint(KEY)
        first = stream.update(items[:11])
        middle = stream.checkpoint(KEY)
        rest = stream.update(items[11:])
    with so.restore(early, KEY, store, replay=True) as again:
        assert again.step == 0
        assert again.value is None
        assert again.update(items[:7]).tolist() == first[:7].tolist()
        nested = again.checkpoint(KEY)
    with so.restore(nested, KEY, store, replay=True) as again:
        assert again.update(items[7:20]).tolist() == [*first[7:].tolist(), *rest[:9].tolist()]
    with so.restore(middle, KEY, store, replay=True) as again:
        assert again.step == 11
        assert np.all(again.value == first[-1])
        assert again.update(items[11:]).tolist() == rest.tolist()
        assert again.fit.digest == plan.digest


def test_nothing_is_charged_again():
    ledger, store = so.Ledger(GAUSSIAN), so.streams.InMemoryStepStore()
    plan = so.plan(so.Continual(so.RunningSum(5)), GAUSSIAN)
    stream = plan.open(ledger, store=store)
    stream.update(1)
    checkpoint = stream.checkpoint(KEY)
    stream.close()
    again = so.restore(checkpoint, KEY, store)
    assert again.accounted
    assert again.private
    assert len(ledger.history) == 1


@pytest.fixture
def used():
    """A plan, a store that holds two steps, and checkpoints before and after them."""
    plan, store = so.plan(so.Continual(so.RunningSum(9)), GAUSSIAN), so.streams.InMemoryStepStore()
    with plan.open(store=store) as stream:
        old = stream.checkpoint(KEY)
        stream.update([3, 4])
        new = stream.checkpoint(KEY)
    return plan, store, old, new


def test_wrong_keys_are_refused(used):
    _, store, _, new = used
    with pytest.raises(so.errors.CheckpointError, match="another"):
        so.restore(new, secrets.token_bytes(32), store)
    for key in (b"", KEY[:31], KEY + b"\0", "k" * 32, bytearray(KEY), None, 5):
        with pytest.raises(so.errors.InvalidParameterError, match="32 bytes") as caught:
            so.restore(new, key, store)
        assert "kkk" not in str(caught.value)
    so.restore(new, KEY, store).close()


def test_every_corrupt_byte_is_noticed(used):
    _, store, _, new = used
    for place in [*range(0, len(new), 7), *range(len(new) - 40, len(new))]:
        bad = bytearray(new)
        bad[place] ^= 1 << (place % 8)
        with pytest.raises(so.errors.CheckpointError):
            so.restore(bytes(bad), KEY, store)
    so.restore(new, KEY, store).close()


def test_every_truncation_is_noticed(used):
    _, store, _, new = used
    for length in [*range(0, len(new), 13), len(new) - 1]:
        with pytest.raises(so.errors.CheckpointError):
            so.restore(new[:length], KEY, store)
    with pytest.raises(so.errors.CheckpointError):
        so.restore(new + b"\0", KEY, store)
    for other in ("text", None, 5, [1]):
        with pytest.raises(so.errors.DataTypeError, match="bytes"):
            so.restore(other, KEY, store)


def sealed(checkpoint, header):
    """The checkpoint with another public header in front."""
    size = int.from_bytes(checkpoint[8:16], "little")
    text = json.dumps(header, sort_keys=True).encode()
    return checkpoint[:8] + len(text).to_bytes(8, "little") + text + checkpoint[16 + size :]


def test_the_header_cannot_be_exchanged(used):
    plan, store, _, new = used
    header = json.loads(_core.checkpoint_header(new))
    assert sealed(new, header) == new
    stronger = so.plan(so.Continual(so.RunningSum(9)), so.GaussianDP(mu=3.0))
    for change in (
        {"stream": "another"},
        {"accounted": True},
        {"plan": stronger.record()},
        {"plan": {}},
        {"plan": plan.record() | {"dim": 2}},
        {"plan": plan.record() | {"mechanism": "no such"}},
        {"plan": plan.record() | {"requested": "blt"}},
    ):
        with pytest.raises(so.errors.CheckpointError):
            so.restore(sealed(new, header | change), KEY, store)
    for broken in ({}, [], "x", {"stream": 1}):
        with pytest.raises(so.errors.CheckpointError):
            so.restore(sealed(new, broken), KEY, store)
    deep = b"[" * 10**5
    with pytest.raises(so.errors.CheckpointError):
        so.restore(new[:8] + len(deep).to_bytes(8, "little") + deep + new[-60:], KEY, store)


def test_stale_checkpoints_need_replay(used):
    _, store, old, new = used
    with pytest.raises(so.errors.CheckpointError, match="stale: 2 more"):
        so.restore(old, KEY, store)
    again = so.restore(old, KEY, store, replay=True)
    with pytest.raises(so.errors.StepConflictError):
        again.update(4)
    again.update([3, 4])
    again.close()
    so.restore(new, KEY, store).close()


def test_a_store_that_lacks_steps_or_knows_another_stream_is_refused(used, tmp_path):
    plan, _, old, new = used
    for checkpoint in (old, new):
        for store in (so.streams.InMemoryStepStore(), so.streams.FileStepStore(tmp_path / "new")):
            with pytest.raises(so.errors.StepStoreError):
                so.restore(checkpoint, KEY, store, replay=True)
        other = so.streams.InMemoryStepStore()
        with plan.open(store=other) as stream:
            stream.update([3, 4])
        with pytest.raises(so.errors.StepStoreError, match="another stream"):
            so.restore(checkpoint, KEY, other, replay=True)
        for no_store in (None, "path"):
            with pytest.raises(so.errors.DataTypeError):
                so.restore(checkpoint, KEY, no_store)
    assert not (tmp_path / "new").exists()


def test_a_rolled_back_store_is_refused(used, tmp_path):
    plan, path = used[0], tmp_path / "steps"
    with plan.open(store=so.streams.FileStepStore(path)) as stream:
        start, content = stream.checkpoint(KEY), path.read_bytes()
        stream.update([1, 2])
        later = stream.checkpoint(KEY)
    path.write_bytes(content)
    with pytest.raises(so.errors.CheckpointError, match="lacks steps"):
        so.restore(later, KEY, so.streams.FileStepStore(path), replay=True)
    with so.restore(start, KEY, so.streams.FileStepStore(path)) as stream:  # nobody can tell here
        stream.update([5, 5])
    with pytest.raises(so.errors.CheckpointError, match="other answers"):
        so.restore(later, KEY, so.streams.FileStepStore(path), replay=True)


def test_who_may_make_a_checkpoint(known_noise):
    plan = so.plan(so.Continual(so.RunningSum(9)), GAUSSIAN)
    with pytest.raises(so.errors.InvalidParameterError, match="deterministic"):
        plan.open(store=so.streams.InMemoryStepStore()).checkpoint(KEY)
    with pytest.raises(so.errors.InvalidParameterError, match="needs a store"):
        plan.open().checkpoint(KEY)


def test_checkpoints_of_closed_streams_and_bad_keys():
    store = so.streams.InMemoryStepStore()
    stream = so.plan(so.Continual(so.RunningSum(9)), GAUSSIAN).open(store=store)
    with pytest.raises(so.errors.InvalidParameterError, match="32 bytes"):
        stream.checkpoint(b"short")
    assert stream.checkpoint(KEY) != stream.checkpoint(KEY)  # a nonce each
    stream.close()
    with pytest.raises(so.errors.StreamClosedError):
        stream.checkpoint(KEY)


def test_a_checkpoint_hides_key_and_noise():
    with so.plan(so.Continual(so.RunningSum(9)), GAUSSIAN).open(store=so.streams.InMemoryStepStore()) as stream:
        stream.update([1, 2, 3])
        checkpoint = stream.checkpoint(KEY)
    size = int.from_bytes(checkpoint[8:16], "little")
    assert set(json.loads(checkpoint[16 : 16 + size])) == {"stream", "accounted", "plan"}
    assert KEY not in checkpoint


# The two hazards, first without the guard.


def test_other_items_on_the_same_noise_give_the_exact_difference(used):
    """Without the store: the core restores an old state twice, and noise cancels. With it: refused."""
    plan, store, old, _ = used
    fitted = plan.fit
    answers = []
    for items in ([3, 4, 1], [0, 9, 1]):
        unguarded = _core.Stream.restore(fitted.strategy, fitted.door, 1, KEY, old)
        answers.append(unguarded.update(np.array(items, dtype=np.int64), True))
    assert np.allclose(answers[0] - answers[1], [3.0, -2.0, -2.0], rtol=0.0, atol=1e-9)
    guarded = so.restore(old, KEY, store, replay=True)
    with pytest.raises(so.errors.StepConflictError):
        guarded.update([0, 9, 1])
    guarded.close()


@pytest.mark.statistical
def test_noise_drawn_anew_averages_out(used):
    """1000 streams over the same items: the mean of their answers has a 30th of the noise.

    The mean of the last answer is within 6 standard errors of the truth: false alarm 2e-9 for fresh keys. A stream
    that is restored publishes the same noise instead, however often.
    """
    plan, store, old, new = used
    items = np.array([3, 4, 1])
    fresh = [_core.Stream(plan.fit.strategy, plan.fit.door, 1).update(items, True)[-1] for _ in range(1000)]
    assert abs(np.mean(fresh) - 8.0) < 6.0 * plan.fit.std([3])[0] / 1000**0.5
    with so.restore(new, KEY, store) as stream:
        stream.update(1)
    again = set()
    for _ in range(20):
        with so.restore(old, KEY, store, replay=True) as stream:
            again.add(tuple(stream.update(items)))
    assert len(again) == 1
