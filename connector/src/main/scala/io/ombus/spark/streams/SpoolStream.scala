package io.ombus.spark.streams

import java.io.IOException
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import io.ombus.spark.{OmbusErrors, OmbusException}
import io.ombus.spark.nativebridge.{NativeSpool, OmbusNativeException}

/** A ring without a log of its own: a native thread in the driver drains it into a spool, which is a log and is read as one.
  * What the ring carried while no spool ran, or what it passed the spool over, is written down beside the log by libombus
  * and is a loss of the range that it lies in.
  */
final class SpoolStream(uri: String, name: String, ring: String, directory: String, durableOnly: Boolean)
    extends LogStream(uri, name, directory, durableOnly) {

  private val spool: NativeSpool =
    try {
      Files.createDirectories(Path.of(directory).getParent)
      NativeSpool.start(ring, directory)
    } catch {
      case e: OmbusNativeException => throw OmbusErrors.notFound(uri, s"ring $ring, spool $directory", e)
    }

  override def status(): StreamStatus = {
    val found = super.status()
    spool.status.failure.foreach(failure => throw OmbusErrors.spoolFailed(name, failure))
    found
  }

  /** `spool.losses` has a line `FROM TO WHY` (TO not included) per loss. */
  override def lossIn(from: Long, to: Long): Option[OmbusException] = {
    val file = Path.of(directory, SpoolStream.LossesFile)
    val lines =
      try Files.readAllLines(file).asScala
      catch { case _: IOException => Nil }
    lines
      .map(_.split(" ", 3))
      .collectFirst {
        case Array(first, end, why) if first.toLong < to && end.toLong > from =>
          OmbusErrors.spoolMissed(name, math.max(first.toLong, from), math.min(end.toLong, to), why)
      }
  }

  override def close(): Unit = {
    super.close()
    spool.close()
  }
}

object SpoolStream {
  val LossesFile = "spool.losses"
}
