package io.ombus.spark.planning

import munit.FunSuite
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, Literal}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Spark's own literals are not for others to make. */
private final case class Value(value: Any, dataType: DataType) extends Literal[Any]

class PushdownSuite extends FunSuite {

  private def column(name: String): Expression = Expressions.column(name)
  private def seq(value: Long): Expression = Value(value, LongType)
  private def walType(value: Int): Expression = Value(value.toShort, ShortType)
  private def time(us: Long): Expression = Value(us, TimestampType)
  private def predicate(name: String, children: Expression*) = new Predicate(name, children.toArray)

  private def pushed(p: Predicate): String = Pushdown.translate(p).get.description

  test("wal_seq becomes bounds") {
    assertEquals(pushed(predicate("=", column("wal_seq"), seq(5))), "wal_seq >= 5 and wal_seq < 6")
    assertEquals(pushed(predicate("<=", column("wal_seq"), seq(5))), "wal_seq < 6")
    assertEquals(pushed(predicate(">", seq(5), column("wal_seq"))), "wal_seq < 5")
    assertEquals(pushed(predicate(">", column("wal_seq"), seq(5))), "wal_seq >= 6")
    assert(Pushdown.translate(predicate("<", column("wal_seq"), seq(-3))).get.isEmpty)
    assert(!Pushdown.translate(predicate(">=", column("wal_seq"), seq(-3))).get.isEmpty)
  }

  test("microseconds become nanoseconds, each with its thousand") {
    assertEquals(pushed(predicate("=", column("timestamp"), time(7))), "timestamp_ns >= 7000 and timestamp_ns < 8000")
    assertEquals(pushed(predicate("<=", column("timestamp"), time(7))), "timestamp_ns < 8000")
    assertEquals(pushed(predicate(">", column("timestamp"), time(7))), "timestamp_ns >= 8000")
  }

  test("wal_type becomes a set, however it is put together") {
    val one = predicate("=", column("wal_type"), walType(1))
    val big = predicate(">=", column("wal_type"), walType(0x80))
    assertEquals(pushed(predicate("OR", one, big)), "wal_type in (1,128-255)")
    assertEquals(pushed(predicate("NOT", predicate("OR", one, big))), "wal_type in (0,2-127)")
    assertEquals(pushed(predicate("IN", column("wal_type"), walType(2), walType(300))), "wal_type in (2)")
    assertEquals(pushed(predicate("<>", column("wal_type"), walType(0))), "wal_type in (1-255)")
  }

  test("streams are chosen by name") {
    val name = Value(UTF8String.fromString("a"), StringType)
    assertEquals(pushed(predicate("=", column("stream"), name)), "stream in (a)")
    assertEquals(pushed(predicate("IN", column("stream"), name)), "stream in (a)")
  }

  test("AND joins, and finds contradictions") {
    val low = predicate(">=", column("wal_seq"), seq(10))
    val high = predicate("<", column("wal_seq"), seq(10))
    assertEquals(
      pushed(predicate("AND", low, predicate("<", column("wal_seq"), seq(20)))),
      "wal_seq >= 10 and wal_seq < 20"
    )
    assert(Pushdown.translate(predicate("AND", low, high)).get.isEmpty)
  }

  test("what cannot be told exactly is left to Spark") {
    val onSeq = predicate("=", column("wal_seq"), seq(5))
    val onType = predicate("=", column("wal_type"), walType(1))
    Seq(
      predicate("OR", onSeq, onType),
      predicate("NOT", onSeq),
      predicate("=", column("payload"), seq(1)),
      predicate("=", column("wal_seq"), column("wal_type")),
      predicate("=", column("wal_seq"), Value(null, LongType)),
      predicate("IN", column("wal_seq"), seq(1), seq(5)),
      predicate("STARTS_WITH", column("stream"), Value(UTF8String.fromString("a"), StringType)),
      predicate("IS_NULL", column("payload")),
      predicate("AND", onSeq, predicate("NOT", onSeq))
    ).foreach(p => assertEquals(Pushdown.translate(p), None, p.toString))
  }

  test("only bounds on wal_seq leave the index to count") {
    assert(Pushdown(seqFrom = 5, seqTo = 9).isIndexOnly)
    assert(!Pushdown(types = TypeMask.of(Seq(1))).isIndexOnly)
    assert(!Pushdown(timeFromNs = 1).isIndexOnly)
  }
}
