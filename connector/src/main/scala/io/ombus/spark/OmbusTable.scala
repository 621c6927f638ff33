package io.ombus.spark

import java.util

import org.apache.spark.sql.connector.catalog.{Column, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.ombus.spark.streams.StreamUri

/** Streams as a table. Addresses and options are checked here, so that a bad one is refused where the user wrote it. */
final class OmbusTable(properties: CaseInsensitiveStringMap) extends SupportsRead {
  private val payload = OmbusOptions.parsePayload(properties)
  private val uris = new OptionValues(properties).uris
  StreamUri.parseList(uris)

  override def name(): String = s"ombus $uris"

  override def schema(): StructType = ReadPlan.schema(payload)

  // Both, because the default of either calls the other in one release or another.
  override def columns(): Array[Column] =
    schema().fields.map(field => Column.create(field.name, field.dataType, field.nullable))

  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val merged = new util.HashMap[String, String](properties.asCaseSensitiveMap)
    merged.keySet.removeIf(name => options.containsKey(name))
    merged.putAll(options.asCaseSensitiveMap)
    new OmbusScanBuilder(new CaseInsensitiveStringMap(merged), payload)
  }
}
