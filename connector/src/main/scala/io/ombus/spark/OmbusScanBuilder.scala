package io.ombus.spark

import org.apache.spark.sql.connector.expressions.{Expression, NamedReference}
import org.apache.spark.sql.connector.expressions.aggregate.{Aggregation, Count, CountStar, Max, Min}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.ombus.spark.payload.PayloadFormat
import io.ombus.spark.planning.Pushdown

/** An aggregate that the logs' indexes can answer: one value per function, for all streams or for each. */
final case class IndexAggregate(functions: Seq[IndexFunction], perStream: Boolean) {

  def schema: StructType = {
    val group = if (perStream) Seq(StructField("stream", StringType, nullable = false)) else Nil
    StructType(group ++ functions.map(f => StructField(f.toString, LongType)))
  }
}

sealed abstract class IndexFunction(name: String) extends Serializable {
  override def toString: String = name
}
object IndexFunction {
  case object CountAll extends IndexFunction("count(*)")
  case object MinSeq extends IndexFunction("min(wal_seq)")
  case object MaxSeq extends IndexFunction("max(wal_seq)")
}

/** Takes what Spark wants to leave to the source. Spark pushes only into batch reads; a stream's scan is built as it is. */
final class OmbusScanBuilder(options: CaseInsensitiveStringMap, payload: PayloadFormat)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns
    with SupportsPushDownV2Filters
    with SupportsPushDownLimit
    with SupportsPushDownAggregates {

  private var required = ReadPlan.schema(payload)
  private var taken = Array.empty[Predicate]
  private var pushdown = Pushdown.all
  private var allTaken = true
  private var limit = Option.empty[Int]
  private var aggregate = Option.empty[IndexAggregate]

  override def pruneColumns(schema: StructType): Unit = required = schema

  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    val translated = predicates.map(predicate => predicate -> Pushdown.translate(predicate))
    taken = translated.collect { case (predicate, Some(_)) => predicate }
    pushdown = translated.flatMap(_._2).foldLeft(Pushdown.all)(_ and _)
    val left = translated.collect { case (predicate, None) => predicate }
    allTaken = left.isEmpty
    left
  }

  override def pushedPredicates(): Array[Predicate] = taken

  /** Each task stops after so many rows; Spark still cuts the sum of them. */
  override def pushLimit(count: Int): Boolean = {
    limit = Some(count)
    true
  }

  override def supportCompletePushDown(aggregation: Aggregation): Boolean = indexAggregate(aggregation).isDefined

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    aggregate = indexAggregate(aggregation)
    aggregate.isDefined
  }

  override def build(): Scan =
    OmbusScan(options, payload, aggregate.fold(required)(_.schema), pushdown, limit, aggregate)

  private def indexAggregate(aggregation: Aggregation): Option[IndexAggregate] = {
    val functions = aggregation.aggregateExpressions.map {
      case _: CountStar                                              => Some(IndexFunction.CountAll)
      case count: Count if !count.isDistinct && isBase(count.column) => Some(IndexFunction.CountAll)
      case min: Min if isColumn(min.column, "wal_seq")               => Some(IndexFunction.MinSeq)
      case max: Max if isColumn(max.column, "wal_seq")               => Some(IndexFunction.MaxSeq)
      case _                                                         => None
    }
    val perStream = aggregation.groupByExpressions match {
      case Array()                                     => Some(false)
      case Array(column) if isColumn(column, "stream") => Some(true)
      case _                                           => None
    }
    // The option walTypes filters too, which an index knows nothing of.
    val countable = allTaken && pushdown.isIndexOnly && !options.containsKey(OmbusOptions.WalTypes.name) &&
      !options.containsKey(OmbusOptions.Mode.name)
    perStream.filter(_ => countable && functions.forall(_.isDefined)).map(IndexAggregate(functions.flatten.toSeq, _))
  }

  private def isColumn(expression: Expression, name: String): Boolean = expression match {
    case column: NamedReference => column.fieldNames.sameElements(Array(name))
    case _                      => false
  }

  /** Never null, so that counting it counts records. */
  private def isBase(expression: Expression): Boolean =
    ReadPlan.baseSchema.fieldNames.exists(isColumn(expression, _))
}
