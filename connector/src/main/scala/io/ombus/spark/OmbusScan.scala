package io.ombus.spark

import java.util.OptionalLong

import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.ombus.spark.nativebridge.ReadMode
import io.ombus.spark.payload.{PayloadFormat, PayloadMode}
import io.ombus.spark.planning.Pushdown

/** What is to be read, before anyone knows whether as a batch or as a stream. */
final case class OmbusScan(
    options: CaseInsensitiveStringMap,
    payload: PayloadFormat,
    schema: StructType,
    pushdown: Pushdown,
    limit: Option[Int],
    aggregate: Option[IndexAggregate]
) extends Scan
    with SupportsReportStatistics {

  override def readSchema(): StructType = schema

  /** Shown in plans: everything that Spark need not do because the source does it. */
  override def description(): String = {
    val parts = Seq(
      Some(new OptionValues(options).uris),
      Some(pushdown.description).filter(_.nonEmpty).map(text => s"PushedFilters: [$text]"),
      limit.map(count => s"PushedLimit: $count"),
      aggregate.map { pushed =>
        s"PushedAggregates: [${pushed.functions.mkString(", ")}]${if (pushed.perStream) " by stream" else ""}"
      },
      Some(s"ReadSchema: ${schema.catalogString}")
    )
    parts.flatten.mkString("ombus ", ", ", "")
  }

  override def toBatch: Batch = batch

  private lazy val batch: OmbusBatch = {
    val parsed = OmbusOptions.parse(options, isStream = false)
    new OmbusBatch(parsed, readPlan(parsed), pushdown, aggregate)
  }

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    val parsed = OmbusOptions.parse(options, isStream = true)
    new OmbusMicroBatchStream(parsed, readPlan(parsed), checkpointLocation, options)
  }

  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def supportedCustomMetrics(): Array[CustomMetric] = OmbusMetrics.supported

  override def estimateStatistics(): Statistics = {
    val (records, bytes) = batch.estimate()
    new Statistics {
      override def sizeInBytes(): OptionalLong = bytes
      override def numRows(): OptionalLong = records
    }
  }

  private def readPlan(parsed: OmbusOptions): ReadPlan = {
    val filter = pushdown
      .and(Pushdown(types = parsed.walTypes))
      .rowFilter
      .copy(
        payloadMin = parsed.payload.payloadMin,
        dropShort = parsed.mode == PayloadMode.DropMalformed
      )
    val mode = ReadMode(parsed.verifyChecksums, tolerateLoss = !parsed.failOnDataLoss, parsed.durableOnly)
    ReadPlan(schema, payload, parsed.mode, filter, mode, limit)
  }
}
