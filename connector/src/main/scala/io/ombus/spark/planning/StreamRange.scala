package io.ombus.spark.planning

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import io.ombus.spark.{OmbusErrors, OmbusInputPartition}
import io.ombus.spark.streams.StreamSource

/** Records [from, to) of a stream, whose log has this identity. */
final case class StreamRange(stream: StreamSource, logId: String, from: Long, to: Long) {
  def isEmpty: Boolean = from >= to
}

/** From ranges to partitions, and the checks that a range is still whole. */
object StreamRange {
  private val log = LoggerFactory.getLogger(classOf[StreamRange])

  /** Reports what of the range is gone; what is left of it when that may be. */
  def checked(range: StreamRange, failOnDataLoss: Boolean): StreamRange = {
    def lost(loss: io.ombus.spark.OmbusException): Unit = OmbusErrors.reportDataLoss(failOnDataLoss, log, loss)
    if (range.isEmpty) return range
    range.stream.lossIn(range.from, range.to).foreach(lost)
    if (!range.stream.isPruned(range.from)) return range
    val first = range.stream.status().first
    lost(OmbusErrors.pruned(range.stream.name, range.from, math.min(first, range.to)))
    range.copy(from = math.min(math.max(first, range.from), range.to))
  }

  /** Partitions of about equal bytes. */
  def partitions(ranges: Seq[StreamRange], minPartitions: Option[Int]): Array[OmbusInputPartition] = {
    val bytes = ranges.map(range => if (range.isEmpty) 0L else range.stream.measure(range.from, range.to).bytes)
    val counts = Shares.partitions(bytes, SparkContext.getOrCreate().defaultParallelism, minPartitions)
    ranges
      .zip(counts)
      .filter(_._2 > 0)
      .flatMap { case (range, count) =>
        range.stream.plan(range.from, range.to, count).filter(_.records > 0).map { part =>
          OmbusInputPartition(
            range.stream.name,
            range.stream.location,
            range.logId,
            part.from,
            part.to,
            range.stream.preferredHosts
          )
        }
      }
      .toArray
  }
}
