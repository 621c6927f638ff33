"""SQL over what a log holds: a table that reads only the columns and records that the query needs."""

import ombus
from engine import running_engine

with running_engine(records=50_000, rate=1_000_000) as engine:
    totals = engine.totals()  # until the engine has ended
    spark = ombus.spark("history", master="local[2]", spark_sql_shuffle_partitions=2)
    spark.sql(f"CREATE TEMPORARY VIEW events USING ombus OPTIONS (uri '{engine.uri}', payloadFormat 'openmatch')")

    spark.sql("SELECT event, count(*) AS records FROM events GROUP BY event ORDER BY event").show()
    spark.sql(
        """
        SELECT product_id, count(*) AS trades, sum(volume) AS volume,
               CAST(sum(price * volume) / sum(volume) / 100 AS DECIMAL(10, 2)) AS vwap
        FROM events
        WHERE wal_type = 3 AND wal_seq > 10000
        GROUP BY product_id ORDER BY product_id
        """
    ).show()
    print("records in the log:", spark.table("events").count(), "written:", totals["records"])
