package io.ombus.spark

import java.util
import java.util.Optional

import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.ombus.spark.nativebridge.{NativeCode, OmbusNativeException}
import io.ombus.spark.planning.{Admission, Positions, StreamRange}
import io.ombus.spark.streams.{StreamResolver, StreamSource, StreamStatus, StreamUri}

/** A query's view of its streams. An offset is, per stream, the next wal_seq to read ([[OmbusOffset]]).
  *
  * Replaying a batch gives the same bytes: its range is fixed by its two offsets, and a log changes nothing that it has. What
  * cannot be read again (pruned, damaged, a recreated log, a vanished stream) is reported in the one place that knows
  * failOnDataLoss. A stream that appears later enters with the position of its first record and no data; its records come
  * with the next batch, so that this start is in the checkpoint too.
  */
final class OmbusMicroBatchStream(
    options: OmbusOptions,
    plan: ReadPlan,
    checkpointLocation: String,
    userOptions: CaseInsensitiveStringMap
) extends MicroBatchStream
    with SupportsTriggerAvailableNow
    with ReportsSourceMetrics {

  private val log = LoggerFactory.getLogger(getClass)
  private val resolver = new StreamResolver(StreamUri.parseList(options.uris), options.durableOnly, spoolDirectory)
  private val admission = new Admission(options)
  private val consumer = new ConsumerPosition(options, checkpointLocation)
  private var vanishedBefore = Set.empty[String]
  private var toldOfCheckpoint = false
  private var availableNow = false
  private var frozenEnd = Option.empty[OmbusOffset]
  private var newest = Option.empty[OmbusOffset]

  /** Only asked for when the checkpoint has no batch; kept there from then on, so that `latest` stays what it was. */
  override def initialOffset(): Offset = new InitialOffset(checkpointLocation).getOrElse {
    val streams = resolver.streams()
    if (streams.nonEmpty) Positions.checkNames(options, streams.keys)
    OmbusOffset(streams.values.map { stream =>
      val status = stream.status()
      (stream.name, Positions.starting(options.starting, stream, status), status.id)
    })
  }

  override def deserializeOffset(json: String): Offset = {
    val bounds = Seq(OmbusOptions.StartingOffsets, OmbusOptions.StartingTimestamp).map(_.name)
    bounds.find(userOptions.containsKey).filterNot(_ => toldOfCheckpoint).foreach { name =>
      toldOfCheckpoint = true
      log.info(
        s"$name is not used: the checkpoint $checkpointLocation says where this query goes on ($json). " +
          "To move it, use `ombus checkpoint rewind`"
      )
    }
    OmbusOffset.parse(json)
  }

  override def getDefaultReadLimit: ReadLimit = admission.defaultLimit

  override def prepareForTriggerAvailableNow(): Unit = availableNow = true

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is to be called instead")

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val from = OmbusOffset.from(start)
    val present = statuses()
    reportVanished(from.positions.keySet.toSet -- present.keySet)
    newest = Some(OmbusOffset(present.values.map { case (stream, status) => (stream.name, status.next, status.id) }))
    if (availableNow && frozenEnd.isEmpty) frozenEnd = newest

    val ranges = present.values.toSeq.sortBy(_._1.name).collect {
      case (stream, status) if from.positions.contains(stream.name) =>
        val next = frozenEnd.fold(status.next)(_.positions.getOrElse(stream.name, 0L))
        val begin = effectiveStart(stream, status, from)
        StreamRange.checked(
          StreamRange(stream, status.id, begin, math.max(begin, math.min(next, status.next))),
          options.failOnDataLoss
        )
    }
    val late = present.values.collect {
      case (stream, status)
          if !from.positions.contains(stream.name) && frozenEnd.forall(_.positions.contains(stream.name)) =>
        (stream.name, Positions.earliest(status), status.id)
    }
    admission.admit(ranges, limit, waitForMore = !availableNow) match {
      case None       => from
      case Some(ends) =>
        val moved = ranges.zip(ends).map { case (range, end) => (range.stream.name, end, range.logId) }
        val kept = from.positions.keySet.diff(ranges.map(_.stream.name).toSet).toSeq.map { name =>
          (name, from.positions(name), from.ids.getOrElse(name, ""))
        }
        OmbusOffset(moved ++ late ++ kept)
    }
  }

  override def reportLatestOffset(): Offset = newest.orNull

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val (from, to) = (OmbusOffset.from(start), OmbusOffset.from(end))
    val moving = to.positions.filter { case (name, position) =>
      from.positions.get(name).exists(_ != position) || recreated(name, from, to)
    }
    if (moving.isEmpty) return Array.empty
    val present = statuses()
    reportVanished(moving.keySet.toSet -- present.keySet)
    val ranges = moving.toSeq.flatMap { case (name, position) => present.get(name).map((_, position)) }.map {
      case ((stream, status), position) =>
        val begin = effectiveStart(stream, status, from)
        if (position > status.next && !options.durableOnly)
          lost(OmbusErrors.beyondEnd(stream.name, position, status.next - 1))
        val stop = if (options.durableOnly) position else math.min(position, status.next)
        StreamRange.checked(StreamRange(stream, status.id, begin, stop), options.failOnDataLoss)
    }
    StreamRange.partitions(ranges, options.minPartitions).toArray[InputPartition]
  }

  override def createReaderFactory(): PartitionReaderFactory = OmbusReaderFactory(plan)

  override def commit(end: Offset): Unit = consumer.save(OmbusOffset.from(end), resolver.streams())

  override def metrics(latestConsumed: Optional[Offset]): util.Map[String, String] =
    if (latestConsumed.isPresent) Lag.of(resolver.streams(), OmbusOffset.from(latestConsumed.get)) else util.Map.of()

  override def stop(): Unit = {
    consumer.close(resolver)
    resolver.close()
  }

  override def toString: String = s"Ombus[${options.uris}]"

  /** The streams that are there, each asked once. */
  private def statuses(): Map[String, (StreamSource, StreamStatus)] =
    resolver.streams().flatMap { case (name, stream) =>
      try Some(name -> ((stream, stream.status())))
      catch { case e: OmbusNativeException if e.code == NativeCode.LogNotFound => None }
    }

  /** Where reading goes on in the log as it is now. */
  private def effectiveStart(stream: StreamSource, status: StreamStatus, from: OmbusOffset): Long = {
    val position = from.positions(stream.name)
    from.ids.get(stream.name).filter(_ != status.id) match {
      case Some(oldId) =>
        lost(OmbusErrors.recreated(stream.name, oldId, status.id, position))
        Positions.earliest(status)
      case None if position > status.next && !options.durableOnly =>
        lost(OmbusErrors.beyondEnd(stream.name, position, status.next - 1))
        status.next
      case None => position
    }
  }

  private def recreated(name: String, from: OmbusOffset, to: OmbusOffset): Boolean =
    (from.ids.get(name), to.ids.get(name)) match {
      case (Some(before), Some(after)) => before != after
      case _                           => false
    }

  private def reportVanished(names: Set[String]): Unit = {
    (names -- vanishedBefore).toSeq.sorted.foreach(name => lost(OmbusErrors.vanished(name)))
    vanishedBefore = names
  }

  private def lost(loss: OmbusException): Unit = OmbusErrors.reportDataLoss(options.failOnDataLoss, log, loss)

  private def spoolDirectory(ring: StreamUri.Ring): String = options.spoolPath match {
    case Some(directory) => s"${directory.replaceAll("/+$", "")}/${ring.name}"
    case None            =>
      val uri = new HadoopPath(checkpointLocation).toUri
      if (uri.getScheme != null && uri.getScheme != "file")
        throw OmbusErrors.spoolNeedsLocalPath(ring.text, checkpointLocation)
      s"${uri.getPath}/ombus-spool/${ring.name}"
  }
}
