package io.ombus.spark

import org.apache.spark.sql.connector.read.InputPartition

import io.ombus.spark.streams.StreamLocation

/** Records [from, to) of a stream: one task's share. */
final case class OmbusInputPartition(
    stream: String,
    location: StreamLocation,
    logId: String,
    from: Long,
    to: Long,
    hosts: Array[String]
) extends InputPartition {
  override def preferredLocations: Array[String] = hosts
}

/** The result of an aggregate that the index alone has answered: rows of values, in the order of the scan's columns. */
final case class AggregatePartition(rows: Seq[Seq[Any]]) extends InputPartition
