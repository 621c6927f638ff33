"""One Spark session for all tests of the source, and short ways to write logs, run queries and look at plans."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()
JAR = ROOT / "connector" / "target" / f"ombus-spark_2.13-{VERSION}.jar"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ombus-tests")
        .config("spark.jars", str(JAR))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class Source:
    """The source under test: reads, runs and describes queries."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.queries = 0

    def read(self, uri: object, **options: object) -> DataFrame:
        reader = self.spark.read.format("ombus")
        return reader.options(**{k: str(v) for k, v in options.items()}).load(as_uri(uri))

    def stream(self, uri: object, **options: object) -> DataFrame:
        options.setdefault("startingOffsets", "earliest")
        reader = self.spark.readStream.format("ombus")
        return reader.options(**{k: str(v) for k, v in options.items() if v is not None}).load(as_uri(uri))

    def start(self, frame: DataFrame, batch: Callable[[DataFrame, int], None], checkpoint: str = "c") -> StreamingQuery:
        """A query that hands its batches to a function, as long as it runs."""
        writer = frame.writeStream.foreachBatch(batch).option("checkpointLocation", str(self.folder / checkpoint))
        return writer.start()

    def run(self, frame: DataFrame, checkpoint: str = "c", columns: str = "stream,wal_seq") -> list[list[Row]]:
        """Run a query over all that is available now; the rows of each of its batches."""
        batches: list[list[Row]] = []

        def keep(rows: DataFrame, _: int) -> None:
            batches.append(rows.select(*columns.split(",")).collect())

        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.folder / checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        self.last_query = query
        return batches


def as_uri(uri: object) -> str:
    return f"log://{uri}" if isinstance(uri, Path) else str(uri)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path)


def seqs(rows: list[Row]) -> list[int]:
    return [row["wal_seq"] for row in rows]


def plan_of(frame: DataFrame) -> str:
    """The physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def metrics_of(frame: DataFrame) -> dict[str, int]:
    """The scan's metrics after frame.collect()."""
    scan: Any = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    found = {}
    metrics = scan.metrics().iterator()
    while metrics.hasNext():
        entry = metrics.next()
        found[entry._1()] = entry._2().value()
    return found
