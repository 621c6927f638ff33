package io.ombus.spark

import java.nio.charset.StandardCharsets
import java.util.zip.CRC32

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import io.ombus.spark.streams.{StreamResolver, StreamSource}

/** The query as a named consumer of its logs: lag tools see it, and retention can wait for it. The position follows the
  * checkpoint and is never read back, so that failing to save it harms nobody's data.
  */
private[spark] final class ConsumerPosition(options: OmbusOptions, checkpointLocation: String) {
  private val log = LoggerFactory.getLogger(getClass)
  private var warned = false
  private var saved = Map.empty[String, Long]

  val name: String = options.consumerName.getOrElse(ConsumerPosition.derive(checkpointLocation))

  def save(offset: OmbusOffset, streams: Map[String, StreamSource]): Unit = if (options.saveConsumer) {
    for ((stream, position) <- offset.positions if !saved.get(stream).contains(position); source <- streams.get(stream))
      quietly(s"save its position in $stream") {
        source.saveConsumer(name, position)
        saved += stream -> position
      }
  }

  /** A query without a checkpoint of its own never comes back: its name would only hold up retention. */
  def close(resolver: StreamResolver): Unit =
    if (saved.nonEmpty && options.consumerName.isEmpty && ConsumerPosition.isTemporary(checkpointLocation))
      quietly("remove its position") {
        val streams = resolver.streams()
        saved.keys.flatMap(streams.get).foreach(_.removeConsumer(name))
      }

  private def quietly(what: String)(body: => Unit): Unit =
    try body
    catch {
      case NonFatal(e) if !warned =>
        warned = true
        log.warn(
          s"the query runs on, but consumer $name cannot $what, so that lag tools will not see it: ${e.getMessage}"
        )
      case NonFatal(_) =>
    }
}

object ConsumerPosition {

  /** From `/data/checkpoints/candles/sources/0`: `spark-candles-` and a checksum that tells equal names apart. */
  private[spark] def derive(checkpointLocation: String): String = {
    val crc = new CRC32
    crc.update(checkpointLocation.getBytes(StandardCharsets.UTF_8))
    val query =
      Option(new Path(checkpointLocation).getParent).flatMap(p => Option(p.getParent)).map(_.getName).getOrElse("")
    val plain = query.replaceAll("[^A-Za-z0-9._-]", "-").take(100)
    f"spark-$plain-${crc.getValue}%08x"
  }

  /** Where Spark puts the checkpoint of a query that names none. */
  private[spark] def isTemporary(checkpointLocation: String): Boolean = checkpointLocation.contains("/temporary-")
}
