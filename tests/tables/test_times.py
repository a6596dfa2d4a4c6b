"""Calendars: cells of absolute time, labels of the zone's clocks, and columns of timestamps of every library."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so

T = so.tables


def counted(times, column):
    schema = so.Schema({"at": times}, user=None)
    return so.tabulate({"at": column}, schema, request_id="r").counts


def test_a_year_in_berlin():
    hours = T.Times("2026-01-01", "2027-01-01", unit="hour", zone="Europe/Berlin")
    assert hours.size == 8760
    day = hours.levels()["day"]
    assert Counter(np.bincount(day.groups).tolist()) == {24: 363, 23: 1, 25: 1}
    assert day.labels[86] == "2026-03-28" and np.bincount(day.groups)[87] == 23
    assert hours.labels[0] == "2026-01-01T00:00+01:00"
    clock = hours.levels()["hour_of_day"]
    assert np.bincount(clock.groups)[[2, 3]].tolist() == [365, 365]  # one less in spring, one more in autumn
    days = T.Times("2026-01-01", "2027-01-01", unit="day", zone="Europe/Berlin")
    assert (np.diff(days.instants) // 3_600_000_000).tolist() == np.bincount(day.groups).tolist()
    assert days.labels == day.labels
    assert (
        T.Times("2026-01-01", "2027-01-01", unit="month", zone="Europe/Berlin").labels == hours.levels()["month"].labels
    )
    weeks = T.Times("2025-12-29", "2026-12-28", unit="week", zone="Europe/Berlin")
    assert weeks.labels[0] == "2026-W01" and weeks.size == 52 and weeks.levels() == {}


def test_an_hour_twice_and_one_that_is_skipped():
    hours = T.Times("2026-10-25T00:00", "2026-10-25T05:00", unit="hour", zone="Europe/Berlin")
    assert [label[11:] for label in hours.labels] == [
        "00:00+02:00", "01:00+02:00", "02:00+02:00", "02:00+01:00", "03:00+01:00", "04:00+01:00",
    ]  # fmt: skip
    local = np.array(["2026-10-25T02:30", "2026-10-25T03:00"], dtype="M8[m]")
    assert counted(hours, local).tolist() == [0, 0, 1, 0, 1, 0]  # of both the first
    spring = T.Times("2026-03-29T00:00", "2026-03-29T05:00", unit="hour", zone="Europe/Berlin")
    assert counted(spring, np.array(["2026-03-29T02:30", "2026-03-29T03:30"], dtype="M8[m]")).tolist() == [0, 0, 2, 0]


def test_zones_that_change_in_their_own_way():
    cairo = T.Times("2026-04-20", "2026-05-01", unit="day", zone="Africa/Cairo")  # clocks go from 00:00 to 01:00
    lengths = np.diff(cairo.instants) // 3_600_000_000
    assert sorted(lengths.tolist()) == [23] + [24] * 10
    with pytest.raises(so.errors.InvalidParameterError, match="quarter_hour"):
        T.Times("2026-04-01", "2026-05-01", unit="hour", zone="Australia/Lord_Howe")
    quarters = T.Times("2026-01-01", "2027-01-01", unit="quarter_hour", zone="Australia/Lord_Howe")
    assert Counter((np.bincount(quarters.levels()["day"].groups) / 4).tolist()) == {24.0: 363, 24.5: 1, 23.5: 1}
    apia = T.Times("2011-12-29", "2012-01-01", unit="day", zone="Pacific/Apia")
    assert apia.labels == ("2011-12-29", "2011-12-30", "2011-12-31")
    assert (np.diff(apia.instants) // 3_600_000_000).tolist() == [24, 0, 24]
    noon = np.array(["2011-12-29T12", "2011-12-30T12", "2011-12-31T12"], dtype="M8[h]")
    assert counted(apia, noon).tolist() == [1, 0, 2]
    level = T.Times("2011-12-29", "2012-01-01", unit="hour", zone="Pacific/Apia").levels()["day"]
    assert np.bincount(level.groups).tolist() == [24, 0, 24] and "no such day" in level.labels[1]


@given(st.integers(0, 364 * 86_400), st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"]))
def test_every_instant_is_in_the_day_that_its_clocks_show(seconds, zone):
    moment = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=seconds)
    local = moment.astimezone(ZoneInfo(zone))
    days = T.Times("2026-01-01", "2027-01-03", unit="day", zone=zone)
    cell = int(np.argmax(counted(days, pd.Series([pd.Timestamp(moment)]))))
    assert days.labels[cell] == local.date().isoformat()
    naive = int(np.argmax(counted(days, np.array([local.replace(tzinfo=None)], dtype="M8[us]"))))
    assert naive == cell  # no change of clocks there moves a date


def test_columns_of_every_library():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    hours = T.Times("2026-07-01", "2026-07-02", unit="hour", zone="Europe/Berlin")
    local = [datetime(2026, 7, 1, 3, 59, 59, 999_999), None, datetime(2026, 6, 30), datetime(2026, 7, 1, 23)]
    expected = np.bincount([3, 23], minlength=24).tolist()
    utc = [None if t is None else t.replace(tzinfo=ZoneInfo("Europe/Berlin")).astimezone(UTC) for t in local]
    far = np.array([2**62, -(2**62), np.iinfo(np.int64).min], dtype="M8[s]")
    columns = [
        local,
        utc,
        pa.array(local),
        pa.array(utc, pa.timestamp("ns", tz="UTC")),
        pl.Series(local),
        pl.Series(utc),
    ]
    columns += [
        pd.Series(local),
        pd.Series(utc),
        pa.array(local).dictionary_encode(),
        pd.Series(local, dtype=pd.ArrowDtype(pa.timestamp("us"))),
    ]
    for column in columns:
        assert counted(hours, column).tolist() == expected
    assert counted(hours, far).sum() == 0
    days = T.Times("2026-06-30", "2026-07-02", unit="day", zone="Europe/Berlin")
    dates = [t and t.date() for t in local]
    for column in (dates, pa.array(dates), pl.Series(dates), np.array(dates, dtype="M8[D]")):
        assert counted(days, column).tolist() == [1, 2]
    for column in (np.array([1, 2]), np.array(["2026-07-01"]), pa.array(["2026-07-01"]), np.array([True])):
        with pytest.raises(so.errors.DataTypeError, match="cast it to timestamps"):
            counted(hours, column)


def test_before_1970_times_are_rounded_down():
    hours = T.Times("1969-12-31T22:00", "1970-01-01T00:00", unit="hour", zone="UTC")
    assert counted(hours, np.array([-1], dtype="M8[ns]")).tolist() == [0, 1]
    assert counted(hours, np.array([-3_600_000_000_001], dtype="M8[ns]")).tolist() == [1, 0]


def test_refusals():
    for start, stop, unit, zone in [
        ("2026-01-01", "2026-01-01", "hour", "UTC"),
        ("2026-01-01", "2026-01-01T00:30", "hour", "UTC"),
        ("2026-01-01T00:30", "2026-01-01T02:30", "hour", "UTC"),
        ("2026-01-01T01:00", "2026-01-03", "day", "UTC"),
        ("2026-01-01", "2026-02-10", "month", "UTC"),
        ("2026-01-01", "2026-01-08", "week", "UTC"),
        ("2026-01-01", "2026-01-08", "day", "Europe/Atlantis"),
        ("2026-01-01", "2026-01-08", "day", "../etc/passwd"),
        ("yesterday", "2026-01-08", "day", "UTC"),
        ("2026-01-01", "2026-01-08", "minute", "UTC"),
        ("0001-01-01", "0001-01-08", "day", "UTC"),
        ("1000-01-01", "9999-01-01", "hour", "UTC"),
    ]:
        with pytest.raises(so.errors.InvalidParameterError):
            T.Times(start, stop, unit=unit, zone=zone)
    with pytest.raises(so.errors.DataTypeError):
        T.Times(5, "2026-01-01", unit="day", zone="UTC")


def test_two_editions_of_a_zone_are_two_schemas():
    one, same, other = (
        T.Times("2026-01-01", "2026-02-01", unit="hour", zone=zone)
        for zone in ("Europe/Berlin", "Europe/Berlin", "Europe/Paris")
    )
    assert one == same and one != other and hash(one) == hash(same)
    assert one.tzdata
