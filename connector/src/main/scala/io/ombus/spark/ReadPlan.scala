package io.ombus.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.ombus.spark.nativebridge.{ReadMode, RowFilter}
import io.ombus.spark.payload.{PayloadFormat, PayloadMode}
import io.ombus.spark.readers.{AggregateReader, OmbusColumnarReader}

/** How every task of a scan reads: what goes to the executors beside a task's range. */
final case class ReadPlan(
    schema: StructType,
    payload: PayloadFormat,
    mode: PayloadMode,
    filter: RowFilter,
    readMode: ReadMode,
    limit: Option[Int]
) {
  def failOnDataLoss: Boolean = !readMode.tolerateLoss
}

object ReadPlan {

  /** Columns that every stream has; those of the payload follow. */
  val baseSchema: StructType = StructType(
    Seq(
      StructField("stream", StringType, nullable = false),
      StructField("wal_seq", LongType, nullable = false),
      StructField("wal_type", ShortType, nullable = false),
      StructField("timestamp", TimestampType, nullable = false)
    )
  )

  def schema(payload: PayloadFormat): StructType = StructType(baseSchema.fields ++ payload.schema.fields)
}

/** Readers are columnar only: what Spark needs as rows it makes of columns itself, in generated code. */
final case class OmbusReaderFactory(plan: ReadPlan) extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = partition match {
    case range: OmbusInputPartition => new OmbusColumnarReader(range, plan)
    case answer: AggregatePartition => new AggregateReader(answer, plan.schema)
    case other                      => throw new IllegalArgumentException(s"not a partition of this source: $other")
  }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("this source reads columns")
}
