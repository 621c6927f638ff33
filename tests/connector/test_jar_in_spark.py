"""The connector's jar in a real Spark, newer than the one it was compiled against."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()
JAR = ROOT / "connector" / "target" / f"ombus-spark_2.13-{VERSION}.jar"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", str(JAR))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_the_driver_loads_the_library_inside_the_jar(spark: SparkSession) -> None:
    library = spark._jvm.io.ombus.spark.nativebridge.NativeLibrary.instance()
    assert library.version() == VERSION
    assert "power of two" in library.errorString(-804)
