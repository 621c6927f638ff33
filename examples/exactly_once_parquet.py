"""A stream into Parquet files, stopped in the middle and started again: every record is there, once.

The checkpoint holds the next wal_seq to read. A batch that was cut off is read again, the very same records, and
Spark's file sink shows a batch in whole or not at all.
"""

import tempfile
import time
from pathlib import Path

import ombus
from engine import running_engine
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery


def start(records: DataFrame, folder: Path) -> StreamingQuery:
    writer = records.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(processingTime="0 seconds").start(f"{folder}/records")


def main(spark: SparkSession, folder: Path) -> None:
    with running_engine(rate=5_000, seconds=6) as engine:
        records = ombus.read_stream(
            spark, engine.uri, starting_offsets="earliest", payload_format="openmatch", max_records_per_trigger=2_000
        )
        for _ in range(3):
            query = start(records, folder)
            while query.lastProgress is None and query.isActive:  # until it has done a batch
                time.sleep(0.05)
            query.stop()  # in the middle of the next one, most likely
            print("stopped after batch", query.lastProgress["batchId"] if query.lastProgress else "-")
        written = engine.totals()["records"]
        query = start(records, folder)
        query.processAllAvailable()
        query.stop()

    found = spark.read.parquet(f"{folder}/records").agg(
        F.count("*").alias("rows"), F.countDistinct("wal_seq").alias("different"), F.max("wal_seq").alias("last")
    )
    row = found.first()
    assert row is not None
    print(f"written {written}, in Parquet {row.rows}, different {row.different}, last wal_seq {row.last}")
    if not written == row.rows == row.different == row.last:
        raise SystemExit("records are lost or doubled")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(ombus.spark("exactly once", master="local[2]"), Path(name))
