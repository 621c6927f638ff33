package io.ombus.spark

import scala.collection.immutable.SortedMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}

/** The little JSON that offsets and options need, with the Jackson that Spark brings. */
private[spark] object Json {
  private val mapper = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)

  def tree(text: String): JsonNode = mapper.readTree(text)

  def strings(text: String): Seq[String] = tree(text).elements.asScala.map(_.asText).toSeq

  def members(node: JsonNode): SortedMap[String, JsonNode] =
    SortedMap.from(node.fieldNames.asScala.map(name => name -> node.get(name)))

  def quoted(text: String): String = mapper.writeValueAsString(text)
}
