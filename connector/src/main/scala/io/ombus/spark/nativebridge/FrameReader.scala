package io.ombus.spark.nativebridge

/** A range of a stream as batches of row addresses, wherever its frames come from. One thread at a time. */
trait FrameReader extends AutoCloseable {

  /** Address of the array that [[next]] fills: one 8-byte address of a checked frame per row. */
  def rows: Long

  /** Next batch: how many rows it has. 0 with [[done]] unset says: none in this stretch, call again. */
  def next(): Int

  /** The end of the range has been reached. */
  def done: Boolean

  /** Looked at so far: records, and the bytes of their frames. */
  def records: Long
  def bytes: Long

  /** Places where wal_seq jumps because the writer did. */
  def gaps: Long

  /** Payloads too short for their columns, and wal_seq and size of the latest. */
  def shortPayloads: Long
  def shortSeq: Long
  def shortLen: Long

  /** Damaged stretches and pruned ranges passed over, and the wal_seq range of the latest. */
  def damages: Long
  def prunedRanges: Long
  def lostFirstSeq: Long
  def lostLastSeq: Long

  /** Everything below has been looked at. */
  def nextSeq: Long
}
