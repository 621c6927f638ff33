package io.ombus.spark

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

import io.ombus.spark.nativebridge.FrameReader

/** What tasks count beside Spark's own metrics, shown in the UI's plan. Spark finds these classes by name. */
object OmbusMetrics {
  val supported: Array[CustomMetric] =
    Array(new RecordsMetric, new BytesMetric, new GapsMetric, new CorruptMetric, new ShortMetric, new PrunedMetric)

  def values(reader: FrameReader): Array[CustomTaskMetric] = Array(
    task("ombusRecords", reader.records),
    task("ombusBytes", reader.bytes),
    task("ombusGaps", reader.gaps),
    task("ombusCorrupt", reader.damages),
    task("ombusShortPayloads", reader.shortPayloads),
    task("ombusPruned", reader.prunedRanges)
  )

  private def task(metric: String, count: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name: String = metric
    override def value: Long = count
  }
}

abstract class OmbusMetric(val name: String, val description: String) extends CustomSumMetric
final class RecordsMetric extends OmbusMetric("ombusRecords", "records read from the log")
final class BytesMetric extends OmbusMetric("ombusBytes", "bytes read from the log")
final class GapsMetric extends OmbusMetric("ombusGaps", "gaps in wal_seq that the producer left")
final class CorruptMetric extends OmbusMetric("ombusCorrupt", "damaged stretches skipped")
final class ShortMetric extends OmbusMetric("ombusShortPayloads", "payloads too short for their columns")
final class PrunedMetric extends OmbusMetric("ombusPruned", "pruned ranges passed over")
