package io.ombus.spark

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.ombus.spark.payload.{PayloadFormat, PayloadMode}
import io.ombus.spark.planning.{EndBound, OffsetBound, TypeMask}

/** One option of the source: everything that code, error texts and documentation say of it.
  * @param scope
  *   `both`, `stream` (readStream only) or `batch` (read only)
  */
final case class OptionSpec(name: String, valueType: String, default: String, scope: String, doc: String)

/** The options of one scan, checked. */
final case class OmbusOptions(
    uris: String,
    starting: OffsetBound,
    ending: EndBound,
    maxRecordsPerTrigger: Option[Long],
    maxBytesPerTrigger: Option[Long],
    minRecordsPerTrigger: Option[Long],
    maxTriggerDelayMs: Long,
    minPartitions: Option[Int],
    failOnDataLoss: Boolean,
    walTypes: TypeMask,
    payload: PayloadFormat,
    mode: PayloadMode,
    consumerName: Option[String],
    saveConsumer: Boolean,
    spoolPath: Option[String],
    verifyChecksums: Boolean,
    durableOnly: Boolean
)

/** The one place where options are defined, parsed and refused. `docs/spark.md` has its table from here. */
object OmbusOptions {

  private def spec(name: String, valueType: String, default: String, scope: String, doc: String) =
    OptionSpec(name, valueType, default, scope, doc)

  val Uri = spec(
    "uri",
    "URI list",
    "",
    "both",
    "the streams, as in `load(...)`; for SQL, where `path` would be taken for a file path"
  )
  val Path = spec("path", "URI list", "", "both", "what `load(...)` was given")
  val Paths = spec("paths", "JSON list", "", "both", "what `load(a, b)` was given")
  val StartingOffsets = spec(
    "startingOffsets",
    "`earliest`, `latest` or JSON",
    "`latest` (stream), `earliest` (batch)",
    "both",
    "where a query without a checkpoint starts: JSON maps streams to the next wal_seq, `\"earliest\"` or `\"latest\"`; `\"*\"` stands for all others"
  )
  val EndingOffsets =
    spec(
      "endingOffsets",
      "`latest` or JSON",
      "`latest`",
      "batch",
      "where to end: JSON maps streams to the first wal_seq left out"
    )
  val StartingTimestamp = spec(
    "startingTimestamp",
    "ms since 1970, or ISO 8601 with zone",
    "",
    "both",
    "start at the first record at which the producer's clock had reached this time; instead of `startingOffsets`"
  )
  val EndingTimestamp =
    spec(
      "endingTimestamp",
      "ms since 1970, or ISO 8601 with zone",
      "",
      "batch",
      "end before the first record at which the clock had reached this time"
    )
  val MaxRecordsPerTrigger =
    spec(
      "maxRecordsPerTrigger",
      "count > 0",
      "no limit",
      "stream",
      "most records of a micro-batch, shared among streams by what each has waiting"
    )
  val MaxBytesPerTrigger =
    spec(
      "maxBytesPerTrigger",
      "bytes (`64m`, `1g`)",
      "no limit",
      "stream",
      "most frame bytes of a micro-batch (a stream gives at least one record)"
    )
  val MinRecordsPerTrigger =
    spec("minRecordsPerTrigger", "count > 0", "1", "stream", "wait until so many records are there ...")
  val MaxTriggerDelay =
    spec("maxTriggerDelay", "duration (`15m`, `500ms`)", "15m", "stream", "... but no longer than this")
  val MinPartitions = spec(
    "minPartitions",
    "count > 0",
    "by size and cores",
    "both",
    "cut ranges into at least about so many partitions, of equal bytes"
  )
  val FailOnDataLoss = spec(
    "failOnDataLoss",
    "boolean",
    "true",
    "both",
    "whether records that are gone (pruned, damaged, a recreated log, a vanished stream) fail the query; `false` warns, counts and goes on"
  )
  val WalTypes =
    spec(
      "walTypes",
      "list (`1,3,0x80-0xFC`)",
      "all",
      "both",
      "read only records of these types; the filter runs in native code"
    )
  val PayloadFormatSpec =
    spec(
      "payloadFormat",
      "`raw`, `struct`, `openmatch`",
      "`raw`",
      "both",
      "`raw`: column `payload`; else typed columns in its place"
    )
  val PayloadSchema =
    spec(
      "payloadSchema",
      "layout",
      "",
      "both",
      "fields of `payloadFormat=struct`, such as `id uint64, price decimal(18,4), name string(8)`"
    )
  val PayloadAlignment =
    spec(
      "payloadAlignment",
      "`natural`, `packed`",
      "`natural`",
      "both",
      "whether fields of a struct are aligned as a C compiler does, or lie close together"
    )
  val Mode = spec(
    "mode",
    "`PERMISSIVE`, `DROPMALFORMED`, `FAILFAST`",
    "`PERMISSIVE`",
    "both",
    "a payload too short for its columns: nulls and a count; no row and a count; an error"
  )
  val ConsumerName = spec(
    "consumerName",
    "name, or `none`",
    "from the checkpoint's path",
    "stream",
    "under which the query's position is saved in the log for `ombus lag` and retention"
  )
  val SpoolPath = spec(
    "spoolPath",
    "directory",
    "beside the checkpoint",
    "stream",
    "where a ring without a log is spooled; local to the driver and seen by the executors"
  )
  val VerifyChecksums = spec("verifyChecksums", "boolean", "true", "both", "check each record's CRC-32C while reading")
  val DurableOnly = spec(
    "durableOnly",
    "boolean",
    "false",
    "both",
    "read a record only when a power cut can no longer take it back (adds the writer's sync interval to the latency)"
  )

  val all: Seq[OptionSpec] = Seq(
    Uri,
    StartingOffsets,
    StartingTimestamp,
    EndingOffsets,
    EndingTimestamp,
    MaxRecordsPerTrigger,
    MaxBytesPerTrigger,
    MinRecordsPerTrigger,
    MaxTriggerDelay,
    MinPartitions,
    FailOnDataLoss,
    WalTypes,
    PayloadFormatSpec,
    PayloadSchema,
    PayloadAlignment,
    Mode,
    ConsumerName,
    SpoolPath,
    VerifyChecksums,
    DurableOnly
  )

  /** What Spark itself puts beside the user's options, for a load with paths and for a table in the session catalog. */
  private val fromSpark =
    Set("path", "paths", "provider", "location", "owner", "comment", "external", "is_managed_location", "schema")
  private val fromSparkPrefixes = Seq("option.", "transient_", "view.", "spark.sql.")

  /** Options that belong to Spark's own table of the session catalog are left out. */
  private def userOptions(options: CaseInsensitiveStringMap): Map[String, String] =
    options.asScala.toMap.filterNot { case (name, _) =>
      fromSpark.contains(name) || fromSparkPrefixes.exists(name.startsWith) || name == "serialization.format"
    }

  /** Refuses what is unknown, with the name that was probably meant. */
  def checkNames(options: CaseInsensitiveStringMap): Unit = {
    val known = all.map(spec => spec.name.toLowerCase(Locale.ROOT)).toSet
    userOptions(options).keys.toSeq.sorted.filterNot(known.contains).foreach { name =>
      throw OmbusErrors.unknownOption(name, Spelling.nearest(name, all.map(_.name)))
    }
  }

  /** @param isStream whether readStream or read asks: some options make sense for one only */
  def parse(options: CaseInsensitiveStringMap, isStream: Boolean): OmbusOptions = {
    checkNames(options)
    val values = new OptionValues(options)
    if (isStream) all.filter(_.scope == "batch").foreach(values.refuse(_, "spark.read", "spark.readStream"))
    else all.filter(_.scope == "stream").foreach(values.refuse(_, "spark.readStream", "spark.read"))
    OmbusOptions(
      uris = values.uris,
      starting = startingBound(values, isStream),
      ending = endingBound(values),
      maxRecordsPerTrigger = values.positive(MaxRecordsPerTrigger),
      maxBytesPerTrigger = values.bytes(MaxBytesPerTrigger),
      minRecordsPerTrigger = values.positive(MinRecordsPerTrigger),
      maxTriggerDelayMs = values.durationMs(MaxTriggerDelay).getOrElse(15 * 60 * 1000L),
      minPartitions = values.positive(MinPartitions).map(n => math.min(n, 1 << 20).toInt),
      failOnDataLoss = values.boolean(FailOnDataLoss, default = true),
      walTypes = values.get(WalTypes).map(values.wrap(WalTypes)(TypeMask.parse)).getOrElse(TypeMask.all),
      payload = payloadFormat(values),
      mode =
        values.oneOf(Mode, PayloadMode.all.map(_.toString)).map(PayloadMode.named).getOrElse(PayloadMode.Permissive),
      consumerName = values.get(ConsumerName).filter(_ != "none").map(values.wrap(ConsumerName)(checkConsumerName)),
      saveConsumer = !values.get(ConsumerName).contains("none"),
      spoolPath = values.get(SpoolPath),
      verifyChecksums = values.boolean(VerifyChecksums, default = true),
      durableOnly = values.boolean(DurableOnly, default = false)
    )
  }

  /** The payload's columns alone: a schema is asked for before anyone knows whether it is a stream. */
  def parsePayload(options: CaseInsensitiveStringMap): PayloadFormat = {
    checkNames(options)
    payloadFormat(new OptionValues(options))
  }

  private def payloadFormat(values: OptionValues): PayloadFormat = {
    val format = values.oneOf(PayloadFormatSpec, Seq("raw", "struct", "openmatch")).getOrElse("raw")
    val packed = values.oneOf(PayloadAlignment, Seq("natural", "packed")).contains("packed")
    if (format != "struct") {
      Seq(PayloadSchema, PayloadAlignment).foreach { spec =>
        if (values.get(spec).isDefined)
          throw OmbusErrors.badOption(spec.name, values.get(spec).get, "it needs payloadFormat=struct")
      }
    }
    format match {
      case "raw"       => PayloadFormat.Raw
      case "openmatch" => PayloadFormat.OpenMatch
      case _           =>
        val text = values
          .get(PayloadSchema)
          .getOrElse(
            throw OmbusErrors
              .badOption(PayloadFormatSpec.name, "struct", "it needs payloadSchema, such as `id uint64, price double`")
          )
        values.wrap(PayloadSchema)(PayloadFormat.struct(_, packed))(text)
    }
  }

  private def startingBound(values: OptionValues, isStream: Boolean): OffsetBound =
    (values.get(StartingOffsets), values.get(StartingTimestamp)) match {
      case (Some(offsets), Some(_)) =>
        throw OmbusErrors.badOption(StartingOffsets.name, offsets, "startingTimestamp is given too: use one of them")
      case (Some(offsets), None) => values.wrap(StartingOffsets)(OffsetBound.parse)(offsets)
      case (None, Some(time))    => OffsetBound.AtTime(values.wrap(StartingTimestamp)(OptionValues.timeNs)(time))
      case (None, None)          => if (isStream) OffsetBound.Latest else OffsetBound.Earliest
    }

  private def endingBound(values: OptionValues): EndBound =
    (values.get(EndingOffsets), values.get(EndingTimestamp)) match {
      case (Some(offsets), Some(_)) =>
        throw OmbusErrors.badOption(EndingOffsets.name, offsets, "endingTimestamp is given too: use one of them")
      case (Some(offsets), None) => values.wrap(EndingOffsets)(EndBound.parse)(offsets)
      case (None, Some(time))    => EndBound.AtTime(values.wrap(EndingTimestamp)(OptionValues.timeNs)(time))
      case (None, None)          => EndBound.Latest
    }

  private def checkConsumerName(name: String): String = {
    if (!name.matches("[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}"))
      throw new IllegalArgumentException("use up to 200 letters, digits, '.', '_' and '-', not starting with '.'")
    name
  }

  /** The table of docs/spark.md. */
  def markdown: String =
    (Seq("| option | value | default | for | meaning |", "|---|---|---|---|---|") ++
      all.map(o => s"| `${o.name}` | ${o.valueType} | ${o.default} | ${o.scope} | ${o.doc} |")).mkString("\n")
}
