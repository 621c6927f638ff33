package io.ombus.spark.planning

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate

import io.ombus.spark.nativebridge.RowFilter

/** What a scan reads of its streams: bounds that planning applies (stream, wal_seq) and filters that the library applies
  * (wal_type, time). Bounds: from is inclusive, to is not.
  */
final case class Pushdown(
    streams: Option[Set[String]] = None,
    seqFrom: Long = 0,
    seqTo: Long = Long.MaxValue,
    timeFromNs: Long = 0,
    timeToNs: Long = Long.MaxValue,
    types: TypeMask = TypeMask.all
) {

  def and(other: Pushdown): Pushdown = Pushdown(
    (streams ++ other.streams).reduceOption(_ intersect _),
    math.max(seqFrom, other.seqFrom),
    math.min(seqTo, other.seqTo),
    math.max(timeFromNs, other.timeFromNs),
    math.min(timeToNs, other.timeToNs),
    types.and(other.types)
  )

  /** No record can pass. */
  def isEmpty: Boolean = streams.exists(_.isEmpty) || seqFrom >= seqTo || timeFromNs >= timeToNs || types.isEmpty

  /** Whether every record within the bounds on wal_seq passes, so that the index alone can count. */
  def isIndexOnly: Boolean = types.isAll && timeFromNs == 0 && timeToNs == Long.MaxValue

  def rowFilter: RowFilter =
    RowFilter(timeFromNs, if (timeToNs == Long.MaxValue) 0 else timeToNs, types.toFilter)

  def description: String = {
    val parts = streams.map(s => s"stream in (${s.toSeq.sorted.mkString(", ")})").toSeq ++
      bound("wal_seq", seqFrom, seqTo) ++ bound("timestamp_ns", timeFromNs, timeToNs) ++
      (if (types.isAll) None else Some(s"wal_type in ($types)"))
    parts.mkString(" and ")
  }

  private def bound(column: String, from: Long, to: Long): Seq[String] =
    (if (from > 0) Seq(s"$column >= $from") else Nil) ++ (if (to < Long.MaxValue) Seq(s"$column < $to") else Nil)
}

/** Translates Spark's predicates; what it translates is exact, so that Spark need not look again. */
object Pushdown {
  val all: Pushdown = Pushdown()
  private val nothing = Pushdown(types = TypeMask.none)

  def translate(predicate: Predicate): Option[Pushdown] = predicate.name match {
    case "ALWAYS_TRUE"  => Some(all)
    case "ALWAYS_FALSE" => Some(nothing)
    case "AND"          =>
      for (left <- operand(predicate, 0); right <- operand(predicate, 1)) yield left.and(right)
    case "OR" | "NOT"  => typesOf(predicate).map(types => Pushdown(types = types))
    case "IS_NOT_NULL" => reference(predicate.children.head).filter(baseColumns).map(_ => all)
    case "IS_NULL"     => reference(predicate.children.head).filter(baseColumns).map(_ => nothing)
    case "IN"          =>
      val values = predicate.children.tail.map(literal)
      if (values.exists(_.isEmpty)) None
      else among(reference(predicate.children.head), values.flatten.toSeq)
    case name =>
      predicate.children match {
        case Array(left, right) =>
          (reference(left), literal(right), literal(left), reference(right)) match {
            case (Some(column), Some(value), _, _) => compare(name, column, value)
            case (_, _, Some(value), Some(column)) => mirrored.get(name).flatMap(compare(_, column, value))
            case _                                 => None
          }
        case _ => None
      }
  }

  /** Columns that are never null. */
  private val baseColumns = Set("stream", "wal_seq", "wal_type", "timestamp")

  private val mirrored =
    Map("=" -> "=", "<=>" -> "<=>", "<" -> ">", "<=" -> ">=", ">" -> "<", ">=" -> "<=", "<>" -> "<>")

  private def operand(predicate: Predicate, i: Int): Option[Pushdown] = predicate.children()(i) match {
    case inner: Predicate => translate(inner)
    case _                => None
  }

  private def reference(expression: Expression): Option[String] = expression match {
    case column: NamedReference if column.fieldNames.length == 1 => Some(column.fieldNames.head)
    case _                                                       => None
  }

  /** Spark's own form of a value; a null literal compares to nothing. */
  private def literal(expression: Expression): Option[Any] = expression match {
    case value: Literal[_] => Option(value.value)
    case _                 => None
  }

  private def compare(operator: String, column: String, value: Any): Option[Pushdown] = (column, value) match {
    case ("stream", text) if operator == "=" || operator == "<=>" => Some(Pushdown(streams = Some(Set(text.toString))))
    case ("wal_seq", seq: Long)                                   =>
      range(operator, seq).map { case (from, to) => Pushdown(seqFrom = from, seqTo = to) }
    case ("timestamp", us: Long) =>
      range(operator, us).map { case (from, to) => Pushdown(timeFromNs = scaled(from), timeToNs = scaled(to)) }
    case ("wal_type", walType: Short) => mask(operator, walType.toInt).map(types => Pushdown(types = types))
    case _                            => None
  }

  private def among(column: Option[String], values: Seq[Any]): Option[Pushdown] = column match {
    case Some("stream")   => Some(Pushdown(streams = Some(values.map(_.toString).toSet)))
    case Some("wal_type") => Some(Pushdown(types = TypeMask.of(values.collect { case t: Short => t.toInt })))
    case Some("wal_seq") if values.size == 1 => compare("=", "wal_seq", values.head)
    case _                                   => None
  }

  /** Values that satisfy `x operator value`, none of which is negative. */
  private def range(operator: String, value: Long): Option[(Long, Long)] = {
    val above = if (value == Long.MaxValue) value else value + 1
    (operator match {
      case "=" | "<=>" => Some((value, above))
      case "<"         => Some((0L, value))
      case "<="        => Some((0L, above))
      case ">"         => Some((above, Long.MaxValue))
      case ">="        => Some((value, Long.MaxValue))
      case _           => None
    }).map { case (from, to) => (math.max(from, 0), math.max(to, 0)) }
  }

  /** Microseconds to nanoseconds; the last microsecond that fits stands for no bound. */
  private def scaled(us: Long): Long = if (us > Long.MaxValue / 1000) Long.MaxValue else us * 1000

  private def mask(operator: String, value: Int): Option[TypeMask] = operator match {
    case "=" | "<=>" => Some(TypeMask.where(_ == value))
    case "<>"        => Some(TypeMask.where(_ != value))
    case "<"         => Some(TypeMask.where(_ < value))
    case "<="        => Some(TypeMask.where(_ <= value))
    case ">"         => Some(TypeMask.where(_ > value))
    case ">="        => Some(TypeMask.where(_ >= value))
    case _           => None
  }

  /** A predicate on wal_type alone, however it is put together. */
  private def typesOf(expression: Expression): Option[TypeMask] = expression match {
    case predicate: Predicate =>
      predicate.name match {
        case "OR" =>
          for (left <- typesOf(predicate.children()(0)); right <- typesOf(predicate.children()(1))) yield left.or(right)
        case "AND" =>
          for (left <- typesOf(predicate.children()(0)); right <- typesOf(predicate.children()(1)))
            yield left.and(right)
        case "NOT" => typesOf(predicate.children.head).map(_.not)
        case _     =>
          val onType = predicate.children.flatMap(reference).sameElements(Array("wal_type"))
          if (onType) translate(predicate).map(_.types) else None
      }
    case _ => None
  }
}
