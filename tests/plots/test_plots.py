"""Pictures: made, saved, and without the private truth."""

import sys

import numpy as np
import pytest
from scipy import sparse

import sordino as so
from sordino.plots.streams import error_curve, plot_stream_comparison, plot_stream_plan
from sordino.plots.tables import describe, plot_comparison, plot_plan, plot_release

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
WORKLOADS = [
    so.MovingAverage(7, 50),
    so.MovingAverage(7, 300, boundary="same"),
    so.RunningSum(200),
    so.ExponentialSmoothing(0.9, 40),
    so.workloads.PolynomialDecay(1.5, 40),
    so.workloads.Difference(40),
    so.workloads.Difference(40, order=2),
    so.workloads.BandPass(0.0, 0.1, 64),
    so.Convolution([1.0, 2.0, 1.0], 30, boundary="same"),
    so.Histogram(1),
    so.Histogram(30),
    so.Histogram((3, 4)),
    so.Histogram(500),
    so.workloads.GroupConvolution.from_predicate(lambda bits: bits[0] == 0, 3),
    so.Marginals([2, 3, 2], k=2),
    so.Matrix([[1.0, 1.0], [0.0, 1.0], [1.0, -1.0]]),
    so.Matrix(np.random.default_rng(1).random((200, 6))),
    so.AllRanges(1),
    so.AllRanges(20),
    so.Histogram(20) | so.RunningSum(20),
    so.RunningSum(20) | so.AllRanges(20) | 2 * so.Histogram(20),
    so.Kronecker([so.RunningSum(4), so.Histogram(3)]),
]


@pytest.fixture(params=WORKLOADS, ids=lambda workload: f"{workload.kind}-{np.prod(workload.answers_shape)}")
def plan(request):
    return so.plan(request.param, PRIVACY, unit=so.AddRemove(1, label="one flight"))


@pytest.mark.slow
def test_every_picture_is_a_png(plan, tmp_path):
    release = plan.release(np.arange(np.prod(plan.workload.input_shape)).reshape(plan.workload.input_shape))
    plan.plot(tmp_path / "plan.png")
    plan.compare().plot(tmp_path / "comparison.png")
    release.plot(str(tmp_path / "release.png"), level=0.9)
    for name in ("plan", "comparison", "release"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


@pytest.mark.slow
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
    release = so.plan(so.workloads.Difference(200), PRIVACY).release(truth)
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


@pytest.mark.slow
def test_the_chosen_mechanism_stands_out():
    comparison = so.compare(so.RunningSum(300), PRIVACY)
    axes = plot_comparison(comparison).axes[0]
    bold = [label.get_text() for label in axes.get_yticklabels() if label.get_fontweight() == "bold"]
    assert bold == [comparison.chosen]
    assert [bar.get_width() for bar in axes.patches] == [row["rmse"] for row in comparison.rows]


def test_paths_are_checked(tmp_path):
    plan = so.plan(so.Histogram(5), PRIVACY)
    with pytest.raises(so.errors.InvalidParameterError, match="must end in"):
        plan.plot(tmp_path / "picture.docx")
    with pytest.raises(so.errors.InputFileError, match="cannot be written"):
        plan.plot(tmp_path / "missing" / "picture.png")
    with pytest.raises(so.errors.DataTypeError):
        plan.compare().plot(3)
    with pytest.raises(so.errors.InvalidParameterError):
        plan.release(np.zeros(5)).plot(level=1.0)


def test_without_matplotlib_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(so.errors.MissingDependencyError, match=r"sordino\[plot\]") as caught:
        so.plan(so.Histogram(5), PRIVACY).plot()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# Queries without an order.


def test_many_queries_are_drawn_from_the_least_error_on():
    for rows, drawn in ((100, list), (300, sorted)):
        plan = so.plan(so.Matrix(np.random.default_rng(2).random((rows, 5))), PRIVACY)
        axes = plot_plan(plan).axes[0]
        assert axes.lines[0].get_ydata().tolist() == drawn(plan.fit.answers_stderr)
        assert ("least error first" in axes.get_xlabel()) == (rows == 300)
    assert plot_plan(so.plan(so.RunningSum(300), PRIVACY)).axes[0].get_xlabel() == "step"


def test_lines_show_what_was_minimised():
    for objective, words in (("mean", "rmse"), ("max", "largest")):
        workload = so.Matrix(np.random.default_rng(3).random((150, 6)))
        plan = so.plan(workload, so.GaussianDP(mu=1.0), objective=objective)
        axes = plot_plan(plan).axes[0]
        levels = [line.get_ydata()[0] for line in axes.lines[1:]]
        assert levels == [plan.rmse if objective == "mean" else plan.max_stderr, plan.fit.bound.value]
        assert sum(words in text.get_text() for text in axes.texts) == 2


def test_a_bound_that_says_nothing_is_not_drawn():
    unknown = so.Matrix(sparse.random(2500, 2000, 0.002, "csr", rng=1))
    plan = so.plan(unknown, PRIVACY, mechanism="identity-gaussian", effort="closed_form")
    assert plan.fit.bound is None
    assert not any("least Gaussian" in text.get_text() for text in plot_plan(plan).axes[0].texts)
    assert not any("least Gaussian" in text.get_text() for text in plot_comparison(plan.compare()).axes[0].texts)


def colours(axes):
    (mesh,) = axes.collections
    return mesh.get_array()


def test_ranges_are_a_map():
    n = 20
    plan = so.plan(so.AllRanges(n), so.GaussianDP(mu=1.0))
    release = plan.release(np.arange(n))
    errors, answers = colours(plot_plan(plan).axes[1]), colours(plot_release(release).axes[0])
    assert errors.shape == answers.shape == (n, n)
    for place, (first, last) in enumerate(plan.workload.ranges):
        assert errors[last, first] == plan.fit.answers_stderr[place]
        assert answers[last, first] == release.values[place]
    assert errors.mask.sum() == answers.mask.sum() == n * (n - 1) // 2


def test_a_map_of_many_ranges_is_thinned():
    plan = so.plan(so.AllRanges(1200), so.GaussianDP(mu=1.0), mechanism="identity")
    shown = colours(plot_plan(plan).axes[1])
    assert shown.shape == (500, 500)
    # The last row are the ranges up to the last cell; under noise on cells errors go by the root of the length.
    assert shown[-1, 0] == plan.fit.answers_stderr.max()
    assert shown[-1, -1] == plan.fit.answers_stderr.min()


def test_ranges_are_called_like_their_cells():
    pd = pytest.importorskip("pandas")
    release = so.plan(so.AllRanges(3), PRIVACY).release(pd.Series([1, 2, 3], index=["mon", "tue", "wed"]))
    axes = plot_release(release).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["mon", "tue", "wed"]


def test_labels_of_cells_are_not_those_of_queries():
    pd = pytest.importorskip("pandas")
    cells = pd.Series([1, 2, 3], index=["mon", "tue", "wed"])
    for workload, named in ((so.Histogram(3), True), (so.Matrix(2.0 * np.eye(3)[::-1]), False)):
        axes = plot_release(so.plan(workload, PRIVACY).release(cells)).axes[0]
        assert ("tue" in [label.get_text() for label in axes.get_xticklabels()]) == named


def test_parts_of_a_union_stand_side_by_side():
    workload = so.RunningSum(50) | so.Matrix(np.random.default_rng(4).random((200, 50)))
    plan = so.plan(workload, so.GaussianDP(mu=1.0))
    release = plan.release(np.arange(50))
    for axes, values, what in (
        (plot_plan(plan).axes[0], plan.fit.answers_stderr, "error"),
        (plot_release(release).axes[0], release.values, "answer"),
    ):
        first, second = axes.lines[:2]
        assert first.get_ydata().tolist() == values[:50].tolist()
        assert second.get_ydata().tolist() == sorted(values[50:])
        assert 0.0 < first.get_xdata().min() < first.get_xdata().max() < 1.0 < second.get_xdata().min()
        assert f"least {what} first" in axes.get_xlabel()
        names = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
        assert names == ["Running total (50)", "Linear queries (200)"]


def test_unions_of_many_parts_have_numbers():
    plan = so.plan(so.workloads.Union([so.Histogram(3)] * 9), PRIVACY)
    names = [label.get_text() for label in plot_plan(plan).axes[0].get_xticklabels()]
    assert names == [str(number) for number in range(1, 10)]


@pytest.mark.slow
def test_a_hundred_thousand_queries(tmp_path):
    plan = so.plan(so.Matrix(np.random.default_rng(5).random((100_000, 3))), PRIVACY, mechanism="identity-gaussian")
    plan.plot(tmp_path / "plan.png")
    plan.release([1, 2, 3]).plot(tmp_path / "release.png")
    assert (tmp_path / "release.png").read_bytes().startswith(PNG)


def test_projections_are_named():
    workload = so.Matrix(np.random.default_rng(6).integers(0, 2, (30, 6)).astype(float))
    plan = so.plan(workload, PRIVACY, constraint=so.optimal.PublicBound(50))
    words = [" ".join(text.get_text().split()) for text in plot_plan(plan).axes[0].texts]
    assert any("rmse of the noise alone" in text for text in words)
    release = plan.release([5, 0, 0, 9, 0, 1])
    assert any("before projection" in text.get_text() for text in plot_release(release).axes[0].texts)
    comparison = so.compare(workload, PRIVACY, constraint=so.optimal.PublicBound(50))
    axes = plot_comparison(comparison).axes[0]
    numbers = [text.get_text() for text in axes.texts[: len(comparison.rows)]]
    for row, number in zip(comparison.rows, numbers, strict=True):
        assert number.endswith("of noise alone") == (row["rmse_kind"] == "noise only")
        assert number.startswith("at most") == (row["rmse_kind"] == "upper bound")


def test_bars_show_what_was_minimised():
    comparison = so.compare(so.RunningSum(30), PRIVACY, objective="max")
    axes = plot_comparison(comparison).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [row["max_stderr"] for row in comparison.rows]
    assert "largest standard error" in axes.get_xlabel()


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


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "horizon"), STREAMS, ids=repr)
def test_pictures_of_streams(workload, horizon, tmp_path):
    plan = so.plan(so.Continual(workload, horizon=horizon), PRIVACY, unit=so.AddRemove(1, label="one flight"))
    plan.plot(tmp_path / "plan.png")
    plan.compare().plot(str(tmp_path / "comparison.png"))
    for name in ("plan", "comparison"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
    axes = plot_stream_plan(plan).axes[0]
    assert describe(workload) in axes.get_title(loc="left")
    assert "one flight" in " ".join(text.get_text() for text in axes.texts)
    bounded = plan.fit.bound is not None
    assert any("least Gaussian rmse" in text.get_text() for text in axes.texts) == bounded
    assert any("made for 200 steps" in text.get_text() for text in axes.texts) == (horizon == "soft")


def test_the_curve_is_the_standard_error():
    plan = so.plan(so.Continual(so.RunningSum(1000)), PRIVACY, mechanism="blt")
    curve = error_curve(plan.fit, 1000)
    assert curve.steps[0] == 1.0
    assert curve.steps[-1] == 1000.0
    assert np.all(np.diff(curve.steps) > 0.0)
    np.testing.assert_allclose(curve.middle[[0, -1]], plan.fit.std([1, 1000]))
    at = np.rint(curve.steps).astype(int)
    assert np.all((curve.low <= 1.001 * plan.fit.std(at)) & (plan.fit.std(at) <= 1.001 * curve.high))


def test_every_mechanism_is_drawn_or_named():
    comparison = so.compare(so.Continual(so.RunningSum(5000)), PRIVACY)
    axes = plot_stream_comparison(comparison).axes[0]
    texts = [text.get_text().removesuffix(" \N{UPWARDS ARROW}") for text in axes.texts]
    for row in comparison.rows:
        assert (row["mechanism"] in texts) != (row["mechanism"] in axes.get_xlabel())
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == [comparison.chosen]
    places = sorted(text.xyann[1] for text in axes.texts if text.get_text() in texts and text.xyann[0] > 1.0)
    assert np.diff(places[:-1]).min() > 0.04
    assert comparison.fits[0].mechanism.name == comparison.rows[0]["mechanism"]


@pytest.fixture(scope="module")
def summary():
    points = np.random.default_rng(3).normal((50, 80, 5), (10, 15, 1), (2000, 3))
    workload = so.smooth.SmoothQueries(
        3, points=2000, bounds=[(18, 100), (30, 200), (0, 10)], query_class=so.smooth.GaussianKernels((10, 15, 1))
    )
    return so.plan(workload, PRIVACY, mechanism="weighted").release(points)


def test_densities(summary, tmp_path):
    names = ("age", "weight", "dose")
    curve = summary.plot(tmp_path / "curve.png", axes=[2], names=names)
    map_ = summary.plot(tmp_path / "map.svg", names=names)
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    assert curve.axes[0].get_xlabel() == "dose"
    x, y = curve.axes[0].lines[0].get_data()
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.1)
    assert x[np.argmax(y)] == pytest.approx(5.0, abs=1.0)
    assert [map_.axes[0].get_xlabel(), map_.axes[0].get_ylabel()] == ["age", "weight"]
    assert summary.plot(axes=(1, 0)).axes[0].get_xlabel() == "coordinate 1"


def test_bands_of_densities_are_intervals(summary):
    x = np.linspace(0, 10, 241)[:, None]
    answers = summary.density(x, axes=[2])
    outer, inner = summary.plot(axes=[2]).axes[0].collections
    for band, lost in ((outer, answers.truncation), (inner, 0.0)):
        low, high = answers.interval(0.95)
        height = np.ptp(band.get_paths()[0].vertices[:, 1])
        assert height == pytest.approx(
            (high - answers.truncation + lost).max() - (low + answers.truncation - lost).min()
        )


def test_marginal_densities_are_those_of_some_coordinates(summary):
    ages = summary.density([[50.0]], axes=[0]).values[0]
    apart = np.linspace(18, 100, 2)
    assert summary.density(apart[:, None], axes=[0]).values.max() < ages
    swapped = summary.density([[80.0, 50.0]], axes=[1, 0])
    assert swapped.values == pytest.approx(summary.density([[50.0, 80.0]], axes=[0, 1]).values)


@pytest.mark.parametrize("axes", [(), (0, 1, 2), (3,), (0, 0)])
def test_densities_that_cannot_be_drawn(summary, axes):
    with pytest.raises(so.errors.InvalidParameterError):
        summary.plot(axes=axes)
    with pytest.raises(so.errors.InvalidParameterError):
        summary.plot(names=("age",))
