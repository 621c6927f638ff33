package io.ombus.spark.payload

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

import io.ombus.spark.readers._

/** The records of the OpenMatch engine (docs/formats.md): by wal_type a struct of its own, here one wide row in which
  * columns that a record does not have are null.
  */
private[payload] object OpenMatchLayout {
  private val Insert = 1
  private val Cancel = 2
  private val Match = 3
  private val Checkpoint = 4
  private val Deactivate = 5
  private val Activate = 6

  private val events = Map(
    Insert -> "INSERT",
    Cancel -> "CANCEL",
    Match -> "MATCH",
    Checkpoint -> "CHECKPOINT",
    Deactivate -> "DEACTIVATE",
    Activate -> "ACTIVATE"
  )

  /** Size that a record of this type has at least; a MATCH has 40 bytes, or 48 with a product. */
  def minSize(walType: Int): Int = walType match {
    case Insert                         => 56
    case Cancel | Deactivate | Activate => 24
    case Match                          => 40
    case _                              => 0
  }

  private def small(offset: Int): Map[Int, Int] = Map(Cancel -> offset, Deactivate -> offset, Activate -> offset)

  /** A column: where it lies in the records that have it. */
  private final case class Wide(name: String, dataType: DataType, encoding: Encoding, width: Int, at: Map[Int, Int])

  private def number(name: String, width: Int, at: Map[Int, Int]): Wide = {
    val dataType = if (width == 2) IntegerType else LongType
    Wide(name, dataType, Encoding.Whole(width, signed = width == 8), width, at)
  }

  private val numbers = Seq(
    number("order_id", 8, Map(Insert -> 0) ++ small(0)),
    number("maker_id", 8, Map(Match -> 0)),
    number("taker_id", 8, Map(Match -> 8)),
    number("price", 8, Map(Insert -> 8, Match -> 16)),
    number("volume", 8, Map(Insert -> 16, Match -> 24)),
    number("vol_remain", 8, Map(Insert -> 24)),
    number("org", 2, Map(Insert -> 32)),
    number("flags", 2, Map(Insert -> 34)),
    number("product_id", 2, Map(Insert -> 36, Match -> 40) ++ small(20)),
    number("slot_idx", 4, small(16)),
    Wide("event_time", TimestampType, Encoding.Time(1000000000L), 8, Map(Insert -> 48, Match -> 32) ++ small(8)),
    number("event_time_ns", 8, Map(Insert -> 48, Match -> 32) ++ small(8))
  )

  /** A MATCH has its product only in the 48-byte form, so the field asks for the whole of it. */
  private def need(wide: Wide, walType: Int): Int =
    if (walType == Match && wide.at(Match) >= 40) 48 else wide.at(walType) + wide.width

  val schema: StructType = StructType(
    StructField("event", StringType) +:
      (numbers.takeWhile(_.name != "product_id").map(w => StructField(w.name, w.dataType)) ++
        Seq(StructField("side", StringType)) ++
        numbers.dropWhile(_.name != "product_id").map(w => StructField(w.name, w.dataType)) ++
        Seq(StructField("user_data", BinaryType), StructField("aux_data", BinaryType)))
  )

  def column(name: String, rows: RowBatch): ColumnVector = name match {
    case "event"     => new TypeNameColumn(rows, events)
    case "side"      => new SideColumn(rows, Insert, flagsAt = 34, minSize(Insert))
    case "user_data" => new TailColumn(rows, Insert, minSize(Insert), sizesAt = 40, second = false)
    case "aux_data"  => new TailColumn(rows, Insert, minSize(Insert), sizesAt = 40, second = true)
    case _           =>
      val wide = numbers.find(_.name == name).get
      val place = Place.byType(wide.at.map { case (walType, at) => walType -> ((at, need(wide, walType))) })
      StructColumns.column(wide.dataType, wide.encoding, place, wide.width, rows)
  }
}
