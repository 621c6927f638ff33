package io.ombus.spark

import java.util.OptionalLong

import scala.util.control.NonFatal

import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory}

import io.ombus.spark.planning.{Positions, Pushdown, StreamRange}
import io.ombus.spark.streams.{StreamResolver, StreamUri}

/** A read of what is there now, between the bounds that options and filters set. */
final class OmbusBatch(
    options: OmbusOptions,
    plan: ReadPlan,
    pushdown: Pushdown,
    aggregate: Option[IndexAggregate]
) extends Batch {

  private val uris = StreamUri.parseList(options.uris)

  override def planInputPartitions(): Array[InputPartition] = withRanges { ranges =>
    val whole = ranges.map(StreamRange.checked(_, options.failOnDataLoss))
    aggregate match {
      case Some(asked) => Array(AggregatePartition(answer(asked, whole)))
      case None        =>
        val limited = plan.limit.filter(_ => pushdown.isIndexOnly && options.walTypes.isAll).fold(whole)(cut(whole, _))
        StreamRange.partitions(limited, options.minPartitions).toArray[InputPartition]
    }
  }

  override def createReaderFactory(): PartitionReaderFactory = OmbusReaderFactory(plan)

  /** Records and bytes before filters that only reading applies; unknown when the streams cannot be asked now. */
  def estimate(): (OptionalLong, OptionalLong) =
    try
      withRanges { ranges =>
        val sizes = ranges.map(range => range.stream.measure(range.from, range.to))
        (OptionalLong.of(sizes.map(_.records).sum), OptionalLong.of(sizes.map(_.bytes).sum))
      }
    catch { case NonFatal(_) => (OptionalLong.empty, OptionalLong.empty) }

  private def withRanges[T](body: Seq[StreamRange] => T): T = {
    val resolver = new StreamResolver(uris, options.durableOnly, ring => throw OmbusErrors.ringHasNoHistory(ring.text))
    try {
      val streams = resolver.streams()
      Positions.checkNames(options, streams.keys)
      val wanted = streams.filter { case (name, _) => pushdown.streams.forall(_.contains(name)) && !pushdown.isEmpty }
      body(wanted.toSeq.sortBy(_._1).map { case (_, stream) =>
        val status = stream.status()
        val from = math.max(Positions.starting(options.starting, stream, status), pushdown.seqFrom)
        val to = math.min(Positions.ending(options.ending, stream, status), pushdown.seqTo)
        // No record before the clock first reached a time is as new as that; the end has no such rule.
        val late =
          if (pushdown.timeFromNs > 0 && from < to) math.max(from, stream.positionAt(pushdown.timeFromNs)) else from
        StreamRange(stream, status.id, late, to)
      })
    } finally resolver.close()
  }

  /** Only as far as the first `count` records go. */
  private def cut(ranges: Seq[StreamRange], count: Int): Seq[StreamRange] = {
    var left = count.toLong
    ranges.map { range =>
      val end = if (left <= 0 || range.isEmpty) range.from else range.stream.limit(range.from, range.to, left, 0)
      val taken = range.copy(to = end)
      if (!taken.isEmpty) left -= range.stream.measure(taken.from, taken.to).records
      taken
    }
  }

  /** From the indexes alone. */
  private def answer(asked: IndexAggregate, ranges: Seq[StreamRange]): Seq[Seq[Any]] = {
    val counted = ranges.map(range => range -> range.stream.measure(range.from, range.to).records).filter(_._2 > 0)
    def values(parts: Seq[(StreamRange, Long)]): Seq[Any] = asked.functions.map {
      case IndexFunction.CountAll => parts.map(_._2).sum
      case IndexFunction.MinSeq   => parts.flatMap { case (range, _) => firstSeq(range) }.minOption.getOrElse(null)
      case IndexFunction.MaxSeq   => parts.flatMap { case (range, n) => lastSeq(range, n) }.maxOption.getOrElse(null)
    }
    if (asked.perStream) counted.map { case (range, n) => range.stream.name +: values(Seq(range -> n)) }
    else Seq(values(counted))
  }

  private def firstSeq(range: StreamRange): Option[Long] = range.stream.recordAt(range.from).map(_._1)

  /** The record behind all but one. */
  private def lastSeq(range: StreamRange, records: Long): Option[Long] =
    if (records == 1) firstSeq(range)
    else range.stream.recordAt(range.stream.limit(range.from, range.to, records - 1, 0)).map(_._1)
}
