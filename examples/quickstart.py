"""A live stream in PySpark: what is traded of each product, while an engine writes its log."""

import ombus
from engine import running_engine
from pyspark.sql import functions as F

with running_engine(records=20_000) as engine:  # another process; it appends to the log at engine.uri
    spark = ombus.spark("quickstart", master="local[2]", spark_sql_shuffle_partitions=2)
    trades = (
        spark.readStream.format("ombus")
        .option("startingOffsets", "earliest")
        .option("payloadFormat", "openmatch")
        .option("walTypes", "3")  # MATCH records only
        .load(engine.uri)
    )
    volumes = trades.groupBy("product_id").agg(F.count("*").alias("trades"), F.sum("volume").alias("volume"))
    query = volumes.writeStream.outputMode("complete").format("memory").queryName("volumes").start()
    engine.totals()  # until the engine has ended
    query.processAllAvailable()
    spark.table("volumes").orderBy("product_id").show()
    query.stop()
