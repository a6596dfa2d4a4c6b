"""What notebooks show: cards that escape what they are told, figures that display themselves, axes of the caller."""

from html.parser import HTMLParser

import numpy as np
import pytest

import sordino as so
from sordino._support.cards import card

PURE = so.PureDP(epsilon=1.0)


class Text(HTMLParser):
    """Collects the text of a card, and checks that every tag is closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag in {"div", "table", "thead", "tbody", "tr", "td", "th"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def text_of(thing):
    return Text(thing._repr_html_()).text


def test_cards_say_what_text_says():
    plan = so.plan(so.RunningSum(60), PURE)
    said = text_of(plan)
    assert said[0] == "RunningSum(length=60)" and plan.guarantee() in said
    comparison = plan.compare()
    said = text_of(comparison)
    assert all(row["mechanism"] in said for row in comparison.rows) and f"{plan.rmse:.6g}" in said
    streams = so.compare(so.Continual(so.RunningSum(1000)), so.GaussianDP(mu=1.0))
    assert all(row["mechanism"] in text_of(streams) for row in streams.rows)
    assert text_of(so.plan(so.Continual(so.RunningSum(1000)), so.GaussianDP(mu=1.0)))


def test_releases_show_their_first_answers(known_noise):
    release = so.plan(so.Histogram(20), PURE).release(np.arange(20))
    said = text_of(release)
    assert f"{release.values[0]:.6g}" in said and "the first 8 of 20 answers; intervals of 95 %" in said
    assert "none: the noise is known" in said  # these are made with a known key
    sketch = so.sketches.Compression(measurements=64, sparsity=4)
    sketched = so.plan(so.Histogram(512), PURE, mechanism="compressive", compression=sketch).release(np.zeros(512, int))
    assert text_of(sketched)
    many = so.plan(so.Kronecker([so.AllRanges(300)] * 2), so.GaussianDP(mu=1.0)).release(np.zeros((300, 300), int))
    assert text_of(many)


def test_ledgers_escape_names():
    ledger = so.Ledger(so.PureDP(epsilon=30.0))
    plan = so.plan(so.Histogram(4), PURE)
    for k in range(12):
        plan.release(np.zeros(4, dtype=int), ledger=ledger, request_id=f"<script>{k}")
    html = ledger._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;11" in html and "the last 10 of 12 charges" in html
    assert Text(card("a<b", [("x", "&")], head=["<"], rows=[['"']], note="'")).text == ["a<b", "x", "&", "<", '"', "'"]


def test_figures_display_themselves_and_go_into_axes():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    plan = so.plan(so.MovingAverage(window=3, length=30), so.GaussianDP(mu=1.0))
    release = plan.release(np.ones(30, dtype=int))
    stream = so.plan(so.Continual(so.RunningSum(100)), so.GaussianDP(mu=1.0))
    things = (plan, plan.compare(), release, stream, stream.compare())
    figure, axes = pyplot.subplots(1, len(things))
    for thing, ax in zip(things, axes, strict=True):
        assert thing.plot()._repr_png_().startswith(b"\x89PNG")
        assert thing.plot(ax=ax) is figure and ax.has_data()
        with pytest.raises(so.errors.DataTypeError):
            thing.plot(ax="here")
    pyplot.close(figure)


def test_two_axes_are_a_map_and_blocks_have_names(tmp_path, known_noise):
    release = so.plan(so.Histogram([4, 5]), PURE).release(np.arange(20).reshape(4, 5))
    axes = release.plot(tmp_path / "map.png").axes
    assert len(axes) == 2 and axes[0].get_ylabel() == "first axis" and (tmp_path / "map.png").stat().st_size > 5000

    def ticks(release):
        figure = release.plot()
        figure.canvas.draw()
        return [label.get_text() for label in figure.axes[0].get_xticklabels()]

    codes = np.random.default_rng(0).integers(0, 3, (50, 3))
    assert ticks(so.plan(so.Marginals([3, 4, 5], sets=[(0, 1), ()]), PURE).release(codes)) == [
        "attribute 0 by attribute 1",
        "total",
    ]
    groups = so.GroupBy([np.zeros(200, dtype=int), np.arange(200) // 2])
    assert ticks(so.plan(groups, PURE, effort="closed_form").release(np.ones(200, int))) == ["level 0", "level 1"]
    schema = so.Schema({"place": so.tables.Levels(["north", "south"])}, user=None)
    table = so.tabulate({"place": ["north"] * 9}, schema, request_id="r")
    assert ticks(so.plan(schema.marginals(1), PURE).release(table)) == ["north", "south"]
