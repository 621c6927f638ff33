package io.ombus.spark

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import munit.FunSuite
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.ombus.spark.payload.{PayloadFormat, PayloadMode}
import io.ombus.spark.planning.{EndBound, OffsetBound}

class OmbusOptionsSuite extends FunSuite {

  private def map(options: (String, String)*) =
    new CaseInsensitiveStringMap((Map("path" -> "log:///tmp/x") ++ options).asJava)

  private def stream(options: (String, String)*) = OmbusOptions.parse(map(options: _*), isStream = true)
  private def batch(options: (String, String)*) = OmbusOptions.parse(map(options: _*), isStream = false)

  private def refused(words: String*)(body: => Any): Unit = {
    val message = intercept[OmbusOptionException](body).getMessage
    words.foreach(word => assert(message.contains(word), s"`$word` is missing in: $message"))
  }

  test("defaults") {
    val options = stream()
    assertEquals(options.starting, OffsetBound.Latest: OffsetBound)
    assertEquals(batch().starting, OffsetBound.Earliest: OffsetBound)
    assertEquals(options.ending, EndBound.Latest: EndBound)
    assert(options.failOnDataLoss && options.verifyChecksums && options.saveConsumer && !options.durableOnly)
    assertEquals(options.payload, PayloadFormat.Raw: PayloadFormat)
    assertEquals(options.mode, PayloadMode.Permissive: PayloadMode)
    assertEquals(options.maxTriggerDelayMs, 900000L)
    assert(options.walTypes.isAll)
  }

  test("names are of any case, values are parsed") {
    val options = stream(
      "STARTINGOFFSETS" -> """{"a": 5, "*": "earliest"}""",
      "maxRecordsPerTrigger" -> "100",
      "maxBytesPerTrigger" -> "64m",
      "maxTriggerDelay" -> "2min",
      "mode" -> "failfast",
      "walTypes" -> "1,3",
      "consumerName" -> "me"
    )
    val expected = OffsetBound.PerStream(Map("a" -> OffsetBound.At(5)), Some(OffsetBound.First))
    assertEquals(options.starting, expected: OffsetBound)
    assertEquals(options.maxRecordsPerTrigger, Some(100L))
    assertEquals(options.maxBytesPerTrigger, Some(64L << 20))
    assertEquals(options.maxTriggerDelayMs, 120000L)
    assertEquals(options.mode, PayloadMode.FailFast: PayloadMode)
    assertEquals(options.walTypes.toString, "1,3")
    assertEquals(options.consumerName, Some("me"))
    assert(!stream("consumerName" -> "none").saveConsumer)
  }

  test("an unknown option is refused with the one that was meant") {
    refused("OMBUS_UNKNOWN_OPTION", "'startingoffset'", "did you mean 'startingOffsets'?")(
      stream("startingOffset" -> "latest")
    )
    refused("'maxrecordspertriger'", "maxRecordsPerTrigger")(stream("maxRecordsPerTriger" -> "5"))
    refused("'zzz'", "docs/spark.md")(stream("zzz" -> "1"))
  }

  test("a bad value is refused with option, value and remedy") {
    Seq(
      "maxRecordsPerTrigger" -> "0",
      "maxRecordsPerTrigger" -> "many",
      "maxBytesPerTrigger" -> "5 parsecs",
      "minRecordsPerTrigger" -> "-1",
      "maxTriggerDelay" -> "soon",
      "minPartitions" -> "0",
      "failOnDataLoss" -> "maybe",
      "verifyChecksums" -> "1",
      "walTypes" -> "300",
      "walTypes" -> "3-1",
      "walTypes" -> "insert",
      "payloadFormat" -> "avro",
      "mode" -> "LENIENT",
      "startingOffsets" -> "newest",
      "startingOffsets" -> "[1]",
      "startingOffsets" -> "{}",
      "startingOffsets" -> """{"a": -1}""",
      "startingOffsets" -> """{"a": "soon"}""",
      "startingTimestamp" -> "2026-01-01",
      "startingTimestamp" -> "-5",
      "consumerName" -> "a/b",
      "payloadSchema" -> "a int32",
      "payloadAlignment" -> "natural"
    ).foreach { case (name, value) => refused("OMBUS_BAD_OPTION", name, s"'$value'")(stream(name -> value)) }
  }

  test("options of the other kind of read are refused") {
    refused("endingOffsets", "spark.read, not for spark.readStream")(stream("endingOffsets" -> "latest"))
    refused("maxRecordsPerTrigger", "not for spark.read")(batch("maxRecordsPerTrigger" -> "5"))
    refused("endingOffsets", "empty")(batch("endingOffsets" -> "earliest"))
  }

  test("offsets and timestamp exclude each other") {
    refused("startingTimestamp is given too")(stream("startingOffsets" -> "latest", "startingTimestamp" -> "1"))
    refused("endingTimestamp is given too")(batch("endingOffsets" -> "latest", "endingTimestamp" -> "1"))
  }

  test("times are milliseconds, or ISO with zone") {
    assertEquals(OptionValues.timeNs("1700000000123"), 1700000000123000000L)
    assertEquals(OptionValues.timeNs("2023-11-14T22:13:20.5Z"), 1700000000500000000L)
    assertEquals(OptionValues.timeNs("2023-11-14 23:13:20+01:00"), 1700000000000000000L)
  }

  test("struct needs a schema, a schema needs struct") {
    refused("payloadSchema")(stream("payloadFormat" -> "struct"))
    refused("payloadSchema", "did you mean double?")(stream("payloadFormat" -> "struct", "payloadSchema" -> "a doubel"))
    refused("wal_seq already")(stream("payloadFormat" -> "struct", "payloadSchema" -> "wal_seq int64"))
    assertEquals(
      stream("payloadFormat" -> "struct", "payloadSchema" -> "a int32").payload.schema.simpleString,
      "struct<a:int>"
    )
  }

  test("no stream is an error that shows how to name one") {
    val empty = new CaseInsensitiveStringMap(Map.empty[String, String].asJava)
    refused("OMBUS_NO_URI", "load(\"log:///dir\")")(OmbusOptions.parse(empty, isStream = true))
  }

  test("uri wins over path, paths are joined") {
    assertEquals(stream("uri" -> "shm://a").uris, "shm://a")
    val paths = new CaseInsensitiveStringMap(Map("paths" -> """["log:///a","log:///b"]""").asJava)
    assertEquals(OmbusOptions.parse(paths, isStream = false).uris, "log:///a,log:///b")
  }

  test("what Spark adds for a table of the session catalog is no unknown option") {
    val table = map("provider" -> "ombus", "owner" -> "me", "option.uri" -> "x", "transient_lastddltime" -> "1")
    OmbusOptions.checkNames(table)
  }

  /** Run with -Dombus.update.docs=true to write the table. */
  test("docs/spark.md has the table of options") {
    val file = Iterator
      .iterate(Path.of("").toAbsolutePath)(_.getParent)
      .map(_.resolve("docs/spark.md"))
      .find(Files.exists(_))
      .get
    val (begin, end) = ("<!-- options: generated from OmbusOptions.scala -->\n", "\n<!-- end of options -->")
    val text = Files.readString(file)
    val (from, to) = (text.indexOf(begin) + begin.length, text.indexOf(end))
    assert(from >= begin.length && to > from, s"$file has no marks for the table of options")
    if (sys.props.contains("ombus.update.docs"))
      Files.writeString(file, text.substring(0, from) + OmbusOptions.markdown + text.substring(to))
    else assertEquals(text.substring(from, to), OmbusOptions.markdown)
  }
}
