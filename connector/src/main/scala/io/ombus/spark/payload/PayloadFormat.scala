package io.ombus.spark.payload

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

import io.ombus.spark.planning.TypeMask
import io.ombus.spark.readers.{PayloadColumn, RowBatch, StructColumns}

/** What stands in place of the payload: which columns, and how each is read from a row's frame. */
sealed trait PayloadFormat extends Serializable {
  def schema: StructType

  def column(name: String, rows: RowBatch): ColumnVector

  /** By wal_type, the size below which a payload is too short for its columns. */
  def payloadMin: Option[Vector[Int]]

  /** What a payload that was too short should have had. */
  def needed: String
}

object PayloadFormat {

  /** One column, the bytes as they are. */
  case object Raw extends PayloadFormat {
    override val schema: StructType = StructType(Seq(StructField("payload", BinaryType)))
    override def column(name: String, rows: RowBatch): ColumnVector = new PayloadColumn(rows)
    override def payloadMin: Option[Vector[Int]] = None
    override def needed: String = ""
  }

  /** The fields of a C struct. */
  final case class Struct(layout: StructLayout) extends PayloadFormat {
    override def schema: StructType = layout.schema
    override def column(name: String, rows: RowBatch): ColumnVector =
      StructColumns.column(layout.fields.find(_.name == name).get, layout.minSize, rows)
    override def payloadMin: Option[Vector[Int]] = Some(Vector.fill(TypeMask.Count)(layout.minSize))
    override def needed: String = s"payloadSchema needs ${layout.minSize}"
  }

  /** Records of the OpenMatch engine as one wide row. */
  case object OpenMatch extends PayloadFormat {
    override def schema: StructType = OpenMatchLayout.schema
    override def column(name: String, rows: RowBatch): ColumnVector = OpenMatchLayout.column(name, rows)
    override def payloadMin: Option[Vector[Int]] = Some(Vector.tabulate(TypeMask.Count)(OpenMatchLayout.minSize))
    override def needed: String = "an OpenMatch INSERT needs 56, a MATCH 40, a CANCEL, DEACTIVATE or ACTIVATE 24"
  }

  private val base = Set("stream", "wal_seq", "wal_type", "timestamp")

  def struct(text: String, packed: Boolean): PayloadFormat = {
    val layout = StructLayout.parse(text, packed)
    layout.fields.find(field => base.contains(field.name.toLowerCase)).foreach { field =>
      throw new IllegalArgumentException(s"every row has a column ${field.name} already: give the field another name")
    }
    Struct(layout)
  }
}

/** What becomes of a payload that is too short for its columns; the words of Spark's own readers. */
sealed abstract class PayloadMode(name: String) extends Serializable {
  override def toString: String = name
}

object PayloadMode {
  case object Permissive extends PayloadMode("PERMISSIVE")
  case object DropMalformed extends PayloadMode("DROPMALFORMED")
  case object FailFast extends PayloadMode("FAILFAST")

  val all: Seq[PayloadMode] = Seq(Permissive, DropMalformed, FailFast)

  def named(name: String): PayloadMode = all.find(_.toString == name).get
}
