package io.ombus.spark

import scala.collection.immutable.SortedMap

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.spark.sql.connector.read.streaming.Offset

/** Where a query stands: per stream the next wal_seq to read, so that a batch from offset A to offset B holds the records
  * with A(stream) <= wal_seq < B(stream).
  *
  * `{"engine-0":123,"engine-1":7,"__ids":{"engine-0":"5f3a..."}}`: the identities of the logs tell a log that was deleted
  * and created again from the one that the positions belong to. Plain maps without `__ids` are accepted; so are
  * streams without one.
  */
final case class OmbusOffset(positions: SortedMap[String, Long], ids: SortedMap[String, String]) extends Offset {

  override val json: String = {
    val plain = positions.map { case (stream, position) => s"${Json.quoted(stream)}:$position" }
    val identities = ids.map { case (stream, id) => s"${Json.quoted(stream)}:${Json.quoted(id)}" }
    val reserved = if (ids.isEmpty) Nil else Seq(s""""${OmbusOffset.IdsMember}":{${identities.mkString(",")}}""")
    (plain ++ reserved).mkString("{", ",", "}")
  }

  override def toString: String = json
}

object OmbusOffset {

  /** No stream has this name: names that start with two underscores are refused. */
  val IdsMember = "__ids"

  val empty: OmbusOffset = OmbusOffset(SortedMap.empty[String, Long], SortedMap.empty[String, String])

  def apply(entries: Iterable[(String, Long, String)]): OmbusOffset = OmbusOffset(
    SortedMap.from(entries.map { case (stream, position, _) => stream -> position }),
    SortedMap.from(entries.collect { case (stream, _, id) if id.nonEmpty => stream -> id })
  )

  /** Spark hands an offset of its own kind back when it comes from a checkpoint. */
  def from(offset: Offset): OmbusOffset = offset match {
    case ours: OmbusOffset => ours
    case other             => parse(other.json)
  }

  def parse(json: String): OmbusOffset = {
    def refuse(reason: String) = throw OmbusErrors.malformedOffset(json, reason)
    val node =
      try Json.tree(json)
      catch { case e: JsonProcessingException => refuse(s"it is not JSON (${e.getOriginalMessage})") }
    if (node == null || !node.isObject) refuse("it is not a JSON object")
    val members = Json.members(node)
    val positions = (members - IdsMember).map { case (stream, value) =>
      if (!value.isIntegralNumber || !value.canConvertToLong || value.asLong < 0)
        refuse(s"the position of $stream is not a wal_seq: $value")
      stream -> value.asLong
    }
    val ids = members.get(IdsMember).fold(SortedMap.empty[String, String]) { identities =>
      Json.members(identities).map { case (stream, id) => stream -> id.asText }
    }
    OmbusOffset(positions, ids)
  }
}
