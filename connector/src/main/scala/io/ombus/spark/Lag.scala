package io.ombus.spark

import java.util

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.ombus.spark.streams.StreamSource

/** How far a query is behind its streams, for the query's progress. */
private[spark] object Lag {

  /** Streams whose figures are told one by one. */
  private val EachMax = 16

  def of(streams: Map[String, StreamSource], consumed: OmbusOffset): util.Map[String, String] = {
    val lags = consumed.positions.toSeq.flatMap { case (name, position) =>
      streams.get(name).flatMap(stream => one(stream, position)).map(name -> _)
    }
    val all = lags.map(_._2)
    val sums = Seq(
      "lagRecords" -> all.map(_._1).sum.toString,
      "lagBytes" -> all.map(_._2).sum.toString,
      "lagSeconds" -> f"${all.map(_._3).maxOption.getOrElse(0.0)}%.3f"
    )
    val each =
      if (lags.size > EachMax) Nil
      else lags.map { case (name, (records, _, _)) => s"lagRecords.$name" -> records.toString }
    (sums ++ each).toMap.asJava
  }

  /** Records, bytes, and the age in seconds of the oldest record not read. */
  private def one(stream: StreamSource, position: Long): Option[(Long, Long, Double)] =
    try {
      val next = stream.status().next
      if (position >= next) Some((0L, 0L, 0.0))
      else {
        val range = stream.measure(position, next)
        val age = stream.recordAt(position).map { case (_, timeNs) => System.currentTimeMillis() / 1e3 - timeNs / 1e9 }
        Some((range.records, range.bytes, math.max(0.0, age.getOrElse(0.0))))
      }
    } catch { case NonFatal(_) => None } // a figure for people is no reason to stop a query
}
