package io.ombus.spark.readers

import java.io.IOException
import java.net.InetAddress

import scala.util.Try

import org.apache.spark.TaskContext
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ColumnarBatch, ColumnVector}
import org.slf4j.LoggerFactory

import io.ombus.spark.{OmbusErrors, OmbusInputPartition, OmbusMetrics, ReadPlan}
import io.ombus.spark.nativebridge.{FrameReader, NativeCode, OmbusNativeException}
import io.ombus.spark.payload.PayloadMode

/** One task's range as column batches. The same batch and columns serve all of it: what changes is the array of row
  * addresses that they look at.
  */
final class OmbusColumnarReader(partition: OmbusInputPartition, plan: ReadPlan) extends PartitionReader[ColumnarBatch] {
  import OmbusColumnarReader._

  private val frames: FrameReader =
    try partition.location.open(partition.logId, partition.from, partition.to, plan.filter, plan.readMode)
    catch { case e: OmbusNativeException => throw explained(e, partition.from) }
  private val rows = new RowBatch(frames.rows, frames)
  private val batch = new ColumnarBatch(columns(plan.schema))
  private var left = plan.limit.fold(Long.MaxValue)(_.toLong)
  private var shortBefore = 0L
  private var lossesBefore = 0L

  override def next(): Boolean = {
    if (left <= 0) return false
    var count = fill()
    while (count == 0 && !frames.done) {
      if (Option(TaskContext.get()).exists(_.isInterrupted())) return false
      count = fill()
    }
    rows.hasShort = frames.shortPayloads > shortBefore
    if (rows.hasShort) reportShort()
    reportLosses()
    count = math.min(count.toLong, left).toInt
    left -= count
    batch.setNumRows(count)
    count > 0
  }

  override def get(): ColumnarBatch = batch

  override def currentMetricsValues(): Array[CustomTaskMetric] = OmbusMetrics.values(frames)

  override def close(): Unit = frames.close()

  private def fill(): Int =
    try frames.next()
    catch {
      case e: OmbusNativeException if e.code == NativeCode.ColIncomplete && !plan.failOnDataLoss =>
        OmbusErrors.reportDataLoss(
          failOnDataLoss = false,
          log,
          OmbusErrors.beyondEnd(partition.stream, partition.to, frames.nextSeq - 1)
        )
        left = 0
        0
      case e: OmbusNativeException => throw explained(e, frames.nextSeq)
    }

  private def columns(schema: StructType): Array[ColumnVector] = schema.fieldNames.map {
    case "stream"    => new StreamColumn(partition.stream)
    case "wal_seq"   => new SeqColumn(rows)
    case "wal_type"  => new TypeColumn(rows)
    case "timestamp" => new TimeColumn(rows)
    case name        => plan.payload.column(name, rows)
  }

  private def reportShort(): Unit = {
    shortBefore = frames.shortPayloads
    if (plan.mode == PayloadMode.FailFast)
      throw OmbusErrors.shortPayload(partition.stream, frames.shortSeq, frames.shortLen, plan.payload.needed)
  }

  /** Damage and retention that the library passed over, which it does only where the loss is accepted. */
  private def reportLosses(): Unit = {
    val losses = frames.damages + frames.prunedRanges
    if (losses > lossesBefore) {
      lossesBefore = losses
      log.warn(
        s"data loss accepted by failOnDataLoss=false: stream ${partition.stream}: wal_seq ${frames.lostFirstSeq} to " +
          s"${frames.lostLastSeq} are damaged or pruned and were passed over"
      )
    }
  }

  private def explained(e: OmbusNativeException, at: Long): IOException = {
    val stream = partition.stream
    val cause = e.code match {
      case NativeCode.LogNotFound   => OmbusErrors.notVisible(stream, partition.location.description, hostName, e)
      case NativeCode.LogPruned     => OmbusErrors.pruned(stream, at, partition.to)
      case NativeCode.LogCorrupt    => OmbusErrors.damaged(stream, at, partition.to, e)
      case NativeCode.LogForeign    => OmbusErrors.recreated(stream, partition.logId, "another", at)
      case NativeCode.ColIncomplete => OmbusErrors.beyondEnd(stream, partition.to, at - 1)
      case _                        => OmbusErrors.unreadable(stream, at, partition.to, e)
    }
    new IOException(cause.getMessage, cause)
  }
}

object OmbusColumnarReader {
  private val log = LoggerFactory.getLogger(classOf[OmbusColumnarReader])

  private def hostName: String = Try(InetAddress.getLocalHost.getHostName).getOrElse("this host")
}
