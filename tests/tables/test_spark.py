"""Spark on a cluster of two executors: the core's table, also when one of them dies; frames that are refused."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_engines import cases, rows
from test_frames import records

import sordino as so
from sordino.tables.engines.spark import partial_tables

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::FutureWarning")]

T = so.tables
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def spark():
    assert shutil.which("java"), "these tests need Java 17: apt-get install openjdk-17-jre-headless"
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        pytest.fail("these tests need Spark: pip install -r requirements/spark.txt")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.timestampType", "TIMESTAMP_NTZ")
        .config("spark.sql.session.timeZone", "Asia/Tokyo")  # nothing depends on it
        .config("spark.executorEnv.PYTHONPATH", str(ROOT / "python"))
        .getOrCreate()
    )
    yield session
    session.stop()


def frame_of(spark, table, schema):
    table = table.select(schema.columns)
    if "ns" in schema.columns:  # it knows no nanoseconds
        at = schema.columns.index("ns")
        table = table.set_column(at, "ns", table["ns"].cast(pa.timestamp("us"), safe=False))
    return spark.createDataFrame(table)


def test_spark_makes_the_table_of_the_core(spark):
    tried = 0
    for schema, rng in cases(0):
        if schema.user == "unsigned" or rng.random() < 0.5:  # it knows no unsigned integers
            continue
        table = rows(rng, 300)
        expected = so.tabulate(table, schema, request_id="r").counts
        frame = frame_of(spark, table.take(rng.permutation(300)), schema).repartition(int(rng.integers(1, 16)))
        assert (so.tabulate(frame, schema, request_id="r").counts == expected).all(), schema
        tried += 1
    assert tried > 20


def summed(frame, schema):
    parts = frame.repartition(7, schema.user).mapInArrow(
        partial_tables(schema, "r"), "cell long, channel long, count long"
    )
    table = np.zeros(schema.table_shape, dtype=np.int64).reshape(schema.cells, -1)
    for cell, channel, count in parts.groupBy("cell", "channel").sum("count").collect():
        table[cell, channel] = count
    return table.reshape(-1)


def test_the_core_on_executors_one_of_which_dies(spark):
    data = records(200_000)
    schema = so.Schema(
        {"city": T.Levels(list("abcd")), "day": T.Times("2026-10-20", "2026-11-03", unit="day", zone="Europe/Berlin")},
        user="who",
        bounds=so.Bounds(5, 2, 8),
        values={"spent": T.Value(0.0, 40.0, step=0.5)},
    )
    table = pa.table(data)
    expected = so.tabulate(table, schema, request_id="r").counts
    assert (summed(frame_of(spark, table, schema), schema) == expected).all()
    slowed = frame_of(spark, table, schema).repartition(24).filter("hash(who) >= -2147483648")
    from pyspark.sql.functions import udf

    @udf("string")
    def slowly(city):
        time.sleep(1e-4)
        return city

    slowed = slowed.withColumn("city", slowly("city"))
    killed = []

    def kill():
        time.sleep(1.0)
        found = subprocess.run(
            ["pgrep", "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True, check=False
        )
        for pid in map(int, found.stdout.split()):
            if b"java" in Path(f"/proc/{pid}/comm").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return

    for count in (lambda: so.tabulate(slowed, schema, request_id="r").counts, lambda: summed(slowed, schema)):
        killer = threading.Thread(target=kill)
        killer.start()
        assert (count() == expected).all()
        killer.join()
    assert len(killed) == 2


def test_the_demos_file_and_the_documented_lines(spark, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import demo_tables

    schema = demo_tables.schema_of(so.Bounds(20, 20, 160))
    frame = spark.read.parquet(str(demo_tables.FILE))
    expected = so.tabulate(demo_tables.FILE, schema, request_id="aircraft/2013").counts
    assert (so.tabulate(frame, schema, request_id="aircraft/2013").counts == expected).all()
    page = (ROOT / "docs" / "tables.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith("table = so.tabulate(spark.read"))
    line = line.replace('"s3://events/2026-01"', repr(str(demo_tables.FILE)))
    names = {"so": so, "spark": spark, "schema": schema}
    exec(line, names)
    assert names["table"].unit == schema.unit


def test_frames_in_which_users_depend_on_others_are_refused(spark):
    from pyspark.sql import Window
    from pyspark.sql.functions import row_number

    schema = so.Schema({"k": T.Integers(0, 4)}, user="u", bounds=so.Bounds(1))
    frame = spark.createDataFrame(pa.table({"k": [0, 1, 1], "u": [1, 2, 2], "Sample": [0, 0, 0]}))
    assert so.tabulate(frame, schema, request_id="r").counts.sum() == 2  # a column may be called so
    ranked = frame.withColumn("place", row_number().over(Window.orderBy("k")))
    for other in (frame.limit(2), frame.sample(0.5), frame.dropDuplicates(["k"]), ranked, ranked.filter("place < 2")):
        with pytest.raises(so.errors.InvalidParameterError, match="depend on others"):
            so.tabulate(other, schema, request_id="r")
    with pytest.raises(so.errors.InvalidParameterError, match="streaming"):
        so.tabulate(spark.readStream.format("rate").load(), schema, request_id="r")
    failing = spark.createDataFrame(pa.table({"k": ["SECRET"], "u": [1]})).selectExpr("cast(k as int) as k", "u")
    with pytest.raises(so.errors.InputFileError) as raised:
        so.tabulate(failing, schema, request_id="r")
    assert "SECRET" not in str(raised.value) and raised.value.__cause__ is None
    with pytest.raises(so.errors.DataTypeError, match="cast it to integers"):
        so.tabulate(spark.createDataFrame(pa.table({"k": ["a"], "u": [1]})), schema, request_id="r")


def test_micro_batches_feed_a_stream(spark, tmp_path):
    """The lines of the page, a batch a file; a batch that comes again is answered as before."""
    rng = np.random.default_rng(1)
    clicks = so.Schema({"category": T.Levels(["a", "b", "c", "d"])}, user="customer", bounds=so.Bounds(2, 3))
    (tmp_path / "clicks").mkdir()
    batches = []
    for k in range(4):
        batch = {"category": rng.choice(list("abcde"), 400), "customer": rng.integers(0, 90, 400)}
        batches.append(pa.table(batch))
        pq.write_table(batches[-1], tmp_path / "clicks" / f"{k}.parquet")
        os.utime(tmp_path / "clicks" / f"{k}.parquet", (1_700_000_000 + 60 * k,) * 2)  # they are read by age
    page = (ROOT / "docs" / "tables.md").read_text()
    lines = page[page.index("def publish(") :].split("```")[0]
    lines = lines.replace('.parquet("clicks")', '.option("maxFilesPerTrigger", 1).parquet(str(folder))')
    lines = lines.replace(".start()", ".trigger(availableNow=True).start()")
    windows = T.Windows(clicks, max_participations=2, min_separation=2, request_id="clicks")
    plan = so.plan(windows.continual(so.RunningSum(4)), so.ApproxDP(epsilon=1.0, delta=1e-6))
    stream = plan.open(store=so.streams.FileStepStore(tmp_path / "steps"))
    names = {"spark": spark, "clicks": clicks, "windows": windows, "stream": stream, "answers": []}
    names |= {"columns": "category string, customer long", "folder": tmp_path / "clicks", "state": tmp_path / "state"}
    exec(lines, names)
    names["query"].awaitTermination()
    assert names["query"].exception() is None
    assert len(names["answers"]) == 4 == stream.step
    again = T.Windows(clicks, max_participations=2, min_separation=2, request_id="clicks")
    for batch in batches:
        again.update(batch)
        again.advance()
    assert again.to_bytes() == (tmp_path / "state").read_bytes()
