package io.ombus.spark.readers

import org.apache.spark.unsafe.Platform

/** The rows that all columns of a reader look at: addresses of frames, one batch at a time. The layout of a frame is that of
  * docs/formats.md; libombus has checked every length before it hands an address out.
  *
  * @param rows
  *   address of the array of addresses
  * @param owner
  *   keeps the frames in memory for as long as a column can be reached
  */
final class RowBatch(rows: Long, private[readers] val owner: AnyRef) {

  /** Whether the present batch has a row whose payload is too short for its columns. */
  var hasShort: Boolean = false

  @inline def frame(row: Int): Long = Platform.getLong(null, rows + 8L * row)
  @inline def walSeq(row: Int): Long = Platform.getLong(null, frame(row) + RowBatch.SeqAt)
  @inline def walType(row: Int): Int = Platform.getByte(null, frame(row) + RowBatch.TypeAt) & 0xff
  @inline def timestampNs(row: Int): Long = Platform.getLong(null, frame(row) + RowBatch.TimeAt)
  @inline def payloadLen(row: Int): Int = Platform.getInt(null, frame(row) + RowBatch.PayloadLenAt)
  @inline def payload(row: Int): Long = frame(row) + RowBatch.PayloadAt
}

object RowBatch {
  final val TypeAt = 4L
  final val SeqAt = 8L
  final val TimeAt = 16L
  final val PayloadLenAt = 28L
  final val PayloadAt = 32L

  /** A copy on the heap of `length` bytes at `address`. */
  def copy(address: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes
  }
}
