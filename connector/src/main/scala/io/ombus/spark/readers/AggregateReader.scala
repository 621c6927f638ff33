package io.ombus.spark.readers

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.vectorized.{ColumnarBatch, ColumnVector}
import org.apache.spark.unsafe.types.UTF8String

import io.ombus.spark.AggregatePartition

/** Hands out the few rows that planning has computed from the index. */
final class AggregateReader(partition: AggregatePartition, schema: StructType) extends PartitionReader[ColumnarBatch] {
  private var read = false

  override def next(): Boolean = {
    val first = !read
    read = true
    first && partition.rows.nonEmpty
  }

  override def get(): ColumnarBatch = {
    val columns = schema.fields.zipWithIndex.map { case (field, i) =>
      new ValuesColumn(field.dataType, partition.rows.map(_(i))): ColumnVector
    }
    new ColumnarBatch(columns, partition.rows.size)
  }

  override def close(): Unit = ()

  /** Long or String values, null where there is none. */
  private final class ValuesColumn(dataType: DataType, values: Seq[Any]) extends ViewColumn(dataType) {
    private val strings = values.map { case text: String => UTF8String.fromString(text); case _ => null }
    override def hasNull: Boolean = values.contains(null)
    override def isNullAt(row: Int): Boolean = values(row) == null
    override def getLong(row: Int): Long = values(row).asInstanceOf[Long]
    override def getUTF8String(row: Int): UTF8String = strings(row)
  }
}
