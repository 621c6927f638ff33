"""A live stream joined with a table: product numbers get their names, prices their currency."""

import ombus
from engine import PRODUCTS, running_engine
from pyspark.sql import functions as F

with running_engine(records=20_000) as engine:
    spark = ombus.spark("join", master="local[2]", spark_sql_shuffle_partitions=2)
    products = spark.createDataFrame(
        [(number, name, "USD" if number < 3 else "EUR") for number, name in PRODUCTS.items()],
        "product_id INT, name STRING, currency STRING",
    )
    trades = ombus.read_stream(
        spark, engine.uri, starting_offsets="earliest", payload_format="openmatch", wal_types=[3]
    )
    turnover = (
        trades.join(F.broadcast(products), "product_id")
        .groupBy("currency")
        .agg(
            F.sum("volume").alias("volume"),
            F.sum(F.expr("price * volume / 100")).cast("decimal(20,2)").alias("turnover"),
            F.array_join(F.array_sort(F.collect_set("name")), ", ").alias("products"),
        )
    )
    query = turnover.writeStream.outputMode("complete").format("memory").queryName("turnover").start()
    engine.totals()  # until the engine has ended
    query.processAllAvailable()
    spark.table("turnover").orderBy("currency").show(truncate=False)
    query.stop()
