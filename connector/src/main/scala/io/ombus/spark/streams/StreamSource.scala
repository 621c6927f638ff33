package io.ombus.spark.streams

import io.ombus.spark.OmbusException
import io.ombus.spark.nativebridge.{FrameReader, LogRange, ReadMode, RowFilter}

/** What a stream says of itself.
  * @param id
  *   identity of its log, hex
  * @param first
  *   first wal_seq still there; 0 = empty
  * @param next
  *   the wal_seq behind the last
  */
final case class StreamStatus(id: String, first: Long, next: Long)

/** One stream as the driver sees it: what planning needs to ask. A log on disk is one kind, a ring with its spool another, a
  * server reached over TCP will be a third. Any thread.
  */
trait StreamSource extends AutoCloseable {

  /** Key of its offsets and value of its column `stream`. */
  def name: String

  /** As the user wrote it. */
  def uri: String

  /** Asks anew, also whether it is still the same log. */
  def status(): StreamStatus

  /** Position of the first record at which the producer's clock had reached this time. */
  def positionAt(timeNs: Long): Long

  /** Whether retention has removed records from `seq` on. */
  def isPruned(seq: Long): Boolean

  /** wal_seq and timestamp (ns) of the first record from `seq` on. */
  def recordAt(seq: Long): Option[(Long, Long)]

  /** Exact records and bytes of [from, to), without reading them. */
  def measure(from: Long, to: Long): LogRange

  /** Where to stop in [from, to) for so many records and bytes (0 = no limit). */
  def limit(from: Long, to: Long, maxRecords: Long, maxBytes: Long): Long

  /** Cuts [from, to) into at most `count` parts of about equal bytes. */
  def plan(from: Long, to: Long, count: Int): Seq[LogRange]

  /** Records of [from, to) that were lost before they came into the log. */
  def lossIn(from: Long, to: Long): Option[OmbusException]

  /** Remembers, for lag tools and retention, that consumer `name` has read everything below `position`. */
  def saveConsumer(name: String, position: Long): Unit
  def removeConsumer(name: String): Unit

  /** What an executor needs to read it. */
  def location: StreamLocation

  /** Hosts that hold its data; empty = all the same. */
  def preferredHosts: Array[String]
}

/** How an executor opens a range of a stream. */
trait StreamLocation extends Serializable {

  /** Opens [from, to) of the log with identity `logId`. */
  def open(logId: String, from: Long, to: Long, filter: RowFilter, mode: ReadMode): FrameReader

  /** What error texts call it. */
  def description: String
}
