package io.ombus.spark.planning

import org.apache.spark.sql.connector.read.streaming._

import io.ombus.spark.OmbusOptions

/** How much a micro-batch takes. The engine only hands our own limits back; keeping to them is the source's work. */
private[spark] final class Admission(options: OmbusOptions, now: () => Long = () => System.nanoTime() / 1000000) {

  private var lastBatchMs = now()

  val defaultLimit: ReadLimit = {
    val limits = options.minRecordsPerTrigger.map(ReadLimit.minRows(_, options.maxTriggerDelayMs)).toSeq ++
      options.maxRecordsPerTrigger.map(ReadLimit.maxRows) ++ options.maxBytesPerTrigger.map(ReadLimit.maxBytes)
    if (limits.isEmpty) ReadLimit.allAvailable() else ReadLimit.compositeLimit(limits.toArray)
  }

  /** Where each range ends in this batch; None = wait for more records. */
  def admit(ranges: Seq[StreamRange], limit: ReadLimit, waitForMore: Boolean): Option[Seq[Long]] = {
    val limits = flatten(limit)
    val maxRecords = limits.collectFirst { case rows: ReadMaxRows => rows.maxRows }
    val maxBytes = limits.collectFirst { case bytes: ReadMaxBytes => bytes.maxBytes }
    val minRows = limits.collectFirst { case rows: ReadMinRows => rows }.filter(_ => waitForMore)
    // Without limits the ends are known, and nothing needs to be counted.
    if (maxRecords.isEmpty && maxBytes.isEmpty && minRows.isEmpty) return Some(ranges.map(_.to))

    val waiting = ranges.map(range => range.stream.measure(range.from, range.to))
    if (minRows.exists(min => waiting.map(_.records).sum < min.minRows && now() - lastBatchMs < min.maxTriggerDelayMs))
      return None
    lastBatchMs = now()
    val byRecords = maxRecords.map(Shares.proportional(_, waiting.map(_.records)))
    val byBytes = maxBytes.map(Shares.proportional(_, waiting.map(_.bytes)))
    Some(ranges.zipWithIndex.map { case (range, i) =>
      val records = byRecords.map(_(i))
      if (range.isEmpty || records.contains(0L)) range.from
      else
        range.stream
          .limit(range.from, range.to, records.getOrElse(0L), byBytes.fold(0L)(shares => math.max(1, shares(i))))
    })
  }

  private def flatten(limit: ReadLimit): Seq[ReadLimit] = limit match {
    case composite: CompositeReadLimit => composite.getReadLimits.toSeq.flatMap(flatten)
    case single                        => Seq(single)
  }
}
