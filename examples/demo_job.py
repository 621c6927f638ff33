"""The Spark job of the demo: volume, VWAP and spread of each product in windows of five seconds.

    python examples/demo_job.py URI CHECKPOINT

It prints every window that a batch has changed as a line of JSON, and a line of figures per batch. `finish` on its
standard input lets it read what is left and end. It may be killed at any time: started again with the same checkpoint
it goes on where the last committed batch ended, and a batch that was cut off is repeated with the same records.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import ombus
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

WINDOW = "5 seconds"


def windows_of(events: DataFrame) -> DataFrame:
    is_match = F.col("event") == "MATCH"
    traded = F.when(is_match, F.col("volume"))
    price_of = {side: F.when((F.col("event") == "INSERT") & (F.col("side") == side), F.col("price")) for side in SIDES}
    return (
        events.withWatermark("event_time", "10 seconds")
        .groupBy(F.window("event_time", WINDOW).alias("window"), "product_id")
        .agg(
            *(F.count_if(F.col("event") == event).alias(event.lower()) for event in EVENTS),
            F.coalesce(F.sum(traded), F.lit(0)).alias("volume"),
            F.coalesce(F.sum(traded * F.col("price")), F.lit(0)).alias("notional"),
            # Of the orders that came to rest: how far those to sell lie above those to buy.
            (F.avg(price_of["ask"]) - F.avg(price_of["bid"])).alias("spread"),
        )
    )


EVENTS = ("INSERT", "CANCEL", "MATCH")
SIDES = ("bid", "ask")


def tell(kind: str, **values: object) -> None:
    print(json.dumps({"kind": kind, **values}), flush=True)


def tell_windows(batch: DataFrame, number: int) -> None:
    """An update replaces what was told of a window before, so that a repeated batch changes nothing."""
    rows = [{**row.asDict(), "window": row.window.start.timestamp()} for row in batch.collect()]
    tell("windows", batch=number, rows=rows)


def tell_progress(query: StreamingQuery) -> None:
    told = -1
    while query.isActive:
        progress: Any = query.lastProgress
        if progress is not None and progress.batchId > told and progress.sources:
            told = progress.batchId
            metrics = progress.sources[0].metrics
            tell(
                "progress",
                batch=told,
                records=progress.numInputRows,
                rate=progress.processedRowsPerSecond,
                lag_seconds=float(metrics.get("lagSeconds", 0)),
            )
        time.sleep(0.1)


def main(uri: str, checkpoint: str) -> None:
    spark = ombus.spark("demo", master="local[2]", spark_sql_shuffle_partitions=2, spark_ui_enabled=False)
    spark.sparkContext.setLogLevel("ERROR")
    events = ombus.read_stream(spark, uri, starting_offsets="earliest", payload_format="openmatch")
    query = (
        windows_of(events)
        .writeStream.outputMode("update")
        .foreachBatch(tell_windows)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    threading.Thread(target=tell_progress, args=(query,), daemon=True).start()
    sys.stdin.readline()
    query.processAllAvailable()
    query.stop()
    tell("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
