package io.ombus.spark.streams

import java.io.IOException
import java.net.InetAddress
import java.nio.file.{Files, Path}

import scala.util.control.NonFatal

import io.ombus.spark.OmbusException
import io.ombus.spark.nativebridge._

/** A log directory. It stays open from trigger to trigger, and is opened anew when another file has taken the place of its
  * control file: the log was deleted and created again, which its identity then tells.
  */
class LogStream(val uri: String, val name: String, val directory: String, durableOnly: Boolean) extends StreamSource {
  private var log: NativeLog = _
  private var openedOn: AnyRef = _

  override def status(): StreamStatus = {
    val now = reopened()
    StreamStatus(now.id, now.firstSeq, now.lastSeq + 1)
  }

  override def positionAt(timeNs: Long): Long = opened().positionAt(timeNs)
  override def isPruned(seq: Long): Boolean = opened().isPruned(seq)
  override def recordAt(seq: Long): Option[(Long, Long)] = opened().recordAt(seq)
  override def measure(from: Long, to: Long): LogRange =
    if (from >= to) LogRange(from, to, 0, 0) else opened().measure(from, to)
  override def limit(from: Long, to: Long, maxRecords: Long, maxBytes: Long): Long =
    if (from >= to) from else opened().limit(from, to, maxRecords, maxBytes)
  override def plan(from: Long, to: Long, count: Int): Seq[LogRange] = opened().plan(from, to, count)
  override def lossIn(from: Long, to: Long): Option[OmbusException] = None

  override def saveConsumer(name: String, position: Long): Unit =
    NativeLog.saveConsumer(directory, name, math.max(0, position - 1))
  override def removeConsumer(name: String): Unit = NativeLog.removeConsumer(directory, name)

  override def location: StreamLocation = LogLocation(directory)
  override def preferredHosts: Array[String] = LogStream.localHost.toArray

  override def close(): Unit = synchronized {
    if (log != null) log.close()
    log = null
  }

  private def opened(): NativeLog = synchronized {
    if (log == null) reopened() else log
  }

  private def reopened(): NativeLog = synchronized {
    val present = LogStream.controlFile(directory)
    if (log == null || present != openedOn) {
      val fresh = NativeLog.open(directory, durableOnly)
      close()
      log = fresh
      openedOn = present
    }
    log
  }
}

object LogStream {

  /** Rows of a batch: enough to make the call into the library cheap, few enough for their headers to stay in the cache. */
  val BatchRows = 4096

  /** Tells one control file from another that has its name; null when there is none. */
  private def controlFile(directory: String): AnyRef =
    try Files.readAttributes(Path.of(directory, "log.ctl"), "unix:dev,ino,ctime")
    catch { case _: IOException => null }

  /** This host, under the name that Spark's executors register with. */
  private lazy val localHost: Option[String] =
    try Some(sys.env.getOrElse("SPARK_LOCAL_HOSTNAME", InetAddress.getLocalHost.getHostName))
    catch { case NonFatal(_) => None }
}

/** A log directory that the executor sees under the driver's path. */
final case class LogLocation(directory: String) extends StreamLocation {
  override def open(logId: String, from: Long, to: Long, filter: RowFilter, mode: ReadMode): FrameReader =
    NativeColumns.open(directory, logId, from, to, filter, mode, LogStream.BatchRows)
  override def description: String = directory
}
