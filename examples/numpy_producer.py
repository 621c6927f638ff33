"""NumPy arrays into a log, and out of it as typed Spark columns: one dtype describes both sides."""

import tempfile

import numpy as np
import ombus
from pyspark.sql import functions as F

TICK = np.dtype([("at", "<M8[ns]"), ("product", "<u4"), ("volume", "<u4"), ("price", "<f8"), ("venue", "S4")])

rows = 100_000
random = np.random.default_rng(1)
ticks = np.zeros(rows, TICK)
ticks["at"] = np.datetime64("2026-01-31T12:00:00", "ns") + np.arange(rows) * np.timedelta64(1, "ms")
ticks["product"] = random.integers(1, 5, rows)
ticks["volume"] = random.integers(1, 100, rows)
ticks["price"] = 100 + random.normal(0, 1, rows)
ticks["venue"] = random.choice([b"XNAS", b"XLON"], rows)

with tempfile.TemporaryDirectory() as folder:
    uri = f"log://{folder}/ticks"
    with ombus.Producer(uri) as producer:
        producer.publish_batch(ticks)  # one record per row, no Python work per record

    print("schema:", ombus.struct_schema(TICK))
    spark = ombus.spark("numpy", master="local[2]", spark_sql_shuffle_partitions=2)
    table = ombus.read(spark, uri, payload_format="struct", payload_schema=TICK)
    table.groupBy("venue").agg(F.count("*").alias("ticks"), F.sum("volume").alias("volume")).orderBy("venue").show()
    volume = table.agg(F.sum("volume")).first()
    print("volume in NumPy:", ticks["volume"].sum(), "in Spark:", volume[0] if volume else None)
