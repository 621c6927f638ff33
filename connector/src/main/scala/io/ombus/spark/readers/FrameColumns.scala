package io.ombus.spark.readers

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnarArray, ColumnarMap, ColumnVector}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A column without a value of its own: a view that a subclass gives one getter. Views are used for every batch of a reader,
  * so that Spark's "free this batch" must not close them; the reader itself gives the memory back.
  */
abstract class ViewColumn(dataType: DataType) extends ColumnVector(dataType) {
  override def close(): Unit = ()
  override def closeIfFreeable(): Unit = ()
  override def hasNull: Boolean = false
  override def numNulls: Int = if (hasNull) 1 else 0 // nobody counts; what matters is whether there is any
  override def isNullAt(row: Int): Boolean = false

  override def getBoolean(row: Int): Boolean = no("boolean")
  override def getByte(row: Int): Byte = no("byte")
  override def getShort(row: Int): Short = no("short")
  override def getInt(row: Int): Int = no("int")
  override def getLong(row: Int): Long = no("long")
  override def getFloat(row: Int): Float = no("float")
  override def getDouble(row: Int): Double = no("double")
  override def getArray(row: Int): ColumnarArray = no("array")
  override def getMap(row: Int): ColumnarMap = no("map")
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = no("decimal")
  override def getUTF8String(row: Int): UTF8String = no("string")
  override def getBinary(row: Int): Array[Byte] = no("binary")
  override def getChild(ordinal: Int): ColumnVector = no("struct")

  private def no(kind: String): Nothing =
    throw new UnsupportedOperationException(s"a column of type ${dataType.sql} was asked for a $kind")
}

/** The same for every row. */
final class StreamColumn(name: String) extends ViewColumn(StringType) {
  private val value = UTF8String.fromString(name)
  override def getUTF8String(row: Int): UTF8String = value
}

final class SeqColumn(rows: RowBatch) extends ViewColumn(LongType) {
  override def getLong(row: Int): Long = rows.walSeq(row)
}

final class TypeColumn(rows: RowBatch) extends ViewColumn(ShortType) {
  override def getShort(row: Int): Short = rows.walType(row).toShort
}

/** Microseconds, rounded down; the log has nanoseconds, unsigned, so half of the division is a shift. */
final class TimeColumn(rows: RowBatch) extends ViewColumn(TimestampType) {
  override def getLong(row: Int): Long = (rows.timestampNs(row) >>> 3) / 125
}

/** The bytes as they are, copied when asked for. */
final class PayloadColumn(rows: RowBatch) extends ViewColumn(BinaryType) {
  override def getBinary(row: Int): Array[Byte] = RowBatch.copy(rows.payload(row), rows.payloadLen(row))
}

/** The name that a table gives to a row's wal_type. */
final class TypeNameColumn(rows: RowBatch, names: Map[Int, String]) extends ViewColumn(StringType) {
  private val byType = Array.tabulate(256)(walType => names.get(walType).map(UTF8String.fromString).orNull)
  override def hasNull: Boolean = true
  override def isNullAt(row: Int): Boolean = byType(rows.walType(row)) == null
  override def getUTF8String(row: Int): UTF8String = byType(rows.walType(row))
}

/** `bid` or `ask`, from bit 0 of a 16-bit field. */
final class SideColumn(rows: RowBatch, walType: Int, flagsAt: Int, minSize: Int) extends ViewColumn(StringType) {
  private val bid = UTF8String.fromString("bid")
  private val ask = UTF8String.fromString("ask")
  override def hasNull: Boolean = true
  override def isNullAt(row: Int): Boolean = rows.walType(row) != walType || rows.payloadLen(row) < minSize
  override def getUTF8String(row: Int): UTF8String =
    if ((Platform.getByte(null, rows.payload(row) + flagsAt) & 1) == 0) bid else ask
}

/** One of two byte strings behind a struct, whose sizes stand in it as two 32-bit numbers. Null unless both fit. */
final class TailColumn(rows: RowBatch, walType: Int, structSize: Int, sizesAt: Int, second: Boolean)
    extends ViewColumn(BinaryType) {

  private def size(row: Int, which: Int): Long =
    Platform.getInt(null, rows.payload(row) + sizesAt + 4 * which) & 0xffffffffL

  override def hasNull: Boolean = true

  override def isNullAt(row: Int): Boolean = {
    val length = rows.payloadLen(row)
    rows.walType(row) != walType || length < structSize || structSize + size(row, 0) + size(row, 1) > length
  }

  override def getBinary(row: Int): Array[Byte] = {
    if (isNullAt(row)) return null
    val start = rows.payload(row) + structSize
    if (second) RowBatch.copy(start + size(row, 0), size(row, 1).toInt) else RowBatch.copy(start, size(row, 0).toInt)
  }
}
