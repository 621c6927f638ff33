package io.ombus.spark.planning

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.JsonNode

import io.ombus.spark.{Json, OmbusOffset}

/** Where reading starts, as the user says it. */
sealed trait OffsetBound

object OffsetBound {
  case object Earliest extends OffsetBound
  case object Latest extends OffsetBound
  final case class AtTime(timeNs: Long) extends OffsetBound

  /** By stream; `default` is what "*" stands for. */
  final case class PerStream(positions: Map[String, Position], default: Option[Position]) extends OffsetBound

  sealed trait Position
  case object First extends Position
  case object Next extends Position
  final case class At(seq: Long) extends Position

  def parse(text: String): OffsetBound = text.toLowerCase match {
    case "earliest" => Earliest
    case "latest"   => Latest
    case _          => perStream(text)
  }

  private[planning] def perStream(text: String): PerStream = {
    val node =
      try Json.tree(text)
      catch {
        case _: JsonProcessingException =>
          throw new IllegalArgumentException("use earliest, latest or JSON such as {\"engine-0\": 123}")
      }
    if (node == null || !node.isObject || node.isEmpty)
      throw new IllegalArgumentException("use a JSON object such as {\"engine-0\": 123}")
    // What a checkpoint holds may be pasted as it is.
    val positions = (Json.members(node) - OmbusOffset.IdsMember).map { case (stream, value) =>
      stream -> position(stream, value)
    }
    PerStream((positions - "*").toMap, positions.get("*"))
  }

  private def position(stream: String, value: JsonNode): Position =
    if (value.isIntegralNumber && value.canConvertToLong && value.asLong >= 0) At(value.asLong)
    else if (value.isTextual && value.asText.equalsIgnoreCase("earliest")) First
    else if (value.isTextual && value.asText.equalsIgnoreCase("latest")) Next
    else
      throw new IllegalArgumentException(
        s"the position of $stream is $value: use a wal_seq, \"earliest\" or \"latest\""
      )
}

/** Where a batch read ends. */
sealed trait EndBound

object EndBound {
  case object Latest extends EndBound
  final case class AtTime(timeNs: Long) extends EndBound
  final case class PerStream(positions: Map[String, OffsetBound.Position], default: Option[OffsetBound.Position])
      extends EndBound

  def parse(text: String): EndBound = text.toLowerCase match {
    case "latest"   => Latest
    case "earliest" => throw new IllegalArgumentException("a range that ends at its start is empty: use latest or JSON")
    case _          =>
      val bound = OffsetBound.perStream(text)
      PerStream(bound.positions, bound.default)
  }
}
