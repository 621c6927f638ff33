"""Candles (open, high, low, close) of one second from a live stream.

The watermark says when a second is over: only then its candles are written, each once, and its state is forgotten.
"""

import ombus
from engine import PRODUCTS, running_engine
from pyspark.sql import functions as F

SECONDS = 8

with running_engine(rate=5_000, seconds=SECONDS) as engine:
    spark = ombus.spark("candles", master="local[2]", spark_sql_shuffle_partitions=2)
    trades = ombus.read_stream(
        spark, engine.uri, starting_offsets="earliest", payload_format="openmatch", wal_types=[3]
    )
    candles = (
        trades.withWatermark("event_time", "1 second")
        .groupBy(F.window("event_time", "1 second"), "product_id")
        .agg(
            F.min_by("price", "wal_seq").alias("open"),
            F.max("price").alias("high"),
            F.min("price").alias("low"),
            F.max_by("price", "wal_seq").alias("close"),
            F.sum("volume").alias("volume"),
        )
    )
    query = candles.writeStream.outputMode("append").format("memory").queryName("candles").start()
    engine.totals()  # until the engine has ended
    query.processAllAvailable()
    query.stop()

    finished = spark.table("candles").select("window.start", "product_id", "open", "high", "low", "close", "volume")
    for candle in finished.where("product_id = 1").orderBy("start").collect():
        prices = "  ".join(f"{name} {candle[name] / 100:.2f}" for name in ("open", "high", "low", "close"))
        print(f"{candle.start:%H:%M:%S}  {PRODUCTS[candle.product_id]}  {prices}  volume {candle.volume}")
    print(f"{finished.count()} candles of {len(PRODUCTS)} products")
