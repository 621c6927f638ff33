package io.ombus.spark.nativebridge

/** A part of a log as its index knows it: records from `from` up to, not including, `to`. */
final case class LogRange(from: Long, to: Long, bytes: Long, records: Long)

/** A log opened to ask about positions, sizes and cuts; nothing of its data is read here. Any thread.
  *
  * Mirrors `om_log.h`; the layouts that it relies on are asserted by native/tests/columns/test_abi.c.
  */
final class NativeLog private (val directory: String, library: NativeLibrary, handle: Long) extends AutoCloseable {
  import NativeLog._

  private val functions = library.functions
  private var open = true

  val id: String = NativeMemory.using(IdBytes) { memory =>
    functions.om_log_id(handle, memory.address)
    (0 until IdBytes).map(i => f"${memory.byte(i) & 0xff}%02x").mkString
  }

  /** First wal_seq that is still there; 0 = the log is empty. */
  def firstSeq: Long = call(functions.om_log_first_seq(handle))

  /** Last visible wal_seq; 0 = none. */
  def lastSeq: Long = call(functions.om_log_last_seq(handle))

  /** How often the log has been opened for writing. */
  def epoch: Long = call(functions.om_log_epoch(handle))

  /** The position of the first record at which the clock had reached this time; behind the last when there is none. */
  def positionAt(timeNs: Long): Long = synchronized {
    call(functions.om_log_seek_time(handle, timeNs).toLong)
    functions.om_log_position(handle)
  }

  /** Whether records from `seq` on have been removed by retention. */
  def isPruned(seq: Long): Boolean = synchronized {
    requireOpen()
    val rc = functions.om_log_seek(handle, seq)
    if (rc != NativeCode.LogPruned) library.check(rc)
    rc == NativeCode.LogPruned
  }

  /** wal_seq and timestamp (ns) of the first record from `seq` on. */
  def recordAt(seq: Long): Option[(Long, Long)] = synchronized {
    isPruned(seq) // moves there, or to the first record that is left
    recordHere()
  }

  /** Cuts [from, to) into at most `count` parts of about equal bytes. */
  def plan(from: Long, to: Long, count: Int): Seq[LogRange] = {
    val words = new Array[Long](count * RangeWords)
    val found = call(functions.om_log_plan(handle, from, to, count, words).toLong).toInt
    words.take(found * RangeWords).grouped(RangeWords).map(range).toSeq
  }

  /** Exact records and bytes of [from, to), from the index. */
  def measure(from: Long, to: Long): LogRange = {
    val words = new Array[Long](RangeWords)
    call(functions.om_log_range_stats(handle, from, to, words).toLong)
    range(words)
  }

  /** Where to stop in [from, to) so that no more than so many records and bytes (0 = no limit) are in front of it. */
  def limit(from: Long, to: Long, maxRecords: Long, maxBytes: Long): Long = {
    val end = new Array[Long](1)
    call(functions.om_log_limit(handle, from, to, maxRecords, maxBytes, end).toLong)
    end(0)
  }

  override def close(): Unit = synchronized {
    if (open) {
      open = false
      functions.om_log_reader_close(handle)
    }
  }

  private def recordHere(): Option[(Long, Long)] = NativeMemory.using(RecordBytes) { memory =>
    if (library.check(functions.om_log_next(handle, memory.address)) == 0) None
    else Some((memory.long(0), memory.long(8)))
  }

  private def call(function: => Long): Long = synchronized {
    requireOpen()
    library.check(function)
  }

  private def requireOpen(): Unit = if (!open) throw new IllegalStateException(s"the log $directory is closed")

  private def range(words: Array[Long]): LogRange = LogRange(words(0), words(1), words(2), words(3))
}

object NativeLog {
  val DurableOnly: Int = 0x4
  private val IdBytes = 16
  private val RangeWords = 4
  private val RecordBytes = 32

  def open(directory: String, durableOnly: Boolean = false): NativeLog = {
    val library = NativeLibrary.instance
    val handle = NativeMemory.using(16) { memory =>
      memory.putInt(8, if (durableOnly) DurableOnly else 0)
      library.check(
        library.functions.om_log_open_reader(memory.address, NativeMemory.text(directory), memory.address + 8)
      )
      memory.long(0)
    }
    new NativeLog(directory, library, handle)
  }

  /** Remembers that consumer `name` of the log needs nothing up to and with wal_seq any more; durable. */
  def saveConsumer(directory: String, name: String, walSeq: Long): Unit = {
    val library = NativeLibrary.instance
    library.check(
      library.functions.om_log_consumer_save(NativeMemory.text(directory), NativeMemory.text(name), walSeq)
    )
  }

  def removeConsumer(directory: String, name: String): Unit = {
    val library = NativeLibrary.instance
    library.check(library.functions.om_log_consumer_remove(NativeMemory.text(directory), NativeMemory.text(name)))
  }
}
