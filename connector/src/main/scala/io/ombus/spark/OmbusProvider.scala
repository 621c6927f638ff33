package io.ombus.spark

import java.util

import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The entry: `spark.read.format("ombus")`, `spark.readStream.format("ombus")` and SQL's `USING ombus`. */
class OmbusProvider extends TableProvider with DataSourceRegister {

  override def shortName(): String = "ombus"

  /** Known from the options alone: no stream is opened to define a query. */
  override def inferSchema(options: CaseInsensitiveStringMap): StructType =
    ReadPlan.schema(OmbusOptions.parsePayload(options))

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]
  ): Table =
    new OmbusTable(new CaseInsensitiveStringMap(properties))
}
