package io.ombus.spark.nativebridge

import java.lang.ref.Cleaner

import org.apache.spark.unsafe.{Platform => Unsafe}

/** Which records of a range become rows; the words of `om_col.h`.
  * @param types
  *   256 bits in four words, all zero = every wal_type
  * @param payloadMin
  *   by wal_type, the payload size below which a row counts as short; null = none
  */
final case class RowFilter(
    fromTimeNs: Long = 0,
    toTimeNs: Long = 0,
    types: Vector[Long] = Vector(0L, 0L, 0L, 0L),
    payloadMin: Option[Vector[Int]] = None,
    dropShort: Boolean = false
)

/** How a range is read.
  * @param tolerateLoss
  *   go on behind damage and behind what retention has removed, and count it
  */
final case class ReadMode(verifyChecksums: Boolean, tolerateLoss: Boolean, durableOnly: Boolean)

/** A range of a log as batches of row addresses: [[next]] fills the array at [[rows]] with addresses of frames. All checks
  * and filters are libombus' work; columns read at fixed offsets of a row's address.
  *
  * Whoever reads rows may be another thread than the one that closes: Spark's Python runners read in a thread of their
  * own and end with the task. So `close` gives the mappings back at once only when the thread that last read calls it,
  * and else leaves them to the garbage collector, which knows when the last column is gone. A late read then finds its
  * memory, never a fault.
  */
final class NativeColumns private (library: NativeLibrary, resources: NativeColumns.Resources) extends FrameReader {
  import NativeColumns._

  private val cleanable = cleaner.register(this, resources)
  private var readerThread: Thread = _
  private var closed = false
  private val stats = new Array[Long](StatsBytes.toInt / 8) // a copy, to be read after close too

  override val rows: Long = resources.rows

  override def next(): Int = synchronized {
    if (closed) return 0
    readerThread = Thread.currentThread()
    val result = library.functions.om_col_next(resources.handle, rows, resources.stats)
    Unsafe.copyMemory(null, resources.stats, stats, Unsafe.LONG_ARRAY_OFFSET, StatsBytes)
    library.check(result)
  }

  override def records: Long = stat(0)
  override def bytes: Long = stat(1)
  override def gaps: Long = stat(3)
  override def shortPayloads: Long = stat(5)
  override def shortSeq: Long = stat(6)
  override def shortLen: Long = stat(7)
  override def damages: Long = stat(8)
  override def prunedRanges: Long = stat(9)
  override def lostFirstSeq: Long = stat(10)
  override def lostLastSeq: Long = stat(11)
  override def nextSeq: Long = stat(12)
  override def done: Boolean = closed || stat(13) != 0

  override def close(): Unit = synchronized {
    if (!closed) {
      closed = true
      if (readerThread == null || readerThread == Thread.currentThread()) cleanable.clean()
    }
  }

  private def stat(i: Int): Long = stats(i)
}

object NativeColumns {
  private val cleaner = Cleaner.create()

  private val OptionsBytes = 112L
  private val LogIdAt = 32L
  private val FilterAt = 48L
  private val StatsBytes = 112L
  private val TypeCount = 256

  private val NoCrc = 0x1
  private val SkipCorrupt = 0x2
  private val DurableOnly = 0x4
  private val SkipPruned = 0x100
  private val DropShort = 0x1

  /** Everything outside the heap; freed once, by close or by the collector. */
  private final class Resources(library: NativeLibrary, val handle: Long, val rows: Long, val stats: Long)
      extends Runnable {
    override def run(): Unit = {
      library.functions.om_col_close(handle)
      Unsafe.freeMemory(rows)
      Unsafe.freeMemory(stats)
    }
  }

  /** Opens [from, to) of the log in `directory`, which must have the identity `logId` (hex; empty = any). */
  def open(
      directory: String,
      logId: String,
      from: Long,
      to: Long,
      filter: RowFilter,
      mode: ReadMode,
      rowsMax: Int
  ): NativeColumns = {
    val library = NativeLibrary.instance
    val handle = NativeMemory.using(8 + OptionsBytes + 4 * TypeCount) { memory =>
      writeOptions(memory, 8, logId, from, to, filter, mode, rowsMax)
      library.check(library.functions.om_col_open(memory.address, NativeMemory.text(directory), memory.address + 8))
      memory.long(0)
    }
    val stats = Unsafe.allocateMemory(StatsBytes)
    Unsafe.setMemory(stats, 0.toByte, StatsBytes)
    val resources = new Resources(library, handle, Unsafe.allocateMemory(8L * rowsMax), stats)
    new NativeColumns(library, resources)
  }

  private def writeOptions(
      memory: NativeMemory,
      at: Long,
      logId: String,
      from: Long,
      to: Long,
      filter: RowFilter,
      mode: ReadMode,
      rowsMax: Int
  ): Unit = {
    val flags = (if (mode.verifyChecksums) 0 else NoCrc) | (if (mode.durableOnly) DurableOnly else 0) |
      (if (mode.tolerateLoss) SkipCorrupt | SkipPruned else 0)
    memory.putLong(at, from)
    memory.putLong(at + 8, to)
    memory.putInt(at + 16, flags)
    memory.putInt(at + 20, rowsMax)
    logId.grouped(2).zipWithIndex.foreach { case (hex, i) =>
      memory.putByte(at + LogIdAt + i, Integer.parseInt(hex, 16).toByte)
    }
    val filterAt = at + FilterAt
    memory.putLong(filterAt, filter.fromTimeNs)
    memory.putLong(filterAt + 8, filter.toTimeNs)
    filter.types.zipWithIndex.foreach { case (word, i) => memory.putLong(filterAt + 16 + 8 * i, word) }
    filter.payloadMin.foreach { sizes =>
      val sizesAt = at + OptionsBytes
      sizes.zipWithIndex.foreach { case (size, i) => memory.putInt(sizesAt + 4 * i, size) }
      memory.putLong(filterAt + 48, memory.address + sizesAt)
    }
    memory.putInt(filterAt + 56, if (filter.dropShort) DropShort else 0)
  }
}
