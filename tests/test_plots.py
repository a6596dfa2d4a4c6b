"""Pictures: made, saved, and without the private truth."""

import sys

import numpy as np
import pytest

import sordino as so
from sordino.plots import describe, plot_comparison, plot_plan, plot_release
from sordino.stream_plots import error_curve, plot_stream_comparison, plot_stream_plan

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
WORKLOADS = [
    so.MovingAverage(7, 50),
    so.MovingAverage(7, 300, boundary="same"),
    so.RunningSum(200),
    so.ExponentialSmoothing(0.9, 40),
    so.PolynomialDecay(1.5, 40),
    so.Difference(40),
    so.Difference(40, order=2),
    so.BandPass(0.0, 0.1, 64),
    so.Convolution([1.0, 2.0, 1.0], 30, boundary="same"),
    so.Histogram(1),
    so.Histogram(30),
    so.Histogram((3, 4)),
    so.Histogram(500),
    so.GroupConvolution.from_predicate(lambda bits: bits[0] == 0, 3),
    so.Marginals([2, 3, 2], k=2),
    so.Matrix([[1.0, 1.0], [0.0, 1.0], [1.0, -1.0]]),
]


@pytest.fixture(params=WORKLOADS, ids=lambda workload: f"{workload.kind}-{np.prod(workload.answers_shape)}")
def plan(request):
    return so.plan(request.param, PRIVACY, unit=so.AddRemove(1, label="one flight"))


def test_every_picture_is_a_png(plan, tmp_path):
    release = plan.release(np.arange(np.prod(plan.workload.input_shape)).reshape(plan.workload.input_shape))
    plan.plot(tmp_path / "plan.png")
    plan.compare().plot(tmp_path / "comparison.png")
    release.plot(str(tmp_path / "release.png"), level=0.9)
    for name in ("plan", "comparison", "release"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


def test_the_title_says_what_is_shown(plan):
    figure = plot_plan(plan)
    assert describe(plan.workload) in figure.axes[0].get_title(loc="left")
    assert "one flight" in " ".join(text.get_text() for text in figure.axes[0].texts)
    assert figure.axes[0].get_xlabel()
    assert figure.axes[0].get_ylabel()


def test_convolutions_show_their_spectrum():
    assert len(plot_plan(so.plan(so.RunningSum(50), PRIVACY)).axes) == 2
    assert len(plot_plan(so.plan(so.Histogram(50), PRIVACY)).axes) == 1


def test_pure_privacy_has_no_bound_to_draw():
    plan = so.plan(so.RunningSum(50), so.PureDP(epsilon=1.0))
    for figure in (plot_plan(plan), plot_comparison(plan.compare())):
        assert not any("no Gaussian" in text.get_text() for text in figure.axes[0].texts)


def test_the_truth_is_not_drawn():
    truth = np.array([1000.0, 5000.0, 3000.0, 4000.0] * 50)
    release = so.plan(so.Difference(200), PRIVACY).release(truth)
    axes = plot_release(release).axes[0]
    assert [len(line.get_ydata()) for line in axes.lines] == [200]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), release.values)


def test_the_band_is_the_interval():
    release = so.plan(so.RunningSum(200), PRIVACY).release(np.ones(200))
    interval = release.interval(0.8)
    (band,) = plot_release(release, level=0.8).axes[0].collections
    drawn = band.get_paths()[0].vertices[:, 1]
    assert drawn.min() == pytest.approx(interval.lower.min())
    assert drawn.max() == pytest.approx(interval.upper.max())


def test_post_processed_values_are_the_line():
    release = so.plan(so.Histogram(200), PRIVACY).release(np.zeros(200)).nonnegative()
    assert plot_release(release).axes[0].lines[0].get_ydata().min() >= 0.0


@pytest.mark.filterwarnings("ignore:deterministic noise")
def test_known_noise_is_marked():
    with so.testing.deterministic_noise(bytes(32)):
        release = so.plan(so.Histogram(5), PRIVACY).release(np.zeros(5))
    assert any("NOT PRIVATE" in text.get_text() for text in plot_release(release).axes[0].texts)


def test_the_chosen_mechanism_stands_out():
    comparison = so.compare(so.RunningSum(300), PRIVACY)
    axes = plot_comparison(comparison).axes[0]
    bold = [label.get_text() for label in axes.get_yticklabels() if label.get_fontweight() == "bold"]
    assert bold == [comparison.chosen]
    assert [bar.get_width() for bar in axes.patches] == [row["rmse"] for row in comparison.rows]


def test_paths_are_checked(tmp_path):
    plan = so.plan(so.Histogram(5), PRIVACY)
    with pytest.raises(so.InvalidParameterError, match="must end in"):
        plan.plot(tmp_path / "picture.docx")
    with pytest.raises(so.InputFileError, match="cannot be written"):
        plan.plot(tmp_path / "missing" / "picture.png")
    with pytest.raises(so.DataTypeError):
        plan.compare().plot(3)
    with pytest.raises(so.InvalidParameterError):
        plan.release(np.zeros(5)).plot(level=1.0)


def test_without_matplotlib_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(so.MissingDependencyError, match=r"sordino\[plot\]") as caught:
        so.plan(so.Histogram(5), PRIVACY).plot()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# Streams.

STREAMS = [
    (so.RunningSum(200), "hard"),
    (so.RunningSum(200), "soft"),
    (so.RunningSum(), "unbounded"),
    (so.RunningSum(1), "hard"),
    (so.RunningAverage(100), "hard"),
    (so.SlidingWindow(7, 100), "hard"),
    (so.MovingAverage(7), "unbounded"),
    (so.ExponentialSmoothing(0.9), "unbounded"),
]


@pytest.mark.parametrize(("workload", "horizon"), STREAMS, ids=repr)
def test_pictures_of_streams(workload, horizon, tmp_path):
    plan = so.plan_stream(workload, PRIVACY, horizon=horizon, unit=so.AddRemove(1, label="one flight"))
    plan.plot(tmp_path / "plan.png")
    plan.compare().plot(str(tmp_path / "comparison.png"))
    for name in ("plan", "comparison"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
    axes = plot_stream_plan(plan).axes[0]
    assert describe(workload) in axes.get_title(loc="left")
    assert "one flight" in " ".join(text.get_text() for text in axes.texts)
    bounded = plan.gaussian_bound is not None
    assert any("least Gaussian rmse" in text.get_text() for text in axes.texts) == bounded
    assert any("made for 200 steps" in text.get_text() for text in axes.texts) == (horizon == "soft")


def test_the_curve_is_the_standard_error():
    plan = so.plan_stream(so.RunningSum(1000), PRIVACY, mechanism="blt")
    curve = error_curve(plan.fitted, 1000)
    assert curve.steps[0] == 1.0
    assert curve.steps[-1] == 1000.0
    assert np.all(np.diff(curve.steps) > 0.0)
    np.testing.assert_allclose(curve.middle[[0, -1]], plan.std([1, 1000]))
    at = np.rint(curve.steps).astype(int)
    assert np.all((curve.low <= 1.001 * plan.std(at)) & (plan.std(at) <= 1.001 * curve.high))


def test_every_mechanism_is_drawn_or_named():
    comparison = so.compare_stream(so.RunningSum(5000), PRIVACY)
    axes = plot_stream_comparison(comparison).axes[0]
    texts = [text.get_text().removesuffix(" \N{UPWARDS ARROW}") for text in axes.texts]
    for row in comparison.rows:
        assert (row["mechanism"] in texts) != (row["mechanism"] in axes.get_xlabel())
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == [comparison.chosen]
    places = sorted(text.xyann[1] for text in axes.texts if text.get_text() in texts and text.xyann[0] > 1.0)
    assert np.diff(places[:-1]).min() > 0.04
    assert comparison.fitted[0].mechanism.name == comparison.rows[0]["mechanism"]
