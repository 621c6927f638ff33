package io.ombus.spark.readers

import java.math.BigInteger

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.ombus.spark.payload.{Encoding, LayoutField}

/** Where a field lies in a row's payload, and whether it is there at all. */
sealed abstract class Place {

  /** Whether the row's payload reaches over the field. */
  def has(rows: RowBatch, row: Int): Boolean

  /** Its offset in the payload of a row that has it. */
  def offset(rows: RowBatch, row: Int): Int

  /** False when every row of the batch has it, so that nobody needs to ask. */
  def mayLack(rows: RowBatch): Boolean
}

object Place {

  /** The same for every row that is long enough. */
  final class Fixed(at: Int, minSize: Int) extends Place {
    override def has(rows: RowBatch, row: Int): Boolean = !rows.hasShort || rows.payloadLen(row) >= minSize
    override def offset(rows: RowBatch, row: Int): Int = at
    override def mayLack(rows: RowBatch): Boolean = rows.hasShort
  }

  /** By wal_type; the others do not have it. */
  final class ByType(offsets: Array[Int], needs: Array[Int]) extends Place {
    override def has(rows: RowBatch, row: Int): Boolean = rows.payloadLen(row) >= needs(rows.walType(row))
    override def offset(rows: RowBatch, row: Int): Int = offsets(rows.walType(row))
    override def mayLack(rows: RowBatch): Boolean = true
  }

  def byType(places: Map[Int, (Int, Int)]): Place = new ByType(
    Array.tabulate(256)(walType => places.get(walType).map(_._1).getOrElse(0)),
    Array.tabulate(256)(walType => places.get(walType).map(_._2).getOrElse(Int.MaxValue))
  )
}

/** Columns that read a field of the payload. */
object StructColumns {

  def column(field: LayoutField, minSize: Int, rows: RowBatch): ColumnVector =
    column(field.dataType, field.encoding, new Place.Fixed(field.offset, minSize), field.width, rows)

  def column(dataType: DataType, encoding: Encoding, place: Place, width: Int, rows: RowBatch): ColumnVector =
    encoding match {
      case whole: Encoding.Whole =>
        dataType match {
          case ByteType       => new ByteField(rows, place)
          case ShortType      => new ShortField(rows, place, whole)
          case IntegerType    => new IntField(rows, place, whole)
          case LongType       => new LongField(rows, place, whole)
          case d: DecimalType => new DecimalField(rows, place, whole, d)
          case other          => throw new IllegalArgumentException(s"no ${other.sql} from an integer")
        }
      case Encoding.Scaled(storage) => new DecimalField(rows, place, storage, dataType.asInstanceOf[DecimalType])
      case Encoding.Floating(4)     => new FloatField(rows, place)
      case Encoding.Floating(_)     => new DoubleField(rows, place)
      case Encoding.Bool            => new BooleanField(rows, place)
      case Encoding.Time(perSecond) => new TimeField(rows, place, perSecond)
      case Encoding.Bytes(-1, text) => new RestField(rows, place, text)
      case Encoding.Bytes(_, text)  => new BytesField(rows, place, width, text)
    }

  /** What all fields share: a row that lacks the field is null. */
  abstract class Field(dataType: DataType, rows: RowBatch, place: Place) extends ViewColumn(dataType) {
    override def hasNull: Boolean = place.mayLack(rows)
    override def isNullAt(row: Int): Boolean = !place.has(rows, row)
    @inline protected final def at(row: Int): Long = rows.payload(row) + place.offset(rows, row)
  }

  private def read(whole: Encoding.Whole, address: Long): Long = whole.bytes match {
    case 1 => if (whole.signed) Platform.getByte(null, address).toLong else Platform.getByte(null, address) & 0xffL
    case 2 => if (whole.signed) Platform.getShort(null, address).toLong else Platform.getShort(null, address) & 0xffffL
    case 4 => if (whole.signed) Platform.getInt(null, address).toLong else Platform.getInt(null, address) & 0xffffffffL
    case _ => Platform.getLong(null, address)
  }

  private final class ByteField(rows: RowBatch, place: Place) extends Field(ByteType, rows, place) {
    override def getByte(row: Int): Byte = Platform.getByte(null, at(row))
  }

  private final class ShortField(rows: RowBatch, place: Place, whole: Encoding.Whole)
      extends Field(ShortType, rows, place) {
    override def getShort(row: Int): Short = read(whole, at(row)).toShort
  }

  private final class IntField(rows: RowBatch, place: Place, whole: Encoding.Whole)
      extends Field(IntegerType, rows, place) {
    override def getInt(row: Int): Int = read(whole, at(row)).toInt
  }

  private final class LongField(rows: RowBatch, place: Place, whole: Encoding.Whole)
      extends Field(LongType, rows, place) {
    override def getLong(row: Int): Long = read(whole, at(row))
  }

  private final class FloatField(rows: RowBatch, place: Place) extends Field(FloatType, rows, place) {
    override def getFloat(row: Int): Float = Platform.getFloat(null, at(row))
  }

  private final class DoubleField(rows: RowBatch, place: Place) extends Field(DoubleType, rows, place) {
    override def getDouble(row: Int): Double = Platform.getDouble(null, at(row))
  }

  private final class BooleanField(rows: RowBatch, place: Place) extends Field(BooleanType, rows, place) {
    override def getBoolean(row: Int): Boolean = Platform.getByte(null, at(row)) != 0
  }

  /** A time that does not fit Spark's microseconds is null. */
  private final class TimeField(rows: RowBatch, place: Place, perSecond: Long)
      extends Field(TimestampType, rows, place) {
    private val shrink = math.max(1L, perSecond / 1000000L)
    private val stretch = math.max(1L, 1000000L / perSecond)
    private val limit = Long.MaxValue / stretch

    override def hasNull: Boolean = super.hasNull || stretch > 1
    override def isNullAt(row: Int): Boolean =
      super.isNullAt(row) || (stretch > 1 && { val v = Platform.getLong(null, at(row)); v > limit || v < -limit })
    override def getLong(row: Int): Long = Math.floorDiv(Platform.getLong(null, at(row)), shrink) * stretch
  }

  /** A number with more digits than the type has is null, as where Spark casts. */
  private final class DecimalField(rows: RowBatch, place: Place, whole: Encoding.Whole, decimal: DecimalType)
      extends Field(decimal, rows, place) {
    private val unsignedLong = whole.bytes == 8 && !whole.signed
    private val limit = if (decimal.precision >= 19) Long.MaxValue else BigInt(10).pow(decimal.precision).toLong - 1
    private val canOverflow = decimal.precision < 20 && !(decimal.precision == 19 && !unsignedLong)

    private def overflows(value: Long): Boolean =
      if (unsignedLong && value < 0) decimal.precision < 20 else value > limit || value < -limit

    override def hasNull: Boolean = super.hasNull || canOverflow
    override def isNullAt(row: Int): Boolean = super.isNullAt(row) || (canOverflow && overflows(read(whole, at(row))))

    override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = {
      if (isNullAt(row)) return null
      val value = read(whole, at(row))
      if (precision <= Decimal.MAX_LONG_DIGITS) Decimal.createUnsafe(value, precision, scale)
      else {
        val digits =
          if (unsignedLong) new BigInteger(java.lang.Long.toUnsignedString(value)) else BigInteger.valueOf(value)
        Decimal.apply(new java.math.BigDecimal(digits, scale), precision, scale)
      }
    }

    /** Spark's generated code reads small decimals through getDecimal; others ask for their unscaled number. */
    override def getLong(row: Int): Long = read(whole, at(row))
    override def getInt(row: Int): Int = read(whole, at(row)).toInt
  }

  private final class BytesField(rows: RowBatch, place: Place, width: Int, text: Boolean)
      extends Field(if (text) StringType else BinaryType, rows, place) {
    override def getBinary(row: Int): Array[Byte] = if (isNullAt(row)) null else RowBatch.copy(at(row), width)
    override def getUTF8String(row: Int): UTF8String = if (isNullAt(row)) null else textAt(at(row), width)
  }

  private final class RestField(rows: RowBatch, place: Place, text: Boolean)
      extends Field(if (text) StringType else BinaryType, rows, place) {
    private def length(row: Int): Int = rows.payloadLen(row) - place.offset(rows, row)
    override def getBinary(row: Int): Array[Byte] = if (isNullAt(row)) null else RowBatch.copy(at(row), length(row))
    override def getUTF8String(row: Int): UTF8String = if (isNullAt(row)) null else textAt(at(row), length(row))
  }

  /** Up to the first zero byte, as C writes a text into a field. */
  private def textAt(address: Long, max: Int): UTF8String = {
    var length = 0
    while (length < max && Platform.getByte(null, address + length) != 0) length += 1
    UTF8String.fromBytes(RowBatch.copy(address, length))
  }
}
