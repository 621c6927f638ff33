package io.ombus.spark.payload

import java.util.Locale

import org.apache.spark.sql.types._

/** How a field's bytes become a value. All little-endian. */
sealed trait Encoding
object Encoding {

  /** Integer of 1, 2, 4 or 8 bytes. */
  final case class Whole(bytes: Int, signed: Boolean) extends Encoding
  final case class Floating(bytes: Int) extends Encoding
  case object Bool extends Encoding

  /** An integer that counts units of 10^-scale. */
  final case class Scaled(storage: Whole) extends Encoding

  /** A signed 64-bit count of `perSecond` parts of a second since 1970. */
  final case class Time(perSecond: Long) extends Encoding

  /** `bytes` of them, or the rest of the payload (-1); a text ends at its first zero byte. */
  final case class Bytes(bytes: Int, text: Boolean) extends Encoding
}

/** One field: its column and the place of its bytes in the payload. */
final case class LayoutField(name: String, dataType: DataType, offset: Int, width: Int, encoding: Encoding) {

  /** First byte behind it that the payload must have. */
  def end: Int = offset + width
}

/** The fixed layout of a C struct, from a text such as
  * {{{
  *   id uint64, price decimal(18,4), side int8, symbol string(8), at timestamp(ns), note string
  * }}}
  *
  * A field is `name type`, with `@ OFFSET` behind it where it does not simply follow the one before. Types:
  *   - `int8 int16 int32 int64` (or `tinyint smallint int bigint`), `uint8 uint16 uint32 uint64` (read as the next wider
  *     type, uint64 as decimal(20,0)), `float double` (or `float32 float64`), `boolean` (or `bool`; one byte),
  *   - `decimal(P,S)` from an int64, `decimal(P,S,int32)` from another integer type,
  *   - `timestamp(ns|us|ms|s)` from an int64,
  *   - `string(N)`, `binary(N)`: N bytes; the last field may be `string` or `binary` alone: the rest of the payload,
  *   - `pad(N)`: N bytes that become no column; its name is of no matter.
  *
  * With natural alignment a number lies at a multiple of its width, as C compilers put it; packed, right behind the field
  * before.
  */
final case class StructLayout(fields: Vector[LayoutField]) {

  /** Payloads shorter than this have none of the fields. */
  val minSize: Int = fields.map(_.end).max

  def schema: StructType = StructType(fields.map(field => StructField(field.name, field.dataType)))
}

object StructLayout {
  import Encoding._

  /** Larger payloads do not exist. */
  private val MaxOffset = 64 << 20

  private val field =
    """(`[^`]+`|[\p{L}_][\p{L}\p{N}_]*)\s+([A-Za-z0-9]+)\s*(?:\(([^)]*)\))?\s*(?:@\s*([0-9]{1,9}))?""".r

  def parse(text: String, packed: Boolean): StructLayout = {
    var next = 0
    var open = false // the last field takes the rest
    val fields = split(text).flatMap { item =>
      if (open) fail(item, "nothing can follow a field that takes the rest of the payload")
      val (name, typeName, arguments, at) = item match {
        case field(name, typeName, arguments, at) =>
          val list = Option(arguments).map(_.split(",").map(_.trim.toLowerCase(Locale.ROOT)).toList).getOrElse(Nil)
          (name.stripPrefix("`").stripSuffix("`"), typeName.toLowerCase(Locale.ROOT), list, Option(at).map(_.toInt))
        case _ => fail(item, "a field is `name type`, such as `price int64`")
      }
      val (kind, width, alignment) = resolve(item, typeName, arguments)
      val offset = at.getOrElse(if (packed) next else (next + alignment - 1) / alignment * alignment)
      if (offset.toLong + width > MaxOffset) fail(item, "it lies behind the largest payload, 64 MiB")
      next = offset + width
      kind.map { case (dataType, encoding) =>
        open = encoding match {
          case Bytes(-1, _) => true
          case _            => false
        }
        LayoutField(name, dataType, offset, width, encoding)
      }
    }
    if (fields.isEmpty) throw new IllegalArgumentException("it has no field")
    fields.groupBy(_.name.toLowerCase(Locale.ROOT)).values.find(_.size > 1).foreach { same =>
      throw new IllegalArgumentException(s"two fields are named ${same.head.name}")
    }
    StructLayout(fields.toVector)
  }

  private val scalars: Map[String, (DataType, Encoding, Int)] = {
    val whole = Seq(
      ("int8", ByteType, 1, true),
      ("tinyint", ByteType, 1, true),
      ("int16", ShortType, 2, true),
      ("smallint", ShortType, 2, true),
      ("int32", IntegerType, 4, true),
      ("int", IntegerType, 4, true),
      ("int64", LongType, 8, true),
      ("bigint", LongType, 8, true),
      ("uint8", ShortType, 1, false),
      ("uint16", IntegerType, 2, false),
      ("uint32", LongType, 4, false),
      ("uint64", DecimalType(20, 0), 8, false)
    ).map { case (name, dataType, width, signed) => name -> ((dataType, Whole(width, signed): Encoding, width)) }
    val others = Seq(
      "float" -> ((FloatType, Floating(4), 4)),
      "float32" -> ((FloatType, Floating(4), 4)),
      "double" -> ((DoubleType, Floating(8), 8)),
      "float64" -> ((DoubleType, Floating(8), 8)),
      "boolean" -> ((BooleanType, Bool, 1)),
      "bool" -> ((BooleanType, Bool, 1))
    )
    (whole ++ others).toMap
  }

  private val timeUnits = Map("ns" -> 1000000000L, "us" -> 1000000L, "ms" -> 1000L, "s" -> 1L)

  /** Column type and encoding (none for padding), width and natural alignment. */
  private def resolve(
      item: String,
      typeName: String,
      arguments: List[String]
  ): (Option[(DataType, Encoding)], Int, Int) =
    (typeName, arguments) match {
      case (name, Nil) if scalars.contains(name) =>
        val (dataType, encoding, width) = scalars(name)
        (Some((dataType, encoding)), width, width)
      case ("string", Nil)        => (Some((StringType, Bytes(-1, text = true))), 0, 1)
      case ("binary", Nil)        => (Some((BinaryType, Bytes(-1, text = false))), 0, 1)
      case ("string", List(size)) => (Some((StringType, Bytes(length(item, size), text = true))), length(item, size), 1)
      case ("binary", List(size)) =>
        (Some((BinaryType, Bytes(length(item, size), text = false))), length(item, size), 1)
      case ("pad", List(size))                                   => (None, length(item, size), 1)
      case ("timestamp", List(unit)) if timeUnits.contains(unit) =>
        (Some((TimestampType, Time(timeUnits(unit)))), 8, 8)
      case ("timestamp", _) =>
        fail(item, "say what it counts: timestamp(ns), timestamp(us), timestamp(ms) or timestamp(s)")
      case ("decimal", precision :: scale :: storage) if storage.size <= 1 =>
        val name = storage.headOption.getOrElse("int64")
        val whole = scalars.get(name).map(_._2) match {
          case Some(found: Whole) => found
          case _                  => fail(item, s"'$name' is no integer type")
        }
        val (digits, fraction) = (precision.toIntOption.getOrElse(0), scale.toIntOption.getOrElse(-1))
        if (digits < 1 || digits > 38 || fraction < 0 || fraction > digits)
          fail(item, "a decimal is decimal(1 to 38, 0 to precision)")
        (Some((DecimalType(digits, fraction), Scaled(whole))), whole.bytes, whole.bytes)
      case ("decimal", _) => fail(item, "a decimal is decimal(PRECISION, SCALE) or decimal(PRECISION, SCALE, int32)")
      case (name, _)      =>
        val names = (scalars.keys ++ Seq("string", "binary", "pad", "timestamp", "decimal")).toSeq
        val hint = io.ombus.spark.Spelling
          .nearest(name, names)
          .fold(s"there are ${names.sorted.mkString(", ")}")(n => s"did you mean $n?")
        fail(item, s"there is no such type: $hint")
    }

  private def length(item: String, text: String): Int = text.toIntOption match {
    case Some(size) if size > 0 && size <= MaxOffset => size
    case _                                           => fail(item, s"'$text' is no number of bytes")
  }

  /** At commas outside of parentheses. */
  private def split(text: String): Seq[String] = text.split(",(?![^(]*\\))", -1).map(_.trim).toSeq match {
    case Seq("") => Nil
    case items   => items
  }

  private def fail(item: String, reason: String): Nothing =
    throw new IllegalArgumentException(s"field '$item': $reason")
}
